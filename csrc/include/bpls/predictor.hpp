// Prediction without a lock, an allocation or an exception: weights packed once, scratch memory that is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "bpls/export.h"
#include "bpls/matrix.hpp"
#include "bpls/network.hpp"

namespace bpls {

// For rows of In: std::uint8_t, float or double. Double runs in double, the others in float, with weights rounded to float.
// A row's bits do not depend on the other rows, nor on which function it goes through: they are those of linear(), layer
// by layer, and of the Python package's Network.forward.
//
// One thread may use a Predictor at a time. Its copies share the packed weights and have scratch memory of their own: give
// every thread a copy.
template <class In>
class BPLS_API Predictor {
 public:
    using Out = std::conditional_t<std::is_same_v<In, double>, double, float>;

    // Packs the weights. Throws std::invalid_argument where one of them is too large for Out, std::bad_alloc, and what
    // active_level() throws.
    explicit Predictor(const Network& network);
    Predictor(const Predictor& other);
    Predictor(Predictor&& other) noexcept;
    Predictor& operator=(Predictor other) noexcept;
    ~Predictor();

    std::size_t inputs() const noexcept;
    std::size_t outputs() const noexcept;

    // The outputs of one row. Here and below: false where a value on the way was not finite (in a row that has NaN or
    // infinity it never is); the outputs are then those of IEEE arithmetic.
    bool predict(const In* x, Out* out) noexcept { return predict(x, 1, inputs(), out); }

    // The outputs of rows that lie `stride` elements apart: rows x outputs, row major. On this thread.
    bool predict(const In* X, std::size_t rows, std::size_t stride, Out* out) noexcept;

    // The place of the largest output of one row, found without the last activation; -1 where predict() says false.
    std::ptrdiff_t decide(const In* x) noexcept;

    // Rows of any layout, on several threads if there are many (n_threads 0: default_threads()). `activated` false leaves
    // the last activation out. It takes scratch memory of its own for every call, so several threads may call it at once.
    // Throws std::invalid_argument where X has another type or another number of columns, and std::bad_alloc.
    bool predict(const ConstMatrix& X, Out* out, int n_threads = 0, bool activated = true) const;

 private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace bpls
