// Cholesky of many small systems at once, one per lane, shared by all levels. No operation crosses lanes, so a system's
// bits do not depend on its neighbours.
#pragma once

#include "kernels/math-inl.hpp"
#include "kernels/product-inl.hpp"

namespace bpls::kernels {
namespace {

// ---- interleaving

// Whether a block of V::lanes elements can be loaded from each matrix.
template <class V, class S>
inline bool has_blocks(const unsigned char* const* source, std::ptrdiff_t row_stride,
                       std::ptrdiff_t col_stride, int cols) noexcept {
    auto addresses = std::uintptr_t(row_stride);
    for (int lane = 0; lane < V::lanes; ++lane)
        addresses |= reinterpret_cast<std::uintptr_t>(source[lane]);
    return sizeof(S) > 1 && col_stride == std::ptrdiff_t(sizeof(S)) && cols >= V::lanes &&
           addresses % sizeof(S) == 0;
}

// Loads x[c], the elements at `offset` bytes plus c elements in each matrix.
template <class V, class S>
inline void load_block(const unsigned char* const* source, std::ptrdiff_t offset,
                       V (&x)[V::lanes]) noexcept {
#pragma GCC unroll 8
    for (int lane = 0; lane < V::lanes; ++lane)
        x[lane] = V::load(reinterpret_cast<const S*>(source[lane] + offset));
    V::transpose(x);
}

template <class V, class S>
inline V load_element(const unsigned char* const* source, std::ptrdiff_t offset) noexcept {
    return V::each([=](int lane) noexcept { return double(read<S>(source[lane] + offset)); });
}

// The sum, or the largest value, of a block, by a tree: a chain would wait for every element.
template <class V>
inline V sum_of(const V (&x)[V::lanes]) noexcept {
    V y[V::lanes];
#pragma GCC unroll 8
    for (int i = 0; i < V::lanes; ++i) y[i] = x[i];
#pragma GCC unroll 8
    for (int half = V::lanes / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; ++i) y[i] = y[i] + y[i + half];
    return y[0];
}
template <class V>
inline V largest_of(const V (&x)[V::lanes]) noexcept {
    V y[V::lanes];
#pragma GCC unroll 8
    for (int i = 0; i < V::lanes; ++i) y[i] = magnitude(x[i]);
#pragma GCC unroll 8
    for (int half = V::lanes / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; ++i) y[i] = larger(y[i], y[i + half]);
    return y[0];
}

// Whether all values are finite. May be false for finite values whose sum overflows.
template <class V>
struct Finite {
    V sum = V::zero();  // stays zero, and becomes NaN with the first value that is not finite

    void see(V x) noexcept { sum.multiply_add(x, V::zero()); }
    void see(const V (&x)[V::lanes]) noexcept { see(sum_of(x)); }
    bool all() const noexcept { return sum.not_above(V::broadcast(-1)) == 0; }
};

template <class V>
struct Symmetric {
    Finite<V> finite;
    V largest = V::zero();
    V difference = V::zero();

