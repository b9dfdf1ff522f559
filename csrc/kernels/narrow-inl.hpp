// Products of matrices with few columns, read in place: memory limits their speed. Shared by all levels.
#pragma once

#include <cstddef>

#include "kernels/prefetch-inl.hpp"
#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// ---- both sides have at most as many columns as a vector has lanes: a vector holds one or several rows

// Adds right[l] · left[place of l] to the sums of one vector of rows.
template <class V, int count>
inline void add_group(const typename V::Scalar* left, const typename V::Scalar* right,
                      const typename V::Places (&places)[count], V (&sum)[count]) noexcept {
    const V x = V::load(right), z = V::load(left);
#pragma GCC unroll 16
    for (int j = 0; j < count; ++j) sum[j].multiply_add(x, z.permuted(places[j]));
}

template <class V, int count>
void grouped(const typename V::Scalar* left, int left_columns, const typename V::Scalar* right,
             int right_columns, bool rotated, std::size_t rows, double* sums) noexcept {
    using T = typename V::Scalar;
    // The row and the column of every lane. Lanes after the last whole row are not used.
    int first_of_row[V::lanes], column[V::lanes];
    for (int lane = 0, row = 0, c = 0; lane < V::lanes; ++lane) {
        const bool whole = (row + 1) * right_columns <= V::lanes;
        first_of_row[lane] = whole ? row * left_columns : 0;
        column[lane] = whole ? c : 0;
        if (++c == right_columns) ++row, c = 0;
    }
    typename V::Places places[count];
#pragma GCC unroll 16
    for (int j = 0; j < count; ++j)
        places[j] = V::places([&](int lane) noexcept {
            int from = rotated ? column[lane] + j : j;
            if (rotated && from >= left_columns) from -= left_columns;
            return from < left_columns ? first_of_row[lane] + from : 0;
        });
    const auto group = std::size_t(V::lanes / right_columns);  // rows
    const std::size_t left_step = group * std::size_t(left_columns),
                      right_step = group * std::size_t(right_columns);
    const auto narrower = std::size_t(left_columns < right_columns ? left_columns : right_columns);
    while (rows > 0) {
        const std::size_t block = rows < std::size_t(block_rows) ? rows : std::size_t(block_rows);
        // Whole vectors are read as long as they end before the data do.
        const std::size_t readable =
            rows * narrower < V::lanes ? 0 : (rows * narrower - V::lanes) / (group * narrower) + 1;
        const std::size_t groups = block / group < readable ? block / group : readable;
        V sum[count];
#pragma GCC unroll 16
        for (int j = 0; j < count; ++j) sum[j] = V::zero();
        for (std::size_t k = 0; k < groups; ++k, left += left_step, right += right_step)
            add_group(left, right, places, sum);
        rows -= groups * group;
        if (groups == 0) {
            const std::size_t last = rows < group ? rows : group;
            T left_rows[V::lanes] = {}, right_rows[V::lanes] = {};
            for (std::size_t i = 0; i < last * std::size_t(left_columns); ++i)
                left_rows[i] = left[i];
            for (std::size_t i = 0; i < last * std::size_t(right_columns); ++i)
                right_rows[i] = right[i];
            add_group(left_rows, right_rows, places, sum);
            left += left_step;
            right += right_step;
            rows -= last;
        }
#pragma GCC unroll 16
        for (int j = 0; j < count; ++j) sum[j].add_to(sums + j * V::lanes);
    }
}

// ---- at least a vector of columns on the right side

template <class V, int mr, int nv, bool stores>
void strided_tile(const typename V::Scalar* left, std::ptrdiff_t left_stride,
                  const typename V::Scalar* right, std::ptrdiff_t right_stride, std::ptrdiff_t last,
                  int rows, double* out, std::ptrdiff_t stride, const unsigned char* prefetch_at,
                  std::ptrdiff_t prefetch_stride) noexcept {
    V sum[mr][nv];
#pragma GCC unroll 16
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) sum[i][j] = V::zero();
    for (int k = 0; k < rows; ++k, left += left_stride, right += right_stride) {
        prefetch(prefetch_at + k * prefetch_stride);
        V x[nv];
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) x[j] = V::load(right + (j < nv - 1 ? j * V::lanes : last));
#pragma GCC unroll 16
        for (int i = 0; i < mr; ++i) {
            const V y = V::broadcast(left[i]);
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) sum[i][j].multiply_add(y, x[j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j)
            if constexpr (stores)
                sum[i][j].store(out + i * stride + j * V::lanes);
            else
                sum[i][j].add_to(out + i * stride + j * V::lanes);
}

