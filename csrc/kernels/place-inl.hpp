// Moves sums to their places in a result, and in its other triangle, shared by all levels.
#pragma once

#include <cstddef>

namespace bpls::kernels {
namespace {

// The columns of row r at which the upper triangle begins, as whole vectors.
template <class V>
inline int first_column(int r, int diagonal) noexcept {
    const int first = r + diagonal;
    return first > 0 ? first / V::lanes * V::lanes : 0;
}

inline void prefetch([[maybe_unused]] const void* line) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(line);
#endif
}

// Stores x[i] to row i of `out`: `rows` vectors of `columns` values, or as many as there are.
template <class V>
inline void store_block(const V (&x)[V::lanes], int rows, int columns, double* out,
                        std::ptrdiff_t stride, std::ptrdiff_t ahead) noexcept {
    if (rows >= V::lanes && columns >= V::lanes) {
#pragma GCC unroll 8
        for (int i = 0; i < V::lanes; ++i) {
            x[i].store(out + i * stride);
            if (ahead != 0) prefetch(out + i * stride + ahead);
        }
    } else {
        for (int i = 0; i < V::lanes && i < rows; ++i)
            if (columns >= V::lanes)
                x[i].store(out + i * stride);
            else
                x[i].store_first(out + i * stride, columns);
    }
}

template <class V, class Sum>
void place_sums(const void* first_sum, std::ptrdiff_t stride, int rows, int columns, int diagonal,
                double offset, const double* column_sums, double* out, std::ptrdiff_t out_stride,
                std::ptrdiff_t ahead) noexcept {
    const auto* sums = static_cast<const Sum*>(first_sum);
    const V factor = V::broadcast(offset);
    for (int r = 0; r < rows; ++r, sums += stride, out += out_stride) {
        int c = first_column<V>(r, diagonal);
        const auto value = [&](int column) noexcept {
            const V x = V::load(sums + column);
            return offset == 0 ? x : x + factor * V::load(column_sums + column);
        };
        for (; c + V::lanes <= columns; c += V::lanes) {
            value(c).store(out + c);
            if (ahead != 0) prefetch(out + c + ahead);
        }
        if (c < columns) value(c).store_first(out + c, columns - c);
    }
}

// Column by column, so that a row of the result, which is a page of its own, is written in one go.
template <class V, class Sum>
void place_transposed(const void* first_sum, std::ptrdiff_t stride, int rows, int columns,
                      int diagonal, double offset, const double* column_sums, double* out,
                      std::ptrdiff_t out_stride, std::ptrdiff_t ahead) noexcept {
    constexpr int lanes = V::lanes;
    const auto* sums = static_cast<const Sum*>(first_sum);
    const V factor = V::broadcast(offset);
    for (int c = 0; c < columns; c += lanes) {
        const V added = offset == 0 ? V::zero() : factor * V::load(column_sums + c);
        for (int r = 0; r < rows; r += lanes) {
            if (r + diagonal > c) break;
            V x[lanes];
#pragma GCC unroll 8
            for (int i = 0; i < lanes; ++i) x[i] = V::load(sums + (r + i) * stride + c) + added;
            V::transpose(x);
            double* const to = out + c * out_stride + r;
            const int columns_left = columns - c, rows_left = rows - r;
            if (r + diagonal < c) {
                store_block(x, columns_left, rows_left, to, out_stride, ahead);
            } else {
                // A block on the diagonal: its upper triangle, transposed.
                for (int i = 0; i < lanes && i < columns_left; ++i) {
                    double values[lanes];
                    x[i].store(values);
                    for (int j = 0; j < i && j < rows_left; ++j) to[i * out_stride + j] = values[j];
                }
            }
        }
    }
}

}  // namespace
}  // namespace bpls::kernels