    void see(const V (&upper)[V::lanes]) noexcept {
        finite.see(upper);
        largest = larger(largest_of(upper), largest);
    }
    void see_differences(const V (&d)[V::lanes]) noexcept {
        finite.see(d);
        difference = larger(largest_of(d), difference);
    }
    void see(V upper, V lower) noexcept {
        finite.see(upper);
        finite.see(lower);
        largest = larger(magnitude(upper), largest);
        difference = larger(magnitude(upper - lower), difference);
    }
    // Too strict if the largest magnitude is in the lower triangle, which is not searched for it.
    bool all(double tolerance) const noexcept {
        const V bound = largest * V::broadcast(tolerance);
        return finite.all() && difference.not_above(bound) == (1u << V::lanes) - 1;
    }
};

template <class V, class S>
bool pack_symmetric(const unsigned char* const* source, std::ptrdiff_t row_stride,
                    std::ptrdiff_t col_stride, int n, double tolerance, double* out) noexcept {
    constexpr int lanes = V::lanes;
    const int stride = interleaved_stride(n);
    const auto at = [=](int i, int j) noexcept { return out + (i * stride + j) * lanes; };
    const auto offset = [=](int i, int j) noexcept { return i * row_stride + j * col_stride; };
    Symmetric<V> seen;
    if constexpr (sizeof(S) > 1) {
        if (has_blocks<V, S>(source, row_stride, col_stride, n)) {
            // Pairs of mirrored blocks; the last ones overlap others to stay inside the matrix.
            V x[lanes];
            for (int i0 = 0; i0 < n; i0 += lanes) {
                const int i = i0 + lanes <= n ? i0 : n - lanes;
                for (int j0 = i0; j0 < n; j0 += lanes) {
                    const int j = j0 + lanes <= n ? j0 : n - lanes;
                    for (int r = 0; r < lanes; ++r) {
                        load_block<V, S>(source, offset(i + r, j), x);
#pragma GCC unroll 8
                        for (int c = 0; c < lanes; ++c) x[c].store(at(i + r, j + c));
                        seen.see(x);
                    }
                    for (int r = 0; r < lanes; ++r) {
                        if (i == j) {
#pragma GCC unroll 8
                            for (int c = 0; c < lanes; ++c) x[c] = V::load(at(j + r, i + c));
                        } else {
                            load_block<V, S>(source, offset(j + r, i), x);
                        }
#pragma GCC unroll 8
                        for (int c = 0; c < lanes; ++c) x[c] = x[c] - V::load(at(i + c, j + r));
                        seen.see_differences(x);
                    }
                }
            }
            return seen.all(tolerance);
        }
    }
    for (int i = 0; i < n; ++i)
        for (int j = i; j < n; ++j) {
            const V upper = load_element<V, S>(source, offset(i, j));
            upper.store(at(i, j));
            seen.see(upper, load_element<V, S>(source, offset(j, i)));
        }
    return seen.all(tolerance);
}

template <class V, class S>
bool pack_interleaved(const unsigned char* const* source, std::ptrdiff_t row_stride,
                      std::ptrdiff_t col_stride, int rows, int cols, double* out) noexcept {
    constexpr int lanes = V::lanes;
    Finite<V> finite;
    if constexpr (sizeof(S) > 1) {
        if (has_blocks<V, S>(source, row_stride, col_stride, cols)) {
            V x[lanes];
            for (int i = 0; i < rows; ++i, out += cols * lanes)
                for (int j0 = 0; j0 < cols; j0 += lanes) {
                    const int j = j0 + lanes <= cols ? j0 : cols - lanes;
                    load_block<V, S>(source, i * row_stride + j * col_stride, x);
#pragma GCC unroll 8
                    for (int c = 0; c < lanes; ++c) x[c].store(out + (j + c) * lanes);
                    finite.see(x);
                }
            return finite.all();
        }
    }
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j, out += lanes) {
            const V x = load_element<V, S>(source, i * row_stride + j * col_stride);
            x.store(out);
            finite.see(x);
        }
    return finite.all();
}

template <class V>
void unpack_interleaved(const double* in, int rows, int cols, double* const* out,
                        std::ptrdiff_t out_stride, unsigned wanted) noexcept {
    constexpr int lanes = V::lanes;
    if (cols < lanes) {
        for (int lane = 0; lane < lanes; ++lane)
            for (int i = 0; i < rows && (wanted >> lane & 1); ++i)
                for (int j = 0; j < cols; ++j)
                    out[lane][i * out_stride + j] = in[(i * cols + j) * lanes + lane];
        return;
    }
    V x[lanes];
    for (int i = 0; i < rows; ++i)
        for (int j0 = 0; j0 < cols; j0 += lanes) {
            const int j = j0 + lanes <= cols ? j0 : cols - lanes;
#pragma GCC unroll 8
            for (int c = 0; c < lanes; ++c) x[c] = V::load(in + (i * cols + j + c) * lanes);
            V::transpose(x);
#pragma GCC unroll 8
            for (int lane = 0; lane < lanes; ++lane)
                if (wanted >> lane & 1) x[lane].store(out[lane] + i * out_stride + j);
        }
}

// ---- tiles of `rows` x `cols` vectors; strides are in doubles

template <class V, int rows, int cols>
inline void load_tile(const double* B, std::ptrdiff_t stride, V (&sum)[rows][cols]) noexcept {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < cols; ++c) sum[r][c] = V::load(B + r * stride + c * V::lanes);
}

// sum[r] -= u[r] · x for the row x, which begins at B; u[r] is at U + r * U_stride.
template <class V, int rows, int cols>
inline void subtract_row(const double* U, std::ptrdiff_t U_stride, const double* B,
                         V (&sum)[rows][cols]) noexcept {
    V x[cols];
#pragma GCC unroll 8
    for (int c = 0; c < cols; ++c) x[c] = V::load(B + c * V::lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        const V u = V::load(U + r * U_stride);
#pragma GCC unroll 8
        for (int c = 0; c < cols; ++c) sum[r][c].subtract_product(u, x[c]);
    }
}

