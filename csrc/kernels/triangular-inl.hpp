// Triangular kernels on row-major double, shared by all levels. Vectors run along rows.
#pragma once

#include <math.h>

#include <cstddef>

#include "kernels/math-inl.hpp"
#include "kernels/product-inl.hpp"
#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// Factors `rows` rows, from row k on, in their own columns, given the factored rows above. Returns as factor() does, and k + rows if no
// pivot failed. The reciprocals of the diagonal go to `inverse`.
template <class V, int rows>
inline int factor_diagonal(double* A, std::ptrdiff_t stride, int k, const double* floor,
                           double* inverse) noexcept {
    constexpr int vectors = (rows + V::lanes - 1) / V::lanes,
                  last = rows - (vectors - 1) * V::lanes;
    const auto load = [](const double* p, int v) noexcept {
        return v < vectors - 1 || last == V::lanes ? V::load(p + v * V::lanes)
                                                   : V::load_first(p + v * V::lanes, last, 0);
    };
    V y[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) y[i][v] = load(A + (k + i) * stride + k, v);
    for (int t = 0; t < k; ++t) {
        const double* const above = A + t * stride + k;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
            const V x = load(above, v);
#pragma GCC unroll 8
            for (int i = 0; i < rows; ++i)
                y[i][v] = neg_mul_add(V::broadcast(above[i]), x, y[i][v]);
        }
    }
    double block[rows][rows];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            if (v < vectors - 1 || last == V::lanes)
                y[i][v].store(block[i] + v * V::lanes);
            else
                y[i][v].store_first(block[i] + v * V::lanes, last);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
        double* const row = A + (k + i) * stride + k;
        const double pivot = block[i][i];
        if (!(pivot > floor[k + i])) {
            row[i] = pivot;
            return k + i;
        }
        // The root and the reciprocal do not wait for each other.
        const double root = sqrt(pivot), factor = root * (1 / pivot);
        inverse[i] = factor;
        row[i] = root;
#pragma GCC unroll 8
        for (int j = i + 1; j < rows; ++j) row[j] = block[i][j] *= factor;
#pragma GCC unroll 8
        for (int j = i + 1; j < rows; ++j)
#pragma GCC unroll 8
            for (int c = j; c < rows; ++c) block[j][c] -= block[i][j] * block[i][c];
    }
    return k + rows;
}

// Some vectors of columns of a matrix, of which the last may have less than V::lanes columns.
template <class V, int count, bool whole>
struct ColumnVectors {
    static constexpr int vectors = count;
    double* first;
    std::ptrdiff_t stride;
    int last;  // columns of the last vector

    V load(int row, int v) const noexcept {
        const double* const p = first + row * stride + v * V::lanes;
        return whole || v < count - 1 ? V::load(p) : V::load_first(p, last, 0);
    }
    void store(int row, int v, V y) const noexcept {
        double* const p = first + row * stride + v * V::lanes;
        if (whole || v < count - 1)
            y.store(p);
        else
            y.store_first(p, last);
    }
};

// Calls solve(ColumnVectors) for all columns of B: two vectors at a time where there are registers for them.
template <class V, class Solve>
inline void each_vector(double* B, std::ptrdiff_t B_stride, int cols, Solve&& solve) noexcept {
    constexpr int lanes = V::lanes;
    if constexpr (lanes >= 8) {
        for (; cols >= 2 * lanes; cols -= 2 * lanes, B += 2 * lanes)
            solve(ColumnVectors<V, 2, true>{B, B_stride, lanes});
        if (cols > lanes) return solve(ColumnVectors<V, 2, false>{B, B_stride, cols - lanes});
    }
    for (; cols >= lanes; cols -= lanes, B += lanes)
        solve(ColumnVectors<V, 1, true>{B, B_stride, lanes});
    if (cols > 0) solve(ColumnVectors<V, 1, false>{B, B_stride, cols});
}

// Solves `rows` rows of some vectors of columns, from row k on, given the solved rows above, which are read once for all of them.
// `inverse` are the reciprocals of the diagonal from row k on.
template <class V, int rows, class Columns>
inline void solve_rows(const double* U, std::ptrdiff_t stride, const double* inverse, int k,
                       const Columns& columns) noexcept {
    constexpr int vectors = Columns::vectors;
    V y[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) y[i][v] = columns.load(k + i, v);
    for (int t = 0; t < k; ++t) {
        V x[vectors];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) x[v] = columns.load(t, v);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
            const V u = V::broadcast(U[t * stride + k + i]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) y[i][v] = neg_mul_add(u, x[v], y[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
        const double* u = U + (k + i) * stride + k;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            y[i][v] = y[i][v] * V::broadcast(inverse[i]);
            columns.store(k + i, v, y[i][v]);
#pragma GCC unroll 8
            for (int below = i + 1; below < rows; ++below)
                y[below][v] = neg_mul_add(V::broadcast(u[below]), y[i][v], y[below][v]);
        }
    }
}

