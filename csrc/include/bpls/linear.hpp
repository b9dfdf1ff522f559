// One layer forward, act(A W + b), and its derivatives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bpls/activation.hpp"
#include "bpls/export.h"
#include "bpls/matrix.hpp"

namespace bpls {

struct LinearOptions {
    bool bias = false;  // W has one row more than A has columns: the bias
    Activation activation = Activation::identity;
    int n_threads = 0;  // 0: default_threads()
};

// out = act(A W + b), A.rows x W.cols in row-major order, of type T: float where W is float32 and A is uint8 or float32,
// double otherwise; any other T throws std::invalid_argument. A row's bits do not depend on the other rows.
//
// Returns whether the first pre-activation of every row is finite. It is not in a row of A that is not; so `true` says
// that A is finite if W is, without a pass over A for it.
template <class T>
BPLS_API bool linear(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options,
                     T* out);

// out = J (A W + b), row by row, where J is the Jacobian of the activation at the pre-activations whose values are given:
// A.rows x W.cols, row-major, as out, which may be the same. A change of A by dA, or of W by dW, changes act(A W + b) by
// tangent(dA, W) or tangent(A, dW). J is symmetric, so tangent(R, Wᵀ) of the layer above pulls residuals R back. Types and
// what it returns are those of linear().
template <class T>
BPLS_API bool tangent(const ConstMatrix& A, const ConstMatrix& W, const T* values,
                      const LinearOptions& options, T* out);

// The most columns of A that linear_bytes() takes: more might overflow the sums, of which each product takes 255 · 128.
inline constexpr std::size_t most_byte_columns = 65'536;

// out[i, j] = scale[j] · Σ_k A[i, k] · W[k, j], A.rows x scale.size() in row-major order. A is of bytes that lie side by side in
// a row, W row-major. Sums are integers, and each is rounded once before it is scaled: the bits are the same at every level.
// Throws std::invalid_argument for any other A, or more columns than most_byte_columns.
BPLS_API void linear_bytes(const ConstMatrix& A, const std::int8_t* W, std::span<const float> scale,
                           int n_threads, float* out);

}  // namespace bpls
