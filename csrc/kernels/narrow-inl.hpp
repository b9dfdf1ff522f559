// Products of matrices with few columns, read in place: memory limits their speed. Shared by all levels.
#pragma once

#include <cstddef>

#include "kernels/product-inl.hpp"

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
             int right_columns, bool rotated, int rows, double* sums) noexcept {
    using T = typename V::Scalar;
    const int group = V::lanes / right_columns;  // rows
    typename V::Places places[count];
#pragma GCC unroll 16
    for (int j = 0; j < count; ++j)
        places[j] = V::places([=](int lane) noexcept {
            const int row = lane / right_columns, column = lane % right_columns;
            const int from = rotated ? (column + j) % left_columns : j;
            return row < group && from < left_columns ? row * left_columns + from : 0;
        });
    V sum[count];
#pragma GCC unroll 16
    for (int j = 0; j < count; ++j) sum[j] = V::zero();
    const int left_step = group * left_columns, right_step = group * right_columns;
    int k = 0;
    // Whole vectors are read as long as they end before the data do.
    for (; (rows - k) * left_columns >= V::lanes && (rows - k) * right_columns >= V::lanes;
         k += group, left += left_step, right += right_step)
        add_group(left, right, places, sum);
    for (; k < rows; k += group, left += left_step, right += right_step) {
        const int last = rows - k < group ? rows - k : group;
        T left_rows[V::lanes] = {}, right_rows[V::lanes] = {};
        for (int i = 0; i < last * left_columns; ++i) left_rows[i] = left[i];
        for (int i = 0; i < last * right_columns; ++i) right_rows[i] = right[i];
        add_group(left_rows, right_rows, places, sum);
    }
#pragma GCC unroll 16
    for (int j = 0; j < count; ++j) sum[j].add_to(sums + j * V::lanes);
}

// ---- at least a vector of columns on the right side

template <class V, int mr, int nv>
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
        for (int j = 0; j < nv; ++j) sum[i][j].add_to(out + i * stride + j * V::lanes);
}

// ---- one to four columns on the left side

// Adds `count` rows to the sums: each vector of sums is read and written once for all of them.
template <class V, int m, int count>
inline void add_thin(const typename V::Scalar* left, const typename V::Scalar* right,
                     std::ptrdiff_t right_stride, int columns, typename V::Scalar* sums,
                     std::ptrdiff_t stride) noexcept {
    using T = typename V::Scalar;
    V y[count][m];
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k)
#pragma GCC unroll 4
        for (int i = 0; i < m; ++i) y[k][i] = V::broadcast(left[k * m + i]);
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
void thin_product(const typename V::Scalar* left, const typename V::Scalar* right,
                  std::ptrdiff_t right_stride, int rows, int columns, typename V::Scalar* sums,
                  double* out, std::ptrdiff_t stride) noexcept {
    constexpr int together = m == 1 ? 8 : 4;
    for (std::ptrdiff_t c = 0; c < m * stride; c += V::lanes) V::zero().store(sums + c);
    int k = 0;
    for (; k + together <= rows; k += together, left += together * m)
        add_thin<V, m, together>(left, right + k * right_stride, right_stride, columns, sums,
                                 stride);
    for (; k < rows; ++k, left += m)
        add_thin<V, m, 1>(left, right + k * right_stride, right_stride, columns, sums, stride);
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
        {&strided_tile<V, mr, 1>, &strided_tile<V, mr, 2>, &strided_tile<V, mr, nv>},
        {&thin_product<V, 1>, &thin_product<V, 2>, &thin_product<V, 3>, &thin_product<V, 4>}};
}

}  // namespace
}  // namespace bpls::kernels