// The same given the solved rows below.
template <class V, int rows, class Columns>
inline void solve_rows_upwards(const double* U, std::ptrdiff_t stride, const double* inverse, int k,
                               int size, const Columns& columns) noexcept {
    constexpr int vectors = Columns::vectors;
    V y[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) y[i][v] = columns.load(k + i, v);
    for (int t = k + rows; t < size; ++t) {
        V x[vectors];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) x[v] = columns.load(t, v);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
            const V u = V::broadcast(U[(k + i) * stride + t]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) y[i][v] = neg_mul_add(u, x[v], y[i][v]);
        }
    }
#pragma GCC unroll 8
    for (int i = rows - 1; i >= 0; --i) {
        const double* u = U + k * stride + k + i;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            y[i][v] = y[i][v] * V::broadcast(inverse[i]);
            columns.store(k + i, v, y[i][v]);
#pragma GCC unroll 8
            for (int above = 0; above < i; ++above)
                y[above][v] = neg_mul_add(V::broadcast(u[above * stride]), y[i][v], y[above][v]);
        }
    }
}

// The columns to the right of a diagonal block are solved while its rows are factored, so that a block of rows is done at once.
template <class V, int rows>
inline int factor_rows(double* A, std::ptrdiff_t stride, int k, int size,
                       const double* floor) noexcept {
    double inverse[rows];
    const int done = factor_diagonal<V, rows>(A, stride, k, floor, inverse);
    if (done == k + rows)
        each_vector<V>(A + done, stride, size - done, [&](auto columns) noexcept {
            solve_rows<V, rows>(A, stride, inverse, k, columns);
        });
    return done;
}

template <class V>
int factor(double* A, std::ptrdiff_t stride, int size, const double* floor) noexcept {
    constexpr int most = V::lanes < 8 ? 4 : 8;
    int k = 0, end = 0;  // rows that are factored, and those that should be
    while (end + most <= size && k == end) {
        k = factor_rows<V, most>(A, stride, k, size, floor);
        end += most;
    }
    // Rows on their own wait for each of their products.
    if (most > 4 && k == end && size - k >= 4)
        k = factor_rows<V, 4>(A, stride, k, size, floor), end += 4;
    if (k == end && size - k >= 2) k = factor_rows<V, 2>(A, stride, k, size, floor), end += 2;
    if (k == end && size - k >= 1) k = factor_rows<V, 1>(A, stride, k, size, floor);
    return k;
}

inline void invert_diagonal(const double* U, std::ptrdiff_t stride, int size,
                            double* inverse) noexcept {
    for (int i = 0; i < size; ++i) inverse[i] = 1 / U[i * stride + i];
}

template <class V>
void solve_lower(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    double inverse[most_triangular_rows];
    invert_diagonal(U, stride, size, inverse);
    each_vector<V>(B, B_stride, cols, [&](auto columns) noexcept {
        const auto solve = [&]<int rows>(int k) noexcept {
            solve_rows<V, rows>(U, stride, inverse + k, k, columns);
        };
        int k = 0;
        for (; k + 8 <= size; k += 8) solve.template operator()<8>(k);
        // Rows on their own wait for each of their products.
        if (size - k >= 4) solve.template operator()<4>(k), k += 4;
        if (size - k >= 2) solve.template operator()<2>(k), k += 2;
        if (size - k >= 1) solve.template operator()<1>(k);
    });
}

template <class V>
void solve_upper(const double* U, std::ptrdiff_t stride, int size, double* B,
                 std::ptrdiff_t B_stride, int cols) noexcept {
    double inverse[most_triangular_rows];
    invert_diagonal(U, stride, size, inverse);
    each_vector<V>(B, B_stride, cols, [&](auto columns) noexcept {
        const auto solve = [&]<int rows>(int k) noexcept {
            solve_rows_upwards<V, rows>(U, stride, inverse + k, k, size, columns);
        };
        int k = size;
        for (; k >= 8; k -= 8) solve.template operator()<8>(k - 8);
        if (k >= 4) solve.template operator()<4>(k - 4), k -= 4;
        if (k >= 2) solve.template operator()<2>(k - 2), k -= 2;
        if (k >= 1) solve.template operator()<1>(0);
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
    return {V::lanes < 8 ? 96 : most_triangular_rows,
            &factor<V>,
            &solve_lower<V>,
            &solve_upper<V>,
            {&tile<V, mr, nr, 1, Sums::subtracted>, &tile < V, mr, nr, nv < 2 ? 1 : 2,
             Sums::subtracted >, &tile<V, mr, nr, nv, Sums::subtracted>},
            &compare_mirrored<V>,
            &copy_mirrored<V>};
}

}  // namespace
}  // namespace bpls::kernels