// row -= u · other, for rows of a tile.
template <class V, int cols>
inline void subtract_product(const double* u, const V (&other)[cols], V (&row)[cols]) noexcept {
    const V factor = V::load(u);
#pragma GCC unroll 8
    for (int c = 0; c < cols; ++c) row[c].subtract_product(factor, other[c]);
}

template <class V, int cols>
inline void scale_and_store(const double* reciprocal, V (&row)[cols], double* out) noexcept {
    const V factor = V::load(reciprocal);
#pragma GCC unroll 8
    for (int c = 0; c < cols; ++c) {
        row[c] = row[c] * factor;
        row[c].store(out + c * V::lanes);
    }
}

// Solves for rows k to k + rows of U⁻ᵀB, given the rows above. U is column k of the factor, B the first of `cols` columns.
template <class V, int rows, int cols>
void forward_tile(const double* U, std::ptrdiff_t U_stride, int k, double* B,
                  std::ptrdiff_t B_stride) noexcept {
    constexpr int lanes = V::lanes;
    double* out = B + k * B_stride;
    V sum[rows][cols];
    load_tile<V, rows, cols>(out, B_stride, sum);
    for (int t = 0; t < k; ++t, U += U_stride, B += B_stride)
        subtract_row<V, rows, cols>(U, lanes, B, sum);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
        for (int q = 0; q < r; ++q)
            subtract_product<V, cols>(U + q * U_stride + r * lanes, sum[q], sum[r]);
        scale_and_store<V, cols>(U + r * U_stride + r * lanes, sum[r], out + r * B_stride);
    }
}

// Solves for `rows` rows of U⁻¹B, given the `below` rows under them. U is their entry on the diagonal, B their first row.
template <class V, int rows, int cols>
void back_tile(const double* U, std::ptrdiff_t U_stride, int below, double* B,
               std::ptrdiff_t B_stride) noexcept {
    constexpr int lanes = V::lanes;
    V sum[rows][cols];
    load_tile<V, rows, cols>(B, B_stride, sum);
    for (int t = rows; t < rows + below; ++t)
        subtract_row<V, rows, cols>(U + t * lanes, U_stride, B + t * B_stride, sum);
#pragma GCC unroll 8
    for (int r = rows - 1; r >= 0; --r) {
#pragma GCC unroll 8
        for (int q = rows - 1; q > r; --q)
            subtract_product<V, cols>(U + r * U_stride + q * lanes, sum[q], sum[r]);
        scale_and_store<V, cols>(U + r * U_stride + r * lanes, sum[r], B + r * B_stride);
    }
}

template <class V, int rows, int cols>
inline void forward_columns(const double* U, std::ptrdiff_t U_stride, int k, double* B,
                            std::ptrdiff_t B_stride, int width) noexcept {
    for (; width >= cols; width -= cols, B += cols * V::lanes)
        forward_tile<V, rows, cols>(U, U_stride, k, B, B_stride);
    if constexpr (cols > 1) forward_columns<V, rows, cols - 1>(U, U_stride, k, B, B_stride, width);
}

template <class V, int rows, int cols>
inline void back_columns(const double* U, std::ptrdiff_t U_stride, int below, double* B,
                         std::ptrdiff_t B_stride, int width) noexcept {
    for (; width >= cols; width -= cols, B += cols * V::lanes)
        back_tile<V, rows, cols>(U, U_stride, below, B, B_stride);
    if constexpr (cols > 1) back_columns<V, rows, cols - 1>(U, U_stride, below, B, B_stride, width);
}

// ---- the factorisation

template <class V>
class Factoring {
 public:
    Factoring(double* A, int n, double noise, Factored& found) noexcept
        : A_(A),
          stride_(std::ptrdiff_t(interleaved_stride(n)) * lanes),
          n_(n),
          noise_(noise),
          found_(found) {}

    // Returns the lanes that failed.
    template <int cols>
    unsigned run(double eps, bool relative) noexcept {
        V shift = V::broadcast(eps);
        if (relative) {
            const V part = V::broadcast(1.0 / n_);
            V mean = V::zero();
            for (int i = 0; i < n_; ++i) mean.multiply_add(V::load(at(i, i)), part);
            shift = shift * mean;
        }
        shift.store(found_.shift);
        factor_rows<4, cols>(0);
        return failed_;
    }

 private:
    static constexpr int lanes = V::lanes;

    double* at(int i, int j) const noexcept { return A_ + i * stride_ + j * lanes; }

