// The activations: forward, inverse and derivatives, for float and double.
#pragma once

#include <cstddef>
#include <iterator>
#include <limits>
#include <string_view>

#include "bpls/bpls.h"
#include "bpls/export.h"

namespace bpls {

enum class Activation {
    identity = BPLS_IDENTITY,
    sigmoid = BPLS_SIGMOID,
    tanh = BPLS_TANH,
    relu = BPLS_RELU,
    leaky_relu = BPLS_LEAKY_RELU,
    elu = BPLS_ELU,
    softmax = BPLS_SOFTMAX,
    softplus = BPLS_SOFTPLUS,
    softminus = BPLS_SOFTMINUS
};

struct Interval {
    double low, high;
};

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr Interval real_line{-infinity, infinity};

struct ActivationInfo {
    Activation activation;
    const char* name;
    Interval domain;  // where inverse(forward(z)) is z again (softmax: z minus the mean of its row)
    Interval range;   // the values of forward(), or their limits
    bool injective;   // whether forward() is one-to-one over all z
    bool
        elementwise;  // whether a value depends on its own z alone; otherwise it depends on the row
};

// All activations, in the order of the enum. Names, kernel tables and bindings follow from this list.
inline constexpr ActivationInfo activation_list[] = {
    {Activation::identity, "identity", real_line, real_line, true, true},
    {Activation::sigmoid, "sigmoid", real_line, {0, 1}, true, true},
    {Activation::tanh, "tanh", real_line, {-1, 1}, true, true},
    {Activation::relu, "relu", {0, infinity}, {0, infinity}, false, true},
    {Activation::leaky_relu, "leaky_relu", real_line, real_line, true, true},
    {Activation::elu, "elu", real_line, {-1, infinity}, true, true},
    {Activation::softmax, "softmax", real_line, {0, 1}, false, false},
    {Activation::softplus, "softplus", real_line, {0, infinity}, true, true},
    {Activation::softminus, "softminus", real_line, {-infinity, 0}, true, true},
};
inline constexpr int activation_count = static_cast<int>(std::size(activation_list));

static_assert(
    [] {
        int place = 0;
        for (const ActivationInfo& info : activation_list)
            if (static_cast<int>(info.activation) != place++) return false;
        return true;
    }(),
    "activation_list is not in the order of Activation");

constexpr const ActivationInfo& info_of(Activation activation) noexcept {
    return activation_list[static_cast<int>(activation)];
}

// Returns null for an unknown name.
constexpr const ActivationInfo* find_activation(std::string_view name) noexcept {
    for (const ActivationInfo& info : activation_list)
        if (name == info.name) return &info;
    return nullptr;
}

inline constexpr double leaky_relu_slope = 0.01;

BPLS_API const char* name_of(Activation activation) noexcept;

// Applies the activation to rows x cols contiguous values; softmax runs along each row. `in` and `out` may be the same.
template <class T>
BPLS_API void forward(Activation activation, const T* in, T* out, std::size_t rows,
                      std::size_t cols, int n_threads = 0);

// Computes d forward(z)_i / d z_i; for softmax, the diagonal of the Jacobian, n(1 - n).
template <class T>
BPLS_API void derivative(Activation activation, const T* z, T* out, std::size_t rows,
                         std::size_t cols, int n_threads = 0);

// Computes J in, where J is the Jacobian, a symmetric matrix, at the z for which forward(z) has these values. It is
// diagonal, except for softmax, where a row n has diag(n) - n nᵀ. `out` may be `in` or `values`.
template <class T>
BPLS_API void jacobian(Activation activation, const T* in, const T* values, T* out,
                       std::size_t rows, std::size_t cols, int n_threads = 0);

// Sums the squares of the Jacobian's diagonal over all rows, for each column j into sums[j]; blocks of 256 rows are summed
// in T, the rest in double.
template <class T>
BPLS_API void squared_slopes(Activation activation, const T* values, double* sums, std::size_t rows,
                             std::size_t cols, int n_threads = 0);

// Computes the z with forward(z) = n. Values are first clipped to `margin` inside every open finite end of the range, those
// of relu to its closed end 0; a margin below the smallest normal number counts as that number. relu yields the preimage
// of least norm, softmax the one whose row has mean zero.
template <class T>
BPLS_API void inverse(Activation activation, const T* n, T* out, std::size_t rows, std::size_t cols,
                      T margin, int n_threads = 0);

}  // namespace bpls
