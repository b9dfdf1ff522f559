// Triangular kernels on row-major double, shared by all levels. Every inner loop runs along a row, where it vectorises.
#pragma once

#include <math.h>

#include <cstddef>

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

void solve_lower(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    const auto row = [=](int t) noexcept { return B + t * B_stride; };
    for (int k = 0; k < size; ++k) {
        subtract(row(k), 0, k, [=](int t) noexcept { return U[t * stride + k]; }, row, cols);
        divide(row(k), U[k * stride + k], cols);
    }
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

}  // namespace
}  // namespace bpls::kernels
