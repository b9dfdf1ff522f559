// Packing and register tiles of the products AᵀB, shared by all levels; the vector types come from a simd_*.hpp.
// Everything has internal linkage: a copy compiled for one instruction set must never be linked into another.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "kernels/peak-inl.hpp"
#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// Reads an element that may not be aligned.
template <class S>
inline S read(const unsigned char* p) noexcept {
    S x;
    memcpy(&x, p, sizeof x);
    return x;
}

// ---- packing into panels of one row per element

template <class S, class T, int panel_width, bool weighted>
inline void pack_values(const unsigned char* source, std::ptrdiff_t row_stride,
                        std::ptrdiff_t col_stride, int rows, int width, const double* weight,
                        T* out) noexcept {
    const auto factor = [weight](int k) noexcept { return weighted ? T(weight[k]) : T(1); };
    const auto value = [](const unsigned char* p, T f) noexcept {
        return weighted ? T(read<S>(p)) * f : T(read<S>(p));
    };
    constexpr auto size = std::ptrdiff_t(sizeof(S));
    if (col_stride == size && width == panel_width) {
        for (int k = 0; k < rows; ++k, source += row_stride, out += panel_width) {
            const T f = factor(k);
            for (int c = 0; c < panel_width; ++c) out[c] = value(source + c * size, f);
        }
    } else if (col_stride == size) {
        for (int k = 0; k < rows; ++k, source += row_stride, out += panel_width) {
            const T f = factor(k);
            for (int c = 0; c < width; ++c) out[c] = value(source + c * size, f);
        }
    } else {
        for (int c = 0; c < width; ++c, source += col_stride)
            for (int k = 0; k < rows; ++k)
                out[k * panel_width + c] = value(source + k * row_stride, factor(k));
    }
}

template <class S, class T, int panel_width>
void pack(const unsigned char* source, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
          int rows, int width, const double* weight, unsigned char* panel, int lane) noexcept {
    T* out = reinterpret_cast<T*>(panel) + lane;
    if (weight)
        pack_values<S, T, panel_width, true>(source, row_stride, col_stride, rows, width, weight,
                                             out);
    else
        pack_values<S, T, panel_width, false>(source, row_stride, col_stride, rows, width, weight,
                                              out);
}

// ---- packing bytes into panels of several rows per element

// `flip` is added to every byte modulo the element type: 128 makes an unsigned byte x the signed x - 128. Rows that
// fill up the last element are zero bytes, unflipped: on the right side they are factors of zero.
template <class E, int step_rows, int panel_width, int flip>
void pack_bytes(const unsigned char* source, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
                int rows, int width, const double*, unsigned char* panel, int lane) noexcept {
    E* out = reinterpret_cast<E*>(panel) + lane * step_rows;
    int k = 0;
    for (; k + step_rows <= rows; k += step_rows, out += panel_width * step_rows)
        for (int c = 0; c < width; ++c)
            for (int r = 0; r < step_rows; ++r)
                out[c * step_rows + r] = E(source[(k + r) * row_stride + c * col_stride] ^ flip);
    if (k < rows)
        for (int c = 0; c < width; ++c)
            for (int r = 0; r < step_rows; ++r)
                out[c * step_rows + r] =
                    k + r < rows ? E(source[(k + r) * row_stride + c * col_stride] ^ flip) : E(0);
}

// The right side of a product with signed bytes: the header holds 128 · (column sums), what the flip took away.
template <int panel_width>
void pack_quads_right(const unsigned char* source, std::ptrdiff_t row_stride,
                      std::ptrdiff_t col_stride, int rows, int width, const double* weight,
                      unsigned char* panel, int lane) noexcept {
    auto* sums = reinterpret_cast<std::int32_t*>(panel) + lane;
    for (int c = 0; c < width; ++c) sums[c] = 0;
    for (int k = 0; k < rows; ++k)
        for (int c = 0; c < width; ++c) sums[c] += 128 * source[k * row_stride + c * col_stride];
    pack_bytes<std::uint8_t, 4, panel_width, 0>(source, row_stride, col_stride, rows, width, weight,
                                                panel + panel_width * sizeof(std::int32_t), lane);
}

// ---- register tiles

// mr x (nv vectors) sums in registers. With `headed`, they start from the right panel's header instead of zero.
template <class V, int mr, int nv, bool headed>
void tile(const unsigned char* left, const unsigned char* right, int steps, double* out,
          std::ptrdiff_t stride) noexcept {
    using T = typename V::Scalar;
    const T* a = reinterpret_cast<const T*>(left);
    const T* b = reinterpret_cast<const T*>(right);
    V sum[mr][nv];
#pragma GCC unroll 8
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < nv; ++j) sum[i][j] = headed ? V::load(b + j * V::lanes) : V::zero();
    if constexpr (headed) b += nv * V::lanes;
    for (int k = 0; k < steps; ++k, a += mr, b += nv * V::lanes) {
        V x[nv];
#pragma GCC unroll 8
        for (int j = 0; j < nv; ++j) x[j] = V::load(b + j * V::lanes);
#pragma GCC unroll 8
        for (int i = 0; i < mr; ++i) {
            const V y = V::broadcast(a[i]);
#pragma GCC unroll 8
            for (int j = 0; j < nv; ++j) sum[i][j].multiply_add(y, x[j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < nv; ++j) sum[i][j].add_to(out + i * stride + j * V::lanes);
}

// ---- the products

template <class V, int mr, int nv>
constexpr Product float_product() noexcept {
    using T = typename V::Scalar;
    constexpr int nr = nv * V::lanes;
    constexpr bool wide = sizeof(T) == sizeof(double);
    return {
        mr,
        nr,
        1,
        sizeof(T),
        0,
        {&pack<std::uint8_t, T, mr>, &pack<float, T, mr>, wide ? &pack<double, T, mr> : nullptr},
        {&pack<std::uint8_t, T, nr>, &pack<float, T, nr>, wide ? &pack<double, T, nr> : nullptr},
        &tile<V, mr, nv, false>,
        &peak<V, 1>};
}

template <class V, int mr, int nv>
constexpr Product pairs_product() noexcept {
    constexpr int nr = nv * V::lanes;
    return {mr,
            nr,
            2,
            4,
            0,
            {&pack_bytes<std::int16_t, 2, mr, 0>, nullptr, nullptr},
            {&pack_bytes<std::int16_t, 2, nr, 0>, nullptr, nullptr},
            &tile<V, mr, nv, false>,
            &peak<V, 2>};
}

template <class V, int mr, int nv>
constexpr Product quads_product() noexcept {
    constexpr int nr = nv * V::lanes;
    return {mr,
            nr,
            4,
            4,
            nr * int(sizeof(std::int32_t)),
            {&pack_bytes<std::uint8_t, 4, mr, 128>, nullptr, nullptr},
            {&pack_quads_right<nr>, nullptr, nullptr},
            &tile<V, mr, nv, true>,
            &peak<V, 4>};
}

}  // namespace
}  // namespace bpls::kernels
