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
                        unsigned char* panel, int lane, std::size_t panel_bytes) noexcept {
    T* out = reinterpret_cast<T*>(panel) + lane;
    const auto next_panel = std::ptrdiff_t(panel_bytes / sizeof(T));  // elements
    const auto factor = [weight](int k) noexcept { return weighted ? T(weight[k]) : T(1); };
    const auto value = [](const unsigned char* p, T f) noexcept {
        return weighted ? T(read<S>(p)) * f : T(read<S>(p));
    };
    constexpr auto size = std::ptrdiff_t(sizeof(S));
    if (col_stride == size && width % panel_width == 0) {
        // Row by row through a few panels: a row's cache line is read once.
        for (int k = 0; k < rows; ++k, source += row_stride, out += panel_width) {
            const T f = factor(k);
            T* to = out;
            for (int c = 0; c < width; c += panel_width) {
                for (int i = 0; i < panel_width; ++i) to[i] = value(source + (c + i) * size, f);
                to += next_panel;
            }
        }
    } else if (col_stride == size) {
        for (int k = 0; k < rows; ++k, source += row_stride, out += panel_width) {
            const T f = factor(k);
            for (int c = 0; c < width; ++c) out[c] = value(source + c * size, f);
        }
    } else {
        for (int c = 0; c < width; ++c, source += col_stride) {
            T* to = out + c / panel_width * next_panel + c % panel_width;
            for (int k = 0; k < rows; ++k)
                to[k * panel_width] = value(source + k * row_stride, factor(k));
        }
    }
}

template <class S, class T, int panel_width>
void pack(const unsigned char* source, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
          int rows, int width, const double* weight, unsigned char* panel, int lane,
          std::size_t panel_bytes) noexcept {
    if (weight)
        pack_values<S, T, panel_width, true>(source, row_stride, col_stride, rows, width, weight,
                                             panel, lane, panel_bytes);
    else
        pack_values<S, T, panel_width, false>(source, row_stride, col_stride, rows, width, weight,
                                              panel, lane, panel_bytes);
}

// ---- packing bytes into panels of several rows per element

// `flip` is what every byte is xored with: 128 makes an unsigned byte x the signed x - 128. Rows that fill up the last
// element are zero bytes, unflipped: on the right side they are factors of zero.
template <class E, int step_rows, int panel_width, int flip>
void pack_bytes(const unsigned char* source, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
                int rows, int width, const double*, unsigned char* panel, int lane,
                std::size_t panel_bytes) noexcept {
    E* out = reinterpret_cast<E*>(panel) + lane * step_rows;
    const auto next_panel = std::ptrdiff_t(panel_bytes / sizeof(E));  // elements
    const auto byte = [=](int k, std::ptrdiff_t offset) noexcept {
        return E(source[k * row_stride + offset] ^ flip);
    };
    int k = 0;
    for (; k + step_rows <= rows; k += step_rows, out += panel_width * step_rows) {
        if (col_stride == 1 && width % panel_width == 0) {
            E* to = out;
            for (int c = 0; c < width; c += panel_width, to += next_panel)
                for (int i = 0; i < panel_width; ++i)
                    for (int r = 0; r < step_rows; ++r) to[i * step_rows + r] = byte(k + r, c + i);
        } else {
            for (int c = 0; c < width; ++c) {
                E* to = out + c / panel_width * next_panel + c % panel_width * step_rows;
                for (int r = 0; r < step_rows; ++r) to[r] = byte(k + r, c * col_stride);
            }
        }
    }
    if (k < rows)
        for (int c = 0; c < width; ++c) {
            E* to = out + c / panel_width * next_panel + c % panel_width * step_rows;
            for (int r = 0; r < step_rows; ++r)
                to[r] = k + r < rows ? byte(k + r, c * col_stride) : E(0);
        }
}

// The right side of a product with signed bytes: the header holds 128 · (column sums), what the flip took away.
template <int panel_width>
void pack_quads_right(const unsigned char* source, std::ptrdiff_t row_stride,
                      std::ptrdiff_t col_stride, int rows, int width, const double* weight,
                      unsigned char* panel, int lane, std::size_t panel_bytes) noexcept {
    for (int c = 0; c < width; c += panel_width, panel += panel_bytes) {
        const unsigned char* from = source + c * col_stride;
        const int columns = width - c < panel_width ? width - c : panel_width;
        auto* sums = reinterpret_cast<std::int32_t*>(panel) + lane;
        for (int i = 0; i < columns; ++i) sums[i] = 0;
        for (int k = 0; k < rows; ++k)
            for (int i = 0; i < columns; ++i)
                sums[i] += 128 * from[k * row_stride + i * col_stride];
        pack_bytes<std::uint8_t, 4, panel_width, 0>(
            from, row_stride, col_stride, rows, columns, weight,
            panel + panel_width * sizeof(std::int32_t), lane, panel_bytes);
    }
}

