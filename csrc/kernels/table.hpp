// The table of kernels that every instruction-set level fills in. Kernels are plain functions over raw pointers: they
// own no memory, start no thread, throw nothing and do not depend on networks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bpls/activation.hpp"
#include "bpls/dtype.hpp"

namespace bpls::kernels {

// One entry for every element type.
template <class F>
struct ByDType {
    F entries[dtype_count];

    constexpr F operator[](DType dtype) const noexcept { return entries[static_cast<int>(dtype)]; }
};

// One entry for every activation.
template <class F>
struct ByActivation {
    F entries[activation_count];

    constexpr F operator[](Activation activation) const noexcept {
        return entries[static_cast<int>(activation)];
    }
};

// Rows that a product of floats accumulates in registers before it adds them to float64. With 256 rows the sum of products
// of two bytes, 256 · 255², is below 2²⁴: float32 represents it exactly.
inline constexpr int block_rows = 256;

// Rows of a product of integers: more rows of a panel do not fit into the L1 cache.
inline constexpr int integer_block_rows = 512;

// Rows whose sums of products int32 holds at every level: of two bytes, and of a byte and a byte minus 128.
inline constexpr std::size_t integer_sum_rows = 32'768;
static_assert(integer_sum_rows * 255 * 255 <= INT32_MAX);

// Copies `rows` x `width` elements, at byte strides, into a panel from `lane` on. A panel is row-major and nr columns wide;
// `step_rows` consecutive rows of a column share one packed element, and a last element that is not full is padded with
// rows that add nothing. `weight` is null or holds a factor per row. From lane 0 on, `width` may also be that of several
// whole panels, `panel_bytes` apart.
using Pack = void (*)(const unsigned char* source, std::ptrdiff_t row_stride,
                      std::ptrdiff_t col_stride, int rows, int width, const double* weight,
                      unsigned char* panel, int lane, std::size_t panel_bytes) noexcept;

// out[i * stride + j] += Σ_k left[k, i] · right[k, j] for mr columns i of one panel, from any lane on, and some vectors of
// columns j of another panel, of the same, or of a matrix of the panels' type. right[k, j] is element k * right_stride + j; in a
// panel, right_stride is nr. Step k prefetches the cache line at prefetch_at + k * prefetch_stride. The sums are int32 where
// the product has integer_sums, else double.
using Tile = void (*)(const unsigned char* left, const unsigned char* right,
                      std::ptrdiff_t right_stride, int steps, void* out, std::ptrdiff_t stride,
                      const unsigned char* prefetch_at, std::ptrdiff_t prefetch_stride) noexcept;

// The same over the `count` steps k that `nonzero` lists.
using ListedTile = void (*)(const unsigned char* left, const unsigned char* right,
                            std::ptrdiff_t right_stride, const int* nonzero, int count, void* out,
                            std::ptrdiff_t stride, const unsigned char* prefetch_at,
                            std::ptrdiff_t prefetch_stride) noexcept;

// Lists, in increasing order, the steps in which any of these vectors of columns is not zero. Returns their number.
using FindNonzeroSteps = int (*)(const unsigned char* right, std::ptrdiff_t right_stride,
                                 int vectors, int steps, int* nonzero) noexcept;

// out[j] += Σ_k panel[k, j] over the nr columns of a panel.
using ColumnSums = void (*)(const unsigned char* panel, int steps, double* out) noexcept;

// Subtracts left_offset from `steps` steps of a panel. `left` may be the panel itself.
using SubtractOffset = void (*)(const unsigned char* panel, int steps,
                                unsigned char* left) noexcept;

// out[j] += sums[j] + left_offset · column_sums[j] for j in [0, count). The sums are a tile's.
using AddSums = void (*)(const void* sums, std::size_t count, const double* column_sums,
                         double* out) noexcept;

// How columns are packed into panels.
struct Panels {
    int nr;              // columns of a panel
    int block_rows;      // the most rows of a panel
    int step_rows;       // rows in a packed element
    int element;         // bytes of a packed element
    ByDType<Pack> pack;  // of the source; null where the conversion would lose precision
};

// The most lanes of any level's vectors: a list of columns is written in whole vectors.
inline constexpr int max_list_lanes = 16;

// The most vectors in a row of any level's panels. A level with fewer is never asked for more.
inline constexpr int max_vectors = 3;

// The most columns of any level's panels: vectors of sixteen.
inline constexpr int max_panel_columns = 16 * max_vectors;

// out[i * out_stride + j] = sums[i * stride + j] + offset · column_sums[j] for `rows` x `columns` sums, or, transposed,
// out[j * out_stride + i]. `diagonal` is the column of the sums that meets row 0 on the diagonal of a symmetric matrix, a multiple
// of max_lanes: below the diagonal nothing is read, and of the blocks on it the part below is what the transposed call
// writes. no_diagonal reads everything. `sums`, which are a tile's, and `column_sums` have room for whole vectors. If `ahead` is
// not 0, the lines that far after those that are written are prefetched.
using PlaceSums = void (*)(const void* sums, std::ptrdiff_t stride, int rows, int columns,
                           int diagonal, double offset, const double* column_sums, double* out,
                           std::ptrdiff_t out_stride, std::ptrdiff_t ahead) noexcept;
inline constexpr int no_diagonal = -(1 << 20);

// A product of packed panels in one arithmetic.
struct Product {
    Panels panels;
    int mr;                   // columns of the left side in a tile: all of a panel, or some
    int lanes;                // columns of the right side in a vector
    bool integer_sums;        // of at most integer_sum_rows rows
    double left_offset;       // that tiles expect subtracted from every value of their left side
    Tile tile[max_vectors];   // by the number of vectors of columns, minus one
    Tile first[max_vectors];  // the same, for the first rows: their sums are not added but stored
    Tile
        half[max_vectors];  // the same for mr / 2 columns of the left side, and sums that are added
    ListedTile listed[max_vectors];
    FindNonzeroSteps nonzero_steps;
    ColumnSums column_sums;
    SubtractOffset subtract_offset;  // null if the offset is 0
    AddSums add_sums;
    PlaceSums place;
    PlaceSums place_transposed;

