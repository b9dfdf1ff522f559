// The forward product A W by register tiles, row copies and the finiteness test, shared by all levels.
#pragma once

#include "kernels/product-inl.hpp"

namespace bpls::kernels {
namespace {

// Sums mr rows by nv vectors of columns in registers. Of the last vector only `last` columns are written; where w is not
// `padded`, only they are read.
template <class V, int mr, int nv, bool padded, bool listed>
inline void linear_vectors(const LinearProduct<typename V::Scalar>& product, std::size_t first,
                           std::size_t rows, int column, int last) noexcept {
    using T = typename V::Scalar;
    // Missing rows are computed as copies of the last one and not stored, so that a row's bits do not depend on its place.
    const T* row[mr];
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i)
        row[i] = product.a +
                 std::ptrdiff_t(first + (std::size_t(i) < rows ? i : rows - 1)) * product.a_stride;
    V sum[mr][nv];
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) sum[i][j] = V::zero();
    const T* const w = product.w + column;
    const std::ptrdiff_t w_stride = product.w_stride;
    const int* const nonzero = product.nonzero;
    for (int step = 0, depth = product.depth; step < depth; ++step) {
        const std::ptrdiff_t k = listed ? nonzero[step] : step;
        const T* from = w + k * w_stride;
        V x[nv];
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j)
            x[j] = !padded && j == nv - 1 ? V::load_first(from + j * V::lanes, last)
                                          : V::load(from + j * V::lanes);
#pragma GCC unroll 12
        for (int i = 0; i < mr; ++i) {
            const V y = V::broadcast(row[i][k]);
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) sum[i][j].multiply_add(y, x[j]);
        }
    }
    const T* const start = product.start ? product.start + column : nullptr;
    T* c = product.c + std::ptrdiff_t(first) * product.c_stride + column;
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i, c += product.c_stride) {
        if (std::size_t(i) >= rows) break;
        const T* const before = product.adds ? c : start;
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) {
            const std::ptrdiff_t at = j * V::lanes;
            if (j < nv - 1 || last == V::lanes) {
                if (before) sum[i][j] = V::load(before + at) + sum[i][j];
                sum[i][j].store(c + at);
            } else {
                if (before) sum[i][j] = V::load_first(before + at, last) + sum[i][j];
                sum[i][j].store_first(c + at, last);
            }
        }
    }
}

// All rows of a product, for nv vectors of columns. A few rows have few independent sums: the caller gives them more columns.
template <class V, int mr, int nv, bool padded, bool listed>
inline void linear_rows(const LinearProduct<typename V::Scalar>& product, int column,
                        int last) noexcept {
    for (std::size_t i = 0; i < product.rows; i += mr) {
        const std::size_t rest = product.rows - i;
        if (mr > 4 && rest <= 4)
            linear_vectors<V, 4, nv, padded, listed>(product, i, rest, column, last);
        else
            linear_vectors<V, mr, nv, padded, listed>(product, i, rest, column, last);
    }
}

// Takes nv vectors of columns at a time, fewer at the end, in even shares.
template <class V, int mr, int nv, bool padded, bool listed>
inline void linear_columns(const LinearProduct<typename V::Scalar>& product) noexcept {
    int vectors = (product.columns + V::lanes - 1) / V::lanes;
    for (int column = 0, taken; vectors > 0; vectors -= taken, column += taken * V::lanes) {
        const int parts = (vectors + nv - 1) / nv;
        taken = (vectors + parts - 1) / parts;
        const int until_end = product.columns - column - (taken - 1) * V::lanes;
        const int last = until_end < V::lanes ? until_end : V::lanes;
        if (taken == 1)
            linear_rows<V, mr, 1, padded, listed>(product, column, last);
        else if (taken == 2)
            linear_rows<V, mr, 2, padded, listed>(product, column, last);
        else if (nv > 2 && taken == 3)
            linear_rows < V, mr, nv<3 ? nv : 3, padded, listed>(product, column, last);
        else
            linear_rows<V, mr, nv, padded, listed>(product, column, last);
    }
}

template <class V, int mr, int nv, bool padded, bool listed>
void linear_by_rows(const LinearProduct<typename V::Scalar>& product) noexcept {
    // Levels whose tiles have eight rows have 32 registers, and room for more columns.
    if (product.rows == 1)
        linear_columns<V, 1, 4, padded, listed>(product);
    else if (product.rows == 2)
        linear_columns<V, 2, 4, padded, listed>(product);
    else if (product.rows <= 4)
        linear_columns<V, 4, mr == 8 ? 4 : 2, padded, listed>(product);
    else
        linear_columns<V, mr, nv, padded, listed>(product);
}

