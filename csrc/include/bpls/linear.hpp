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
    bool bias = false;  // the last row of W is the bias
    Activation activation = Activation::identity;
    int n_threads = 0;  // 0: default_threads()
};

// Computes out = act(A W + b), A.rows x W.cols in row-major order. T is float if W is float32 and A is uint8 or float32, else
// double; any other T throws std::invalid_argument. A row's bits do not depend on the other rows.
//
// Returns whether the first pre-activation of every row is finite. If W is finite, `true` implies that A is, without another
// pass over A.
template <class T>
BPLS_API bool linear(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options,
                     T* out);

// Computes out = J (A W + b), row by row, where J is the Jacobian of the activation at the pre-activations whose activation is
// `values`. `values` is A.rows x W.cols, row-major, like `out`, and may be the same. A change of A by dA, or of W by dW,
// changes act(A W + b) by tangent(dA, W) or tangent(A, dW). J is symmetric, so tangent(R, Wᵀ) of the layer above pulls
// residuals R back. Types and return value are those of linear().
template <class T>
BPLS_API bool tangent(const ConstMatrix& A, const ConstMatrix& W, const T* values,
                      const LinearOptions& options, T* out);

// The most columns of A that linear_bytes() takes: every product adds up to 255 · 128 to an int32 sum.
inline constexpr std::size_t most_byte_columns = 65'536;

// Computes out[i, j] = scale[j] · Σ_k A[i, k] · W[k, j], A.rows x scale.size() in row-major order. A has bytes, contiguous within
// a row; W is row-major. Sums are integers, and each is rounded once before it is scaled: the bits are the same at every
// level. Throws std::invalid_argument for any other A, or for more columns than most_byte_columns.
BPLS_API void linear_bytes(const ConstMatrix& A, const std::int8_t* W, std::span<const float> scale,
                           int n_threads, float* out);

}  // namespace bpls
