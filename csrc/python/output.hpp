// The arrays that results are written to: new ones, or those that callers pass as `out`.
#pragma once

#include <cstddef>
#include <memory>

#include "arguments.hpp"

namespace bpls::python {

// A new array in C order, not initialized. This is what py::array does, without its vectors.
py::array new_array(DType dtype, Shape shape);

class Output {
 public:
    // `out` is None or an array of this type and shape: C-contiguous, writeable and aligned. Messages call it `name`.
    Output(const char* name, py::handle out, DType dtype, Shape shape);

    // Refuses an `out` that may share memory with this argument.
    void check_apart(const char* argument, const py::array& array) const;
    // As check_apart(), but `out` may begin where the argument does: the call can work in place.
    void check_apart_or_same(const char* argument, const py::array& array) const;

    bool given() const noexcept { return given_; }
    void* data() noexcept { return array_.mutable_data(); }
    const py::array& array() const noexcept { return array_; }

 private:
    const char* name_;
    bool given_;
    py::array array_;
};

// A float64 result that reaches `out` only when it is complete, so that a call that fails does not change `out`.
class WholeOutput : public Output {
 public:
    // Unless `whole`, the result is written to `out` directly.
    WholeOutput(const char* name, py::handle out, Shape shape, bool whole);

    double* data() noexcept { return scratch_ ? scratch_.get() : in_place(); }
    std::size_t size() const noexcept { return static_cast<std::size_t>(array().size()); }
    void finish() noexcept;

 private:
    double* in_place() noexcept { return static_cast<double*>(Output::data()); }

    std::unique_ptr<double[]> scratch_;
};

}  // namespace bpls::python
