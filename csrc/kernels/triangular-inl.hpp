// Triangular kernels on row-major double, shared by all levels. Every inner loop runs along a row, where it vectorises.
#pragma once

#include <math.h>

#include <cstddef>

#include "kernels/math-inl.hpp"
#include "kernels/product-inl.hpp"
#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// y -= Σ_t f(t) · x(t) over [0, count) for t in [begin, end): four rows at a time, so that y is read and written less.
template <class F, class X>
inline void subtract(double* y, int begin, int end, F&& f, X&& x, int count) noexcept {
    int t = begin;
    for (; t + 4 <= end; t += 4) {
        const double f0 = f(t), f1 = f(t + 1), f2 = f(t + 2), f3 = f(t + 3);
        const double *x0 = x(t), *x1 = x(t + 1), *x2 = x(t + 2), *x3 = x(t + 3);
        for (int c = 0; c < count; ++c)
            y[c] = (((y[c] - f0 * x0[c]) - f1 * x1[c]) - f2 * x2[c]) - f3 * x3[c];
    }
    for (; t < end; ++t) {
        const double f0 = f(t);
        const double* x0 = x(t);
        for (int c = 0; c < count; ++c) y[c] -= f0 * x0[c];
    }
}

inline void divide(double* y, double f, int count) noexcept {
    for (int c = 0; c < count; ++c) y[c] /= f;
}

int factor(double* A, std::ptrdiff_t stride, int size, const double* floor) noexcept {
    for (int k = 0; k < size; ++k) {
        double* row = A + k * stride + k;
        const auto above = [=](int t) noexcept { return A + t * stride + k; };
        subtract(row, 0, k, [=](int t) noexcept { return *above(t); }, above, size - k);
        if (!(*row > floor[k])) return k;
        divide(row, sqrt(*row), size - k);
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

template <class V, class Load, class Store>
inline void solve_columns(const double* U, std::ptrdiff_t stride, int size, Load&& load,
                          Store&& store) noexcept {
    int k = 0;
    for (; k + 8 <= size; k += 8) solve_rows<V, 8>(U, stride, k, load, store);
    for (; k < size; ++k) solve_rows<V, 1>(U, stride, k, load, store);
}

template <class V>
void solve_lower(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    for (; cols >= V::lanes; cols -= V::lanes, B += V::lanes)
        solve_columns<V>(
            U, stride, size, [=](int t) noexcept { return V::load(B + t * B_stride); },
            [=](int t, V y) noexcept { y.store(B + t * B_stride); });
    if (cols > 0)
        solve_columns<V>(
            U, stride, size,
            [=](int t) noexcept { return V::load_first(B + t * B_stride, cols, 0); },
            [=](int t, V y) noexcept { y.store_first(B + t * B_stride, cols); });
}

void solve_upper(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    const auto row = [=](int t) noexcept { return B + t * B_stride; };
    for (int k = size - 1; k >= 0; --k) {
        const double* u = U + k * stride;
        subtract(row(k), k + 1, size, [=](int t) noexcept { return u[t]; }, row, cols);
        divide(row(k), u[k], cols);
    }
}

template <class V>
bool compare_mirrored(const double* upper, std::ptrdiff_t upper_stride, const double* lower,
                      std::ptrdiff_t lower_stride, double& largest, double& difference) noexcept {
    V top = V::broadcast(largest), apart = V::broadcast(difference), not_finite = V::zero();
    for (int i = 0; i < mirrored_block; i += V::lanes)
        for (int j = 0; j < mirrored_block; j += V::lanes) {
            V mirrored[V::lanes];
#pragma GCC unroll 8
            for (int k = 0; k < V::lanes; ++k)
                mirrored[k] = V::load(lower + (j + k) * lower_stride + i);
            V::transpose(mirrored);
#pragma GCC unroll 8
            for (int k = 0; k < V::lanes; ++k) {
                const V x = V::load(upper + (i + k) * upper_stride + j);
                const V between = x - mirrored[k];
                top = larger(top, larger(magnitude(x), magnitude(mirrored[k])));
                apart = larger(apart, magnitude(between));
                not_finite = mul_add(between, V::zero(), not_finite);
            }
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
    return {&factor,
            &solve_lower<V>,
            &solve_upper,
            {&tile<V, mr, nr, 1, true>, &tile < V, mr, nr, nv < 2 ? 1 : 2, true >,
             &tile<V, mr, nr, nv, true>},
            &compare_mirrored<V>,
            &copy_mirrored<V>};
}

}  // namespace
}  // namespace bpls::kernels
