// Triangular kernels on row-major double, shared by all levels. Vectors run along rows.
#pragma once

#include <math.h>

#include <cstddef>

#include "kernels/math-inl.hpp"
#include "kernels/product-inl.hpp"
#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// Subtracts what the k rows above contribute to some vectors of row k, from column c on. The last one has `last` values.
template <class V, int count>
inline void subtract_above(double* A, std::ptrdiff_t stride, int k, int c, int last) noexcept {
    const auto load = [=](const double* p, int j) noexcept {
        return j < count - 1 || last == V::lanes ? V::load(p + j * V::lanes)
                                                 : V::load_first(p + j * V::lanes, last, 0);
    };
    V y[count];
    double* const row = A + k * stride + c;
#pragma GCC unroll 4
    for (int j = 0; j < count; ++j) y[j] = load(row, j);
    for (int t = 0; t < k; ++t) {
        const double* const above = A + t * stride;
        const V f = V::broadcast(above[k]);
#pragma GCC unroll 4
        for (int j = 0; j < count; ++j) y[j] = neg_mul_add(f, load(above + c, j), y[j]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < count; ++j)
        if (j < count - 1 || last == V::lanes)
            y[j].store(row + j * V::lanes);
        else
            y[j].store_first(row + j * V::lanes, last);
}

template <class V>
int factor(double* A, std::ptrdiff_t stride, int size, const double* floor) noexcept {
    constexpr int lanes = V::lanes;
    for (int k = 0; k < size; ++k) {
        double* const row = A + k * stride;
        int c = k;
        for (; c + 4 * lanes <= size; c += 4 * lanes) subtract_above<V, 4>(A, stride, k, c, lanes);
        const int vectors = (size - c + lanes - 1) / lanes, last = size - c - (vectors - 1) * lanes;
        if (vectors == 1) subtract_above<V, 1>(A, stride, k, c, last);
        if (vectors == 2) subtract_above<V, 2>(A, stride, k, c, last);
        if (vectors == 3) subtract_above<V, 3>(A, stride, k, c, last);
        if (vectors == 4) subtract_above<V, 4>(A, stride, k, c, last);
        if (!(row[k] > floor[k])) return k;
        const double root = sqrt(row[k]), inverse = 1 / root;
        for (c = k; c < size; ++c) row[c] *= inverse;
        row[k] = root;
    }
    return size;
}

// Solves `rows` rows of a vector of columns, from row k on, given the solved rows above, which are read once for all of them.
template <class V, int rows, class Load, class Store>
inline void solve_rows(const double* U, std::ptrdiff_t stride, int k, Load&& load,
                       Store&& store) noexcept {
    V y[rows];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) y[i] = load(k + i);
    for (int t = 0; t < k; ++t) {
        const V x = load(t);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i)
            y[i] = neg_mul_add(V::broadcast(U[t * stride + k + i]), x, y[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
        const double* u = U + (k + i) * stride + k;
        y[i] = y[i] * V::broadcast(1 / u[i]);
        store(k + i, y[i]);
#pragma GCC unroll 8
        for (int below = i + 1; below < rows; ++below)
            y[below] = neg_mul_add(V::broadcast(u[below]), y[i], y[below]);
    }
}

// The same given the solved rows below.
template <class V, int rows, class Load, class Store>
inline void solve_rows_upwards(const double* U, std::ptrdiff_t stride, int k, int size, Load&& load,
                               Store&& store) noexcept {
    V y[rows];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) y[i] = load(k + i);
    for (int t = k + rows; t < size; ++t) {
        const V x = load(t);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i)
            y[i] = neg_mul_add(V::broadcast(U[(k + i) * stride + t]), x, y[i]);
    }
#pragma GCC unroll 8
    for (int i = rows - 1; i >= 0; --i) {
        const double* u = U + k * stride + k + i;
        y[i] = y[i] * V::broadcast(1 / u[i * stride]);
        store(k + i, y[i]);
#pragma GCC unroll 8
        for (int above = 0; above < i; ++above)
            y[above] = neg_mul_add(V::broadcast(u[above * stride]), y[i], y[above]);
    }
}

// Calls solve(load, store) for every vector of columns of B.
template <class V, class Solve>
inline void each_vector(double* B, std::ptrdiff_t B_stride, int cols, Solve&& solve) noexcept {
    for (; cols >= V::lanes; cols -= V::lanes, B += V::lanes)
        solve([=](int t) noexcept { return V::load(B + t * B_stride); },
              [=](int t, V y) noexcept { y.store(B + t * B_stride); });
    if (cols > 0)
        solve([=](int t) noexcept { return V::load_first(B + t * B_stride, cols, 0); },
              [=](int t, V y) noexcept { y.store_first(B + t * B_stride, cols); });
}

