// What the arithmetic of a product allows at most: multiply-adds that wait for neither memory nor each other. The
// benchmarks state their results as a part of it.
#pragma once

#include <cstddef>

namespace bpls::kernels {
namespace {

// Each lane of V multiplies and adds `step_rows` pairs. Every chain is its own multiplier, so that no product can be
// taken out of the loop; times -2 a float changes sign and never grows, and an integer wraps. The volatile values hide this from the compiler.
template <class V, int step_rows>
double peak(std::size_t rounds) noexcept {
    using T = typename V::Scalar;
    constexpr int chains =
        12;  // hide a latency of six at two a cycle; with the factor they fit in 16 registers
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
    return 2.0 * chains * V::lanes * step_rows * static_cast<double>(rounds);
}

// Reads `count` values, a multiple of eight vectors, and does next to nothing with them.
template <class V>
void read_all(const typename V::Scalar* values, std::size_t count) noexcept {
    constexpr int chains = 8;
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

}  // namespace
}  // namespace bpls::kernels