    std::size_t sum_bytes() const noexcept {
        return integer_sums ? sizeof(std::int32_t) : sizeof(double);
    }
};

// Products leftᵀ right of rows with few columns, added to float64 sums. Rows are read in place. A caller passes at most
// block_rows of them at a time; `grouped` takes any number.
template <class T>
struct Narrow {
    int lanes;
    int mr;       // columns of the left side in a tile
    int nv;       // the most vectors of a tile
    int quarter;  // grouped[q] has (q + 1) * quarter sums, at most `lanes`

    // Both sides have at most `lanes` columns, and the left one no more than the right one; their rows are contiguous. A vector
    // holds `lanes` / right_columns rows of the right side, one after the other. sums[j * lanes + l] += Σ left[k, j] · right[k, i],
    // where l is the place of row k and column i in such a vector. With `rotated`, both sides have the same number of columns and
    // the left factor is that of column (i + j) mod left_columns.
    using Grouped = void (*)(const T* left, int left_columns, const T* right, int right_columns,
                             bool rotated, std::size_t rows, double* sums) noexcept;
    Grouped grouped[4];

    // out[i * stride + j] += Σ_k left[k, i] · right[k, j] for mr columns i and some vectors of columns j: they follow one another,
    // but the last one begins `last` elements after the first. Step k prefetches the line at prefetch_at + k * prefetch_stride.
    using Tile = void (*)(const T* left, std::ptrdiff_t left_stride, const T* right,
                          std::ptrdiff_t right_stride, std::ptrdiff_t last, int rows, double* out,
                          std::ptrdiff_t stride, const unsigned char* prefetch_at,
                          std::ptrdiff_t prefetch_stride) noexcept;
    Tile tile[max_vectors];  // by the number of vectors, minus one
    Tile half[max_vectors];  // the same for mr / 2 columns i
    // The same for the first rows: their sums are not added but stored.
    Tile first[max_vectors];
    Tile first_half[max_vectors];

    // out[i * stride + j] += Σ_k left[k, i] · right[k, j] for one to four columns i and any number of columns j. `sums` has room for
    // as many values as `out`, and `stride` for whole vectors.
    using Thin = void (*)(const T* left, std::ptrdiff_t left_stride, const T* right,
                          std::ptrdiff_t right_stride, int rows, int columns, T* sums, double* out,
                          std::ptrdiff_t stride) noexcept;
    Thin thin[4];  // by the number of columns of the left side, minus one
};

// The Gram matrix of rows with few bytes, which are contiguous, in exact integers.
struct NarrowBytes {
    int lanes;           // the most columns; 0 if the level has no such product
    double left_offset;  // that is subtracted from the left factor of every product

