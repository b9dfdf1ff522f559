// The bodies of the probes, shared by all levels; the vector types come from a simd_*.hpp.
#pragma once

#include <type_traits>

#include "kernels/lists-inl.hpp"
#include "kernels/probes.hpp"

namespace bpls::kernels {
namespace {

// Multiply-adds that wait for neither memory nor each other. Every chain multiplies itself, so that the compiler cannot take
// a product out of the loop. Added to its own product with -2, a float only changes its sign, and an integer wraps; the
// volatile values hide this from the compiler.
template <class V>
double peak(std::size_t rounds) noexcept {
    using T = typename V::Scalar;
    // Twelve hide a latency of six cycles at two operations a cycle; with the factor they fit in 16 registers.
    constexpr int chains = 12;
    volatile T hidden_factor = T(-2);
    volatile T hidden_start = T(1);
    const V factor = V::broadcast(hidden_factor);
    V sum[chains];
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i] = V::broadcast(hidden_start);
#pragma GCC unroll 4
    for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
        for (int i = 0; i < chains; ++i) sum[i].multiply_add(sum[i], factor);
    }
    double total[V::lanes] = {};
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sum[i].add_to(total);
    [[maybe_unused]] volatile double used[V::lanes];
    for (int i = 0; i < V::lanes; ++i) used[i] = total[i];
    return 2.0 * chains * V::lanes * V::step_rows * static_cast<double>(rounds);
}

// Reads `count` values, a multiple of read_multiple, and or-s them together.
template <class V>
void read_all(const typename V::Scalar* values, std::size_t count) noexcept {
    constexpr int chains = 8;
    static_assert(read_multiple % (chains * V::lanes) == 0);
    V seen[chains];
#pragma GCC unroll 8
    for (int i = 0; i < chains; ++i) seen[i] = V::zero();
    for (std::size_t at = 0; at < count; at += chains * V::lanes) {
#pragma GCC unroll 8
        for (int i = 0; i < chains; ++i)
            seen[i] = seen[i] | V::load(values + at + std::size_t(i * V::lanes));
    }
    [[maybe_unused]] volatile typename V::Scalar used;
    typename V::Scalar lanes[V::lanes];
#pragma GCC unroll 8
    for (int i = 1; i < chains; ++i) seen[0] = seen[0] | seen[i];
    seen[0].store(lanes);
    used = lanes[0];
}

template <class F32, class F64, class ByteProducts>
constexpr Probes make_probes() noexcept {
    return {by_dtype<Peak>([]<class S>() -> Peak {
                if constexpr (std::is_same_v<S, std::uint8_t>)
                    return &peak<ByteProducts>;
                else if constexpr (represents<float, S>)
                    return &peak<F32>;
                else
                    return &peak<F64>;
            }),
            &read_all<F32>};
}

}  // namespace
}  // namespace bpls::kernels