// ---- register tiles

// mr x (nv vectors) sums in registers. With `headed`, they start from the right panel's header instead of zero.
template <class V, int mr, int nv, bool headed>
void tile(const unsigned char* left, std::ptrdiff_t left_stride, const unsigned char* right,
          int steps, double* out, std::ptrdiff_t stride) noexcept {
    using T = typename V::Scalar;
    const T* a = reinterpret_cast<const T*>(left);
    const T* b = reinterpret_cast<const T*>(right);
    V sum[mr][nv];
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) sum[i][j] = headed ? V::load(b + j * V::lanes) : V::zero();
    if constexpr (headed) b += nv * V::lanes;
    for (int k = 0; k < steps; ++k, a += left_stride, b += nv * V::lanes) {
        V x[nv];
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) x[j] = V::load(b + j * V::lanes);
#pragma GCC unroll 12
        for (int i = 0; i < mr; ++i) {
            const V y = V::broadcast(a[i]);
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) sum[i][j].multiply_add(y, x[j]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) sum[i][j].add_to(out + i * stride + j * V::lanes);
}

// The packed element that stands for a factor of one in each of its rows.
template <class T, int step_rows>
constexpr T packed_one = step_rows == 1 ? T(1) : T(step_rows == 2 ? 0x00010001 : 0x01010101);

template <class V, int nv, int step_rows, bool headed>
void column_sums(const unsigned char* right, int steps, double* out) noexcept {
    using T = typename V::Scalar;
    constexpr int chains = 4;  // sums that do not wait for one another
    const T* b = reinterpret_cast<const T*>(right) + (headed ? nv * V::lanes : 0);
    const V one = V::broadcast(packed_one<T, step_rows>);
    V sum[chains][nv];
    for (int c = 0; c < chains; ++c)
        for (int j = 0; j < nv; ++j) sum[c][j] = V::zero();
    int k = 0;
    for (; k + chains <= steps; k += chains)
#pragma GCC unroll 12
        for (int c = 0; c < chains; ++c, b += nv * V::lanes)
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) sum[c][j].multiply_add(one, V::load(b + j * V::lanes));
    for (; k < steps; ++k, b += nv * V::lanes)
        for (int j = 0; j < nv; ++j) sum[0][j].multiply_add(one, V::load(b + j * V::lanes));
    for (int c = 0; c < chains; ++c)
        for (int j = 0; j < nv; ++j) sum[c][j].add_to(out + j * V::lanes);
}

// ---- the products

template <class V, int mr, int nv>
constexpr Product float_product() noexcept {
    using T = typename V::Scalar;
    constexpr int nr = nv * V::lanes;
    constexpr bool wide = sizeof(T) == sizeof(double);
    return {.mr = mr,
            .nr = nr,
            .block_rows = block_rows,
            .step_rows = 1,
            .element = sizeof(T),
            .right_header = 0,
            .pack_left = {&pack<std::uint8_t, T, mr>, &pack<float, T, mr>,
                          wide ? &pack<double, T, mr> : nullptr},
            .pack_right = {&pack<std::uint8_t, T, nr>, &pack<float, T, nr>,
                           wide ? &pack<double, T, nr> : nullptr},
            .tile = &tile<V, mr, nv, false>,
            .column_sums = &column_sums<V, nv, 1, false>,
            .peak = &peak<V, 1>};
}

template <class V, int mr, int nv>
constexpr Product pairs_product() noexcept {
    constexpr int nr = nv * V::lanes;
    return {.mr = mr,
            .nr = nr,
            .block_rows = integer_block_rows,
            .step_rows = 2,
            .element = 4,
            .right_header = 0,
            .pack_left = {&pack_bytes<std::int16_t, 2, mr, 0>, nullptr, nullptr},
            .pack_right = {&pack_bytes<std::int16_t, 2, nr, 0>, nullptr, nullptr},
            .tile = &tile<V, mr, nv, false>,
            .column_sums = &column_sums<V, nv, 2, false>,
            .peak = &peak<V, 2>};
}

template <class V, int mr, int nv>
constexpr Product quads_product() noexcept {
    constexpr int nr = nv * V::lanes;
    return {.mr = mr,
            .nr = nr,
            .block_rows = integer_block_rows,
            .step_rows = 4,
            .element = 4,
            .right_header = nr * int(sizeof(std::int32_t)),
            .pack_left = {&pack_bytes<std::uint8_t, 4, mr, 128>, nullptr, nullptr},
            .pack_right = {&pack_quads_right<nr>, nullptr, nullptr},
            .tile = &tile<V, mr, nv, true>,
            .column_sums = &column_sums<V, nv, 4, true>,
            .peak = &peak<V, 4>};
}

}  // namespace
}  // namespace bpls::kernels