template <class V>
void solve_lower(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    each_vector<V>(B, B_stride, cols, [=](auto load, auto store) noexcept {
        int k = 0;
        for (; k + 8 <= size; k += 8) solve_rows<V, 8>(U, stride, k, load, store);
        // Rows on their own wait for each of their products.
        if (size - k >= 4) solve_rows<V, 4>(U, stride, k, load, store), k += 4;
        if (size - k >= 2) solve_rows<V, 2>(U, stride, k, load, store), k += 2;
        if (size - k >= 1) solve_rows<V, 1>(U, stride, k, load, store);
    });
}

template <class V>
void solve_upper(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    each_vector<V>(B, B_stride, cols, [=](auto load, auto store) noexcept {
        int k = size;
        for (; k >= 8; k -= 8) solve_rows_upwards<V, 8>(U, stride, k - 8, size, load, store);
        if (k >= 4) solve_rows_upwards<V, 4>(U, stride, k - 4, size, load, store), k -= 4;
        if (k >= 2) solve_rows_upwards<V, 2>(U, stride, k - 2, size, load, store), k -= 2;
        if (k >= 1) solve_rows_upwards<V, 1>(U, stride, 0, size, load, store);
    });
}

// One vector by one vector of compare_mirrored(). Rows and columns beyond `rows` and `cols` are zero.
template <class V, bool whole>
inline void compare_vectors(const double* upper, std::ptrdiff_t upper_stride, const double* lower,
                            std::ptrdiff_t lower_stride, int rows, int cols, V& top, V& apart,
                            V& not_finite) noexcept {
    const auto load = [](const double* p, int count) noexcept {
        return whole ? V::load(p) : V::load_first(p, count < V::lanes ? count : V::lanes, 0);
    };
    V mirrored[V::lanes];
#pragma GCC unroll 8
    for (int k = 0; k < V::lanes; ++k)
        mirrored[k] = whole || k < cols ? load(lower + k * lower_stride, rows) : V::zero();
    V::transpose(mirrored);
#pragma GCC unroll 8
    for (int k = 0; k < V::lanes; ++k) {
        const V x = whole || k < rows ? load(upper + k * upper_stride, cols) : V::zero();
        const V between = x - mirrored[k];
        top = larger(top, larger(magnitude(x), magnitude(mirrored[k])));
        apart = larger(apart, magnitude(between));
        not_finite = mul_add(between, V::zero(), not_finite);
    }
}

template <class V>
bool compare_mirrored(const double* upper, std::ptrdiff_t upper_stride, const double* lower,
                      std::ptrdiff_t lower_stride, int rows, int cols, bool diagonal,
                      double& largest, double& difference) noexcept {
    V top = V::broadcast(largest), apart = V::broadcast(difference), not_finite = V::zero();
    for (int i = 0; i < rows; i += V::lanes)
        for (int j = diagonal ? i : 0; j < cols; j += V::lanes) {
            const bool whole = i + V::lanes <= rows && j + V::lanes <= cols;
            const double *x = upper + i * upper_stride + j, *y = lower + j * lower_stride + i;
            if (whole)
                compare_vectors<V, true>(x, upper_stride, y, lower_stride, V::lanes, V::lanes, top,
                                         apart, not_finite);
            else
                compare_vectors<V, false>(x, upper_stride, y, lower_stride, rows - i, cols - j, top,
                                          apart, not_finite);
        }
    largest = top.highest();
    difference = apart.highest();
    return not_finite.total() == 0;
}

template <class V>
void copy_mirrored(const double* upper, std::ptrdiff_t upper_stride, double* lower,
                   std::ptrdiff_t lower_stride) noexcept {
    for (int i = 0; i < mirrored_block; i += V::lanes)
        for (int j = 0; j < mirrored_block; j += V::lanes) {
            V rows[V::lanes];
#pragma GCC unroll 8
            for (int k = 0; k < V::lanes; ++k)
                rows[k] = V::load(upper + (i + k) * upper_stride + j);
            V::transpose(rows);
#pragma GCC unroll 8
            for (int k = 0; k < V::lanes; ++k) rows[k].store(lower + (j + k) * lower_stride + i);
        }
}

template <class V, int mr, int nv>
constexpr Triangular triangular() noexcept {
    constexpr int nr = nv * V::lanes;
    return {&factor<V>,
            &solve_lower<V>,
            &solve_upper<V>,
            {&tile<V, mr, nr, 1, Sums::subtracted>, &tile < V, mr, nr, nv < 2 ? 1 : 2,
             Sums::subtracted >, &tile<V, mr, nr, nv, Sums::subtracted>},
            &compare_mirrored<V>,
            &copy_mirrored<V>};
}

}  // namespace
}  // namespace bpls::kernels
