// Triangular kernels on row-major double, shared by all levels. Every inner loop runs along a row, where it vectorises.
#pragma once

#include <math.h>

#include <cstddef>

#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// y[0, count) -= f · x
inline void subtract(double* y, double f, const double* x, int count) noexcept {
    for (int c = 0; c < count; ++c) y[c] -= f * x[c];
}

inline void divide(double* y, double f, int count) noexcept {
    for (int c = 0; c < count; ++c) y[c] /= f;
}

int factor(double* A, std::ptrdiff_t stride, int size, const double* floor) noexcept {
    for (int k = 0; k < size; ++k) {
        double* row = A + k * stride;
        for (int t = 0; t < k; ++t)
            subtract(row + k, A[t * stride + k], A + t * stride + k, size - k);
        if (!(row[k] > floor[k])) return k;
        divide(row + k, sqrt(row[k]), size - k);
    }
    return size;
}

void solve_lower(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    for (int k = 0; k < size; ++k) {
        double* row = B + k * B_stride;
        for (int t = 0; t < k; ++t) subtract(row, U[t * stride + k], B + t * B_stride, cols);
        divide(row, U[k * stride + k], cols);
    }
}

void solve_upper(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    for (int k = size - 1; k >= 0; --k) {
        double* row = B + k * B_stride;
        for (int t = k + 1; t < size; ++t) subtract(row, U[k * stride + t], B + t * B_stride, cols);
        divide(row, U[k * stride + k], cols);
    }
}

}  // namespace
}  // namespace bpls::kernels
