// The forward product A W by register tiles, row copies and the finiteness test, shared by all levels.
#pragma once

#include "kernels/product-inl.hpp"

namespace bpls::kernels {
namespace {

// With `partial`, only `last` lanes of the last of the nv vectors of columns are read.
template <class V, int mr, int nv, bool partial, bool listed>
inline void linear_vectors(const typename V::Scalar* a, std::ptrdiff_t a_stride, int rows,
                           const typename V::Scalar* w, std::ptrdiff_t w_stride, const int* nonzero,
                           int depth, int last, typename V::Scalar* c,
                           std::ptrdiff_t c_stride) noexcept {
    using T = typename V::Scalar;
    // Missing rows are computed as copies of the last one and not stored, so that a row's bits do not depend on its place.
    const T* row[mr];
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i) row[i] = a + (i < rows ? i : rows - 1) * a_stride;
    V sum[mr][nv];
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) sum[i][j] = V::zero();
    for (int step = 0; step < depth; ++step) {
        const std::ptrdiff_t k = listed ? nonzero[step] : step;
        const T* from = w + k * w_stride;
        V x[nv];
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j)
            x[j] = partial && j == nv - 1 ? V::load_first(from + j * V::lanes, last, T(0))
                                          : V::load(from + j * V::lanes);
#pragma GCC unroll 12
        for (int i = 0; i < mr; ++i) {
            const V y = V::broadcast(row[i][k]);
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) sum[i][j].multiply_add(y, x[j]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i) {
        if (i >= rows) break;
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) {
            T* out = c + i * c_stride + j * V::lanes;
            V total = V::load(out);
            total.multiply_add(V::broadcast(T(1)), sum[i][j]);
            total.store(out);
        }
    }
}

// Takes as many vectors at a time as the registers hold, fewer at the end.
template <class V, int mr, int nv, bool listed>
inline void linear_columns(const typename V::Scalar* a, std::ptrdiff_t a_stride, int rows,
                           const typename V::Scalar* w, std::ptrdiff_t w_stride, const int* nonzero,
                           int depth, int columns, typename V::Scalar* c,
                           std::ptrdiff_t c_stride) noexcept {
    constexpr int width = nv * V::lanes;
    const auto call = [&](auto function, int last) noexcept {
        function(a, a_stride, rows, w, w_stride, nonzero, depth, last, c, c_stride);
    };
    for (; columns >= width; columns -= width, w += width, c += width)
        call(&linear_vectors<V, mr, nv, false, listed>, 0);
    if constexpr (nv > 1) {
        if (columns > 0)
            linear_columns<V, mr, nv / 2, listed>(a, a_stride, rows, w, w_stride, nonzero, depth,
                                                  columns, c, c_stride);
    } else {
        if (columns > 0) call(&linear_vectors<V, mr, 1, true, listed>, columns);
    }
}

template <class V, int mr, int nv>
void linear_tile(const typename V::Scalar* a, std::ptrdiff_t a_stride, int rows,
                 const typename V::Scalar* w, std::ptrdiff_t w_stride, const int* nonzero,
                 int depth, int columns, typename V::Scalar* c, std::ptrdiff_t c_stride) noexcept {
    const auto call = [&](auto function) noexcept {
        function(a, a_stride, rows, w, w_stride, nonzero, depth, columns, c, c_stride);
    };
    const auto tile = [&]<int tile_rows, int vectors>() noexcept {
        nonzero ? call(&linear_columns<V, tile_rows, vectors, true>)
                : call(&linear_columns<V, tile_rows, vectors, false>);
    };
    // A few rows have few independent sums: more columns at a time hide the latency. Levels whose tiles have eight rows have
    // 32 registers, and room for more.
    if (rows == 1)
        tile.template operator()<1, 4>();
    else if (rows == 2)
        tile.template operator()<2, 4>();
    else if (rows <= 4)
        tile.template operator()<4, mr == 8 ? 4 : 2>();
    else
        tile.template operator()<mr, nv>();
}

template <class S, class T>
void copy_rows(const unsigned char* source, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
               std::size_t rows, std::size_t cols, T* out, std::size_t out_stride) noexcept {
    constexpr auto size = std::ptrdiff_t(sizeof(S));
    for (std::size_t i = 0; i < rows; ++i, source += row_stride, out += out_stride) {
        if (col_stride == size)
            for (std::size_t c = 0; c < cols; ++c)
                out[c] = T(read<S>(source + std::ptrdiff_t(c) * size));
        else
            for (std::size_t c = 0; c < cols; ++c)
                out[c] = T(read<S>(source + std::ptrdiff_t(c) * col_stride));
    }
}

// Merges the bits of all rows in a group of columns.
template <class Bits, int width>
inline void merge_rows(const unsigned char* from, std::ptrdiff_t stride, int rows, int columns,
                       Bits (&seen)[width]) noexcept {
    for (int c = 0; c < width; ++c) seen[c] = 0;
    for (int i = 0; i < rows; ++i, from += stride)
        for (int c = 0; c < columns; ++c)
            seen[c] |= read<Bits>(from + std::ptrdiff_t(sizeof(Bits)) * c);
}

template <class V>
int nonzero_columns(const typename V::Scalar* a, std::ptrdiff_t stride, int rows, int columns,
                    int* nonzero) noexcept {
    using Bits = typename V::Bits;
    constexpr int width = 64;
    const auto* from = reinterpret_cast<const unsigned char*>(a);
    int count = 0;
    for (int begin = 0; begin < columns; begin += width, from += width * sizeof(Bits)) {
        Bits seen[width];
        const int rest = columns - begin < width ? columns - begin : width;
        const Bits* merged = seen;
        // The usual cases: a number of columns known to the compiler, and one row, which needs no merging.
        if (rest < width)
            merge_rows(from, stride * std::ptrdiff_t(sizeof(Bits)), rows, rest, seen);
        else if (rows > 1)
            merge_rows(from, stride * std::ptrdiff_t(sizeof(Bits)), rows, width, seen);
        else
            merged = reinterpret_cast<const Bits*>(from);
        if constexpr (requires { V::list_nonzero(merged, 0, nonzero); }) {
            for (int c = 0; c < rest; c += V::lanes)
                count += V::list_nonzero(merged + c, begin + c, nonzero + count);
        } else {
            for (int c = 0; c < rest; ++c) {
                nonzero[count] = begin + c;
                count += merged[c] != 0;
            }
        }
    }
    return count;
}

template <class T, class Bits, Bits exponent>
bool all_finite(const T* values, std::size_t count) noexcept {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values);
    Bits bad = 0;
    for (std::size_t i = 0; i < count; ++i)
        bad |= Bits((read<Bits>(bytes + i * sizeof(T)) & exponent) == exponent);
    return bad == 0;
}

constexpr bool (*all_finite_f32)(const float*, std::size_t) noexcept =
    &all_finite<float, std::uint32_t, 0x7f800000u>;
constexpr bool (*all_finite_f64)(const double*, std::size_t) noexcept =
    &all_finite<double, std::uint64_t, 0x7ff0000000000000u>;

}  // namespace
}  // namespace bpls::kernels
