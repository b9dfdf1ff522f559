// The release of the GIL around the work of a call.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

namespace bpls::python {

// Lets other Python threads run while this object lives, if the work takes long enough to be worth it: a call of some
// microseconds keeps the GIL, which another thread might not give back for milliseconds.
class WithoutGil {
 public:
    // The work is the product of these sizes, in multiply-adds.
    template <class... Sizes>
    explicit WithoutGil(Sizes... sizes)
        : state_((... * static_cast<double>(sizes)) < few ? nullptr : PyEval_SaveThread()) {}
    ~WithoutGil() {
        if (state_) PyEval_RestoreThread(state_);
    }
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

 private:
    static constexpr double few = 1 << 14;  // some microseconds at the slowest level

    PyThreadState* state_;
};

// What an element of an activation counts as.
inline constexpr std::size_t activation_multiply_adds = 16;

}  // namespace bpls::python