template <class V, int mr, int nv>
void linear_product(const LinearProduct<typename V::Scalar>& product) noexcept {
    if (!product.padded)
        linear_by_rows<V, mr, nv, false, false>(product);
    else if (product.nonzero)
        linear_by_rows<V, mr, nv, true, true>(product);
    else
        linear_by_rows<V, mr, nv, true, false>(product);
}

// ---- few columns: a vector goes along the rows of A, which are read once and in place

// The sums of the products of `rows` rows with `columns` columns of W, a vector of partial sums for each pair.
template <class V, int rows, int columns>
inline void add_dots(const typename V::Scalar* const* row, const typename V::Scalar* w,
                     std::ptrdiff_t w_stride, int depth, V* sum) noexcept {
    using T = typename V::Scalar;
    V of[rows][columns];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) of[i][j] = V::zero();
    const auto step = [&](int k, auto load) noexcept {
        V x[columns];
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) x[j] = V::load(w + j * w_stride + k);
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            const V y = load(row[i] + k);
#pragma GCC unroll 8
            for (int j = 0; j < columns; ++j) of[i][j].multiply_add(y, x[j]);
        }
    };
    int k = 0;
    for (; k + V::lanes <= depth; k += V::lanes)
        step(k, [](const T* p) noexcept { return V::load(p); });
    if (k < depth)
        step(k, [last = depth - k](const T* p) noexcept { return V::load_first(p, last); });
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) sum[i * columns + j] = of[i][j];
}

// The results of `rows` rows, which fill a vector or a part of it. If they are not `all` there, copies of the last of the `count`
// rows take their places and are not stored.
template <class V, int rows, int columns, bool all>
inline void dots_of_rows(const typename V::Scalar* a, std::ptrdiff_t a_stride, int count,
                         const typename V::Scalar* w, std::ptrdiff_t w_stride, int depth, V start,
                         typename V::Scalar* out) noexcept {
    using T = typename V::Scalar;
    constexpr int together = rows < 8 ? rows : 8;  // rows whose sums are in registers
    V sum[V::lanes];
#pragma GCC unroll 16
    for (int i = 0; i < V::lanes; ++i) sum[i] = V::zero();
#pragma GCC unroll 2
    for (int part = 0; part < rows; part += together) {
        const T* row[together];
#pragma GCC unroll 8
        for (int i = 0; i < together; ++i)
            row[i] = a + (all || part + i < count ? part + i : count - 1) * a_stride;
        add_dots<V, together, columns>(row, w, w_stride, depth, sum + part * columns);
    }
    const V total = start + V::sums(sum);
    if (all && rows * columns == V::lanes)
        total.store(out);
    else
        total.store_first(out, (all ? rows : count) * columns);
}

template <class V, int columns>
void dots(const typename V::Scalar* a, std::ptrdiff_t a_stride, std::size_t rows,
          const typename V::Scalar* w, std::ptrdiff_t w_stride, int depth,
          const typename V::Scalar* start, typename V::Scalar* out) noexcept {
    using T = typename V::Scalar;
    constexpr int group = V::lanes / columns;
    T starts[V::lanes] = {};
    if (start)
        for (int i = 0; i < group * columns; ++i) starts[i] = start[i % columns];
    const V before = V::load(starts);
    for (; rows >= group; rows -= group, a += group * a_stride, out += group * columns)
        dots_of_rows<V, group, columns, true>(a, a_stride, group, w, w_stride, depth, before, out);
    if (2 * rows >= group)
        dots_of_rows<V, group, columns, false>(a, a_stride, int(rows), w, w_stride, depth, before,
                                               out);
    else  // A group that is less than half full takes longer than its rows one by one.
        for (; rows > 0; --rows, a += a_stride, out += columns)
            dots_of_rows<V, 1, columns, true>(a, a_stride, 1, w, w_stride, depth, before, out);
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

template <class T>
void clip(T* values, const T* lower, const T* upper, std::size_t count) noexcept {
    for (std::size_t j = 0; j < count; ++j) {
        const T above = values[j] < lower[j] ? lower[j] : values[j];
        values[j] = above > upper[j] ? upper[j] : above;
    }
}

constexpr bool (*all_finite_f32)(const float*, std::size_t) noexcept =
    &all_finite<float, std::uint32_t, 0x7f800000u>;
constexpr bool (*all_finite_f64)(const double*, std::size_t) noexcept =
    &all_finite<double, std::uint64_t, 0x7ff0000000000000u>;

}  // namespace
}  // namespace bpls::kernels
