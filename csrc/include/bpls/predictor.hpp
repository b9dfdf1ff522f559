// Prediction without a lock, an allocation or an exception: weights are packed once, and scratch memory is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "bpls/export.h"
#include "bpls/matrix.hpp"
#include "bpls/network.hpp"

namespace bpls {

// For rows of In, an element type. Types that fit into float run in float, with weights rounded to float; double runs in double.
// A row's bits do not depend on the other rows, nor on the function that computes them: they are those of linear(), layer by
// layer, and of the Python package's Network.forward.
//
// Only one thread may use a Predictor at a time. Its copies share the packed weights and have scratch memory of their own:
// give every thread a copy.
template <class In>
class BPLS_API Predictor {
 public:
    using Out = std::conditional_t<represents<float, In>, float, double>;

    // Packs the weights. Throws std::invalid_argument if one of them is too large for Out, std::bad_alloc, and what
    // active_level() throws.
    explicit Predictor(const Network& network);
    Predictor(const Predictor& other);
    Predictor(Predictor&& other) noexcept;
    Predictor& operator=(Predictor other) noexcept;
    ~Predictor();

    std::size_t inputs() const noexcept;
    std::size_t outputs() const noexcept;

    // Computes the outputs of one row. Here and below: returns false if an intermediate value was not finite, as always in a row
    // with NaN or infinity; the outputs are then those of IEEE arithmetic.
    bool predict(const In* x, Out* out) noexcept { return predict(x, 1, inputs(), out); }

    // Computes the outputs of rows that lie `stride` elements apart: rows x outputs, row major. Runs on the calling thread.
    bool predict(const In* X, std::size_t rows, std::size_t stride, Out* out) noexcept;

    // Returns the index of the largest output of one row, without computing the last activation; -1 if predict() returns false.
    std::ptrdiff_t decide(const In* x) noexcept;

    // Computes the outputs of rows in any layout, on several threads if there are many (n_threads 0: default_threads()).
    // `activated` false omits the last activation. Every call has its own scratch memory, so several threads may call it at
    // once. Throws std::invalid_argument if X has another type or another number of columns, and std::bad_alloc.
    bool predict(const ConstMatrix& X, Out* out, int n_threads = 0, bool activated = true) const;

 private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace bpls
