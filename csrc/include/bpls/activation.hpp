// The activations: forward, inverse and derivatives, for float and double.
#pragma once

#include <cstddef>

#include "bpls/export.h"

namespace bpls {

enum class Activation {
    identity,
    sigmoid,
    tanh,
    relu,
    leaky_relu,
    elu,
    softmax,
    softplus,
    softminus
};
inline constexpr int activation_count = 9;

inline constexpr double leaky_relu_slope = 0.01;

BPLS_API const char* name_of(Activation activation) noexcept;

// Elementwise over rows x cols values lying back to back; softmax runs along each row. `in` and `out` may be the same.
template <class T>
BPLS_API void forward(Activation activation, const T* in, T* out, std::size_t rows,
                      std::size_t cols, int n_threads = 0);

// d forward(z)_i / d z_i; of softmax the diagonal of the Jacobian, n(1 - n).
template <class T>
BPLS_API void derivative(Activation activation, const T* z, T* out, std::size_t rows,
                         std::size_t cols, int n_threads = 0);

// J in, where J is the Jacobian, a symmetric matrix, at the z for which forward(z) has these values. It is diagonal but
// for softmax, whose rows n have diag(n) - n nᵀ. `out` may be `in` or `values`.
template <class T>
BPLS_API void jacobian(Activation activation, const T* in, const T* values, T* out,
                       std::size_t rows, std::size_t cols, int n_threads = 0);

// sums[j], for each column, of the squares of that Jacobian's diagonal over all rows; in double, over 256 rows in T.
template <class T>
BPLS_API void squared_slopes(Activation activation, const T* values, double* sums, std::size_t rows,
                             std::size_t cols, int n_threads = 0);

// The z with forward(z) = n. Values are first clipped to `margin` inside every open finite end of the range, relu's to
// its closed end 0; a margin below the smallest normal number counts as that number. relu gives the preimage of least
// norm, softmax the one whose row has mean zero.
template <class T>
BPLS_API void inverse(Activation activation, const T* n, T* out, std::size_t rows, std::size_t cols,
                      T margin, int n_threads = 0);

}  // namespace bpls