// ---- one to four columns on the left side

// Adds `count` rows to the sums: each vector of sums is read and written once for all of them.
template <class V, int m, int count>
inline void add_thin(const typename V::Scalar* left, std::ptrdiff_t left_stride,
                     const typename V::Scalar* right, std::ptrdiff_t right_stride, int columns,
                     typename V::Scalar* sums, std::ptrdiff_t stride) noexcept {
    using T = typename V::Scalar;
    V y[count][m];
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k)
#pragma GCC unroll 4
        for (int i = 0; i < m; ++i) y[k][i] = V::broadcast(left[k * left_stride + i]);
    const auto add = [&](int c, auto load) noexcept {
        V x[count];
#pragma GCC unroll 8
        for (int k = 0; k < count; ++k) x[k] = load(right + k * right_stride + c);
#pragma GCC unroll 4
        for (int i = 0; i < m; ++i) {
            V sum = V::load(sums + i * stride + c);
#pragma GCC unroll 8
            for (int k = 0; k < count; ++k) sum.multiply_add(y[k][i], x[k]);
            sum.store(sums + i * stride + c);
        }
    };
    int c = 0;
    for (; c + V::lanes <= columns; c += V::lanes)
        add(c, [](const T* p) noexcept { return V::load(p); });
    if (const int rest = columns - c; rest > 0)
        add(c, [rest](const T* p) noexcept { return V::load_first(p, rest, T(0)); });
}

template <class V, int m>
void thin_product(const typename V::Scalar* left, std::ptrdiff_t left_stride,
                  const typename V::Scalar* right, std::ptrdiff_t right_stride, int rows,
                  int columns, typename V::Scalar* sums, double* out,
                  std::ptrdiff_t stride) noexcept {
    constexpr int together = m == 1 ? 8 : 4;
    for (std::ptrdiff_t c = 0; c < m * stride; c += V::lanes) V::zero().store(sums + c);
    int k = 0;
    for (; k + together <= rows; k += together)
        add_thin<V, m, together>(left + k * left_stride, left_stride, right + k * right_stride,
                                 right_stride, columns, sums, stride);
    for (; k < rows; ++k)
        add_thin<V, m, 1>(left + k * left_stride, left_stride, right + k * right_stride,
                          right_stride, columns, sums, stride);
    for (std::ptrdiff_t c = 0; c < m * stride; c += V::lanes) V::load(sums + c).add_to(out + c);
}

template <class V, int mr, int nv>
constexpr Narrow<typename V::Scalar> narrow() noexcept {
    constexpr int quarter = V::lanes < 4 ? 1 : V::lanes / 4;
    constexpr auto sums = [](int quarters) {
        return quarters * quarter < V::lanes ? quarters * quarter : V::lanes;
    };
    return {
        V::lanes,
        mr,
        nv,
        quarter,
        {&grouped<V, sums(1)>, &grouped<V, sums(2)>, &grouped<V, sums(3)>, &grouped<V, sums(4)>},
        {&strided_tile<V, mr, 1, false>, &strided_tile<V, mr, 2, false>,
         &strided_tile<V, mr, nv, false>},
        {&strided_tile<V, mr / 2, 1, false>, &strided_tile<V, mr / 2, 2, false>,
         &strided_tile<V, mr / 2, nv, false>},
        {&strided_tile<V, mr, 1, true>, &strided_tile<V, mr, 2, true>,
         &strided_tile<V, mr, nv, true>},
        {&strided_tile<V, mr / 2, 1, true>, &strided_tile<V, mr / 2, 2, true>,
         &strided_tile<V, mr / 2, nv, true>},
        {&thin_product<V, 1>, &thin_product<V, 2>, &thin_product<V, 3>, &thin_product<V, 4>}};
}

}  // namespace
}  // namespace bpls::kernels