    // A vector has the columns of `lanes` / columns rows one after the other, and in each lane several such groups of rows. For
    // j in [0, columns / 2], sums[j * lanes + l] += Σ (x[k, (i + j) mod columns] - left_offset) · x[k, i], where l is the place of
    // row k and column i in its group. One more row of sums receives Σ x[k, i].
    using Rotated = void (*)(const unsigned char* rows, int columns, std::size_t row_count,
                             double* sums) noexcept;
    Rotated rotated[max_list_lanes / 2 + 1];  // by columns / 2
};

// c[i, j] = start[j] + Σ_k a[i, k] · w[k, j], or c[i, j] += that sum if `adds`, for `rows` rows and `columns` columns.
template <class T>
struct LinearProduct {
    const T* a;
    std::ptrdiff_t a_stride;  // elements from one row to the next, here and below
    std::size_t rows;
    const T* w;  // a panel, or part of a matrix
    std::ptrdiff_t w_stride;
    bool padded;         // whether the rows of w can be read in whole vectors
    const int* nonzero;  // null, or the `depth` numbers k to use; w is padded then
    int depth;
    int columns;
    bool adds;
    const T* start;  // null: zeros
    T* c;
    std::ptrdiff_t c_stride;
};
template <class T>
using MultiplyLinear = void (*)(const LinearProduct<T>& product) noexcept;

// out[i * columns + j] = start[j] + Σ_k a[i * a_stride + k] · w[j * w_stride + k] for `rows` rows. Each column of w is filled up
// with zeros to whole vectors; `start` may be null, for zeros.
template <class T>
using Dots = void (*)(const T* a, std::ptrdiff_t a_stride, std::size_t rows, const T* w,
                      std::ptrdiff_t w_stride, int depth, const T* start, T* out) noexcept;

// The most columns of any level's Dots.
inline constexpr int max_dots = 8;

// Copies a matrix at byte strides into row-major T.
template <class T>
using CopyRows = void (*)(const unsigned char* source, std::ptrdiff_t row_stride,
                          std::ptrdiff_t col_stride, std::size_t rows, std::size_t cols, T* out,
                          std::size_t out_stride) noexcept;

// out[i] = act(in[i]), or its derivative.
template <class T>
using Forward = void (*)(const T* in, T* out, std::size_t count) noexcept;

// The inverse of act, of values that are first clipped to `margin` inside the range.
template <class T>
using Inverse = void (*)(const T* in, T* out, std::size_t count, T margin) noexcept;

// out = J in, where J is the Jacobian, a symmetric matrix, of the activation at the z whose activation is `values`.
template <class T>
using Jacobian = void (*)(const T* in, const T* values, T* out, std::size_t count) noexcept;

// sums[j] += Σ_i J_jj², the squared diagonal of that Jacobian, over rows x cols contiguous values.
template <class T>
using SquaredSlopes = void (*)(const T* values, std::size_t rows, std::size_t cols,
                               double* sums) noexcept;

template <class T>
struct Dense {
    int mr;       // rows of a forward tile
    int vectors;  // of columns of a forward tile
    int lanes;    // columns of a vector