    template <int rows, int cols>
    void factor_rows(int k) noexcept {
        for (; k + rows <= n_; k += rows) {
            factor_diagonal<rows>(k);
            forward_columns<V, rows, cols>(at(0, k), stride_, k, at(0, k + rows), stride_,
                                           n_ - k - rows);
        }
        if constexpr (rows > 1) factor_rows<rows - 1, cols>(k);
    }

    template <int rows>
    void factor_diagonal(int k) noexcept {
        // Loaded anew every time: the tiles need the registers.
        const V shift = V::load(found_.shift), noise = V::broadcast(noise_);
        V a[rows][rows];
        V floor[rows];
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
            for (int c = r; c < rows; ++c) a[r][c] = V::load(at(k + r, k + c));
            a[r][r] = a[r][r] + shift;
            floor[r] = larger(noise * a[r][r], V::zero());
        }
        const double* above = at(0, k);
        for (int t = 0; t < k; ++t, above += stride_) {
            V u[rows];
#pragma GCC unroll 8
            for (int c = 0; c < rows; ++c) u[c] = V::load(above + c * lanes);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
                for (int c = r; c < rows; ++c) a[r][c].subtract_product(u[r], u[c]);
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            if (const unsigned bad = a[r][r].not_above(floor[r])) note(bad, k + r, a[r][r]);
            const V reciprocal = V::broadcast(1) / a[r][r].root();
            reciprocal.store(at(k + r, k + r));
#pragma GCC unroll 8
            for (int c = r + 1; c < rows; ++c) {
                a[r][c] = a[r][c] * reciprocal;
                a[r][c].store(at(k + r, k + c));
            }
#pragma GCC unroll 8
            for (int q = r + 1; q < rows; ++q)
#pragma GCC unroll 8
                for (int c = q; c < rows; ++c) a[q][c].subtract_product(a[r][q], a[r][c]);
        }
    }

    void note(unsigned bad, int row, V pivot) noexcept {
        double values[lanes];
        pivot.store(values);
        for (int lane = 0; lane < lanes; ++lane)
            if ((bad & ~failed_) >> lane & 1) {
                found_.pivot[lane] = row;
                found_.value[lane] = values[lane];
            }
        failed_ |= bad;
    }

    double* A_;
    std::ptrdiff_t stride_;
    int n_;
    double noise_;
    Factored& found_;
    unsigned failed_ = 0;
};

template <class V, int cols>
unsigned factor_interleaved(double* A, int n, double eps, bool relative, double noise,
                            Factored& found) noexcept {
    return Factoring<V>(A, n, noise, found).template run<cols>(eps, relative);
}

// ---- the substitutions

template <class V, int rows, int cols>
inline void forward_rows(const double* U, std::ptrdiff_t stride, int n, int k, double* B,
                         int width) noexcept {
    for (; k + rows <= n; k += rows)
        forward_columns<V, rows, cols>(U + k * V::lanes, stride, k, B, width * V::lanes, width);
    if constexpr (rows > 1) forward_rows<V, rows - 1, cols>(U, stride, n, k, B, width);
}

template <class V, int rows, int cols>
inline void back_rows(const double* U, std::ptrdiff_t stride, int n, int end, double* B,
                      int width) noexcept {
    for (; end >= rows; end -= rows) {
        const int k = end - rows;
        back_columns<V, rows, cols>(U + k * (stride + V::lanes), stride, n - end,
                                    B + std::ptrdiff_t(k) * width * V::lanes, width * V::lanes,
                                    width);
    }
    if constexpr (rows > 1) back_rows<V, rows - 1, cols>(U, stride, n, end, B, width);
}

template <class V, int cols>
void solve_interleaved(const double* U, int n, double* B, int width) noexcept {
    const std::ptrdiff_t stride = std::ptrdiff_t(interleaved_stride(n)) * V::lanes;
    forward_rows<V, 4, cols>(U, stride, n, 0, B, width);
    back_rows<V, 4, cols>(U, stride, n, n, B, width);
}

// Tiles have 4 rows and `cols` columns.
template <class V, int cols>
constexpr Interleaved interleaved() noexcept {
    return {V::lanes,
            by_dtype<PackSymmetric>([]<class S>() { return &pack_symmetric<V, S>; }),
            by_dtype<PackInterleaved>([]<class S>() { return &pack_interleaved<V, S>; }),
            &unpack_interleaved<V>,
            &factor_interleaved<V, cols>,
            &solve_interleaved<V, cols>};
}

}  // namespace
}  // namespace bpls::kernels