    MultiplyLinear<T> multiply;
    Dots<T>
        dots[max_dots];  // by the number of columns, minus one; null for more than half a vector
    ByDType<CopyRows<T>>
        copy_rows;  // of the source; null where the conversion would lose precision
    // The activations. Those that are not elementwise take `count` values as one row.
    ByActivation<Forward<T>> forward;
    ByActivation<Forward<T>> derivative;
    ByActivation<Inverse<T>> inverse;
    ByActivation<Jacobian<T>> jacobian;
    ByActivation<SquaredSlopes<T>> squared_slopes;
    bool (*all_finite)(const T* values, std::size_t count) noexcept;
    // Moves values[j] to the nearest number from lower[j] to upper[j]; NaN stays.
    void (*clip)(T* values, const T* lower, const T* upper, std::size_t count) noexcept;
    // Lists, in increasing order, the columns that are not zero in all of these rows. Returns their number. The list has room
    // for max_list_lanes more numbers than there are columns.
    int (*nonzero_columns)(const T* a, std::ptrdiff_t stride, int rows, int columns,
                           int* nonzero) noexcept;
};

// out[i * stride + j] = scale[j] · Σ_k rows[i][k] · w[k, j] for `count` (1 to mr) rows and `columns` columns: at most as
// many as the tile's vectors hold, and more than without the last vector. An element has four bytes, with the values of one
// or several k; `steps` is a number of elements. The elements of a row are unsigned and contiguous; those of w are signed,
// and the tile's vectors of one element follow each other. If `nonzero` is not null, it lists the `steps` elements to use.
// scale has room for whole vectors.
using BytesTile = void (*)(const unsigned char* const* rows, int count, const std::int32_t* w,
                           const int* nonzero, int steps, const float* scale, int columns,
                           float* out, std::ptrdiff_t stride) noexcept;

// Products of bytes and int8 weights.
struct Bytes {
    int mr;                       // rows of a tile
    int lanes;                    // columns of a vector
    int step_rows;                // values in an element: four bytes, or two int16
    BytesTile tile[max_vectors];  // by the number of vectors of columns, minus one
};

// The size of two blocks that are compared or copied across the diagonal: both fit into the L1 cache, and it is a multiple of all lanes.
inline constexpr int mirrored_block = 32;

// The most rows of a triangular kernel's call.
inline constexpr int most_triangular_rows = 160;

// Triangular kernels over row-major double; U is upper triangular. They touch `size` rows, at most most_triangular_rows.
struct Triangular {
    int at_once;  // rows up to which it is faster to factor a matrix as one block than to pack blocks
    // Factors the leading block in place, A = UᵀU, reading and writing only its upper triangle. Returns the first row whose
    // pivot is not above floor[row] and leaves that pivot in place, or returns `size`.
    int (*factor)(double* A, std::ptrdiff_t stride, int size, const double* floor) noexcept;
    // B := U⁻ᵀ B and B := U⁻¹ B for `cols` columns.
    void (*solve_lower)(const double* U, std::ptrdiff_t stride, int size, double* B,
                        std::ptrdiff_t B_stride, int cols) noexcept;
    void (*solve_upper)(const double* U, std::ptrdiff_t stride, int size, double* B,
                        std::ptrdiff_t B_stride, int cols) noexcept;
    // Like the tiles of the product of double, but they subtract.
    Tile subtract[max_vectors];
    // Raises `largest` to the largest magnitude of two blocks, of `rows` x `cols` and `cols` x `rows`, and `difference` to the
    // largest difference between upper[i, j] and lower[j, i]. Returns false if one of the differences is not finite. With
    // `diagonal` both are one block, whose upper triangle meets all of it.
    bool (*compare_mirrored)(const double* upper, std::ptrdiff_t upper_stride, const double* lower,
                             std::ptrdiff_t lower_stride, int rows, int cols, bool diagonal,
                             double& largest, double& difference) noexcept;
    // lower[j, i] = upper[i, j] for mirrored_block rows and columns.
    void (*copy_mirrored)(const double* upper, std::ptrdiff_t upper_stride, double* lower,
                          std::ptrdiff_t lower_stride) noexcept;
};

// The widest F64 of any level.
inline constexpr int max_lanes = 8;

// The results of `factor` for each of its systems.
struct Factored {
    double shift[max_lanes];  // added to the diagonal by the ridge
    // The first row whose pivot is not above its floor, and that pivot; undefined in lanes that did not fail.
    int pivot[max_lanes];
    double value[max_lanes];
};

// Interleaves the symmetric matrices that start at source[0, lanes); what is below the diagonal is undefined. Returns true
// if all values are finite and all matrices are symmetric up to `tolerance` times their largest magnitude; a matrix at the
// limit of the tolerance may be refused.
using PackSymmetric = bool (*)(const unsigned char* const* source, std::ptrdiff_t row_stride,
                               std::ptrdiff_t col_stride, int n, double tolerance,
                               double* out) noexcept;

// Interleaves any matrices. Returns true if all values are finite.
using PackInterleaved = bool (*)(const unsigned char* const* source, std::ptrdiff_t row_stride,
                                 std::ptrdiff_t col_stride, int rows, int cols,
                                 double* out) noexcept;

// Small systems, solved side by side: lane s of every vector belongs to system s. An interleaved n x n matrix takes
// n * interleaved_stride(n) vectors, n x m right-hand sides take n * m, row by row. A caller with fewer systems than lanes
// repeats one.
struct Interleaved {
    int lanes;
    ByDType<PackSymmetric> pack_symmetric;
    ByDType<PackInterleaved> pack;
    // Writes interleaved matrices to out[0, lanes), row major, for the lanes whose bit is set.
    void (*unpack)(const double* in, int rows, int cols, double* const* out,
                   std::ptrdiff_t out_stride, unsigned wanted) noexcept;
    // Adds eps, or eps times the mean of the diagonal, to the diagonal of A and factors it in place: A + shift·I = UᵀU. The
    // diagonal then holds the reciprocals of U's. A pivot must be above noise times its diagonal entry. Returns a bit for
    // every lane that failed; the factor of such a lane is undefined, the others are not affected.
    unsigned (*factor)(double* A, int n, double eps, bool relative, double noise,
                       Factored& found) noexcept;
    // B := (UᵀU)⁻¹ B for `cols` right-hand sides.
    void (*solve)(const double* U, int n, double* B, int cols) noexcept;
};

// In vectors. Odd, so that the rows of a column do not fall into one cache set.
constexpr int interleaved_stride(int n) noexcept { return n | 1; }

// seen[b] |= bytes[b] for b in [0, count).
using MergeBits = void (*)(const unsigned char* bytes, std::size_t count,
                           unsigned char* seen) noexcept;

struct Table {
    Product u8;  // exact: the packed bytes are integers
    Product f32;
    Product f64;
    Narrow<float> narrow_f32;
    Narrow<double> narrow_f64;
    NarrowBytes narrow_u8;
    Dense<float> dense_f32;
    Dense<double> dense_f64;
    Bytes bytes;
    Triangular triangular;
    Interleaved interleaved;
    MergeBits merge_bits;
};

}  // namespace bpls::kernels
