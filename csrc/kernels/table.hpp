// The table of kernels that every instruction-set level fills in. Kernels are plain functions over raw pointers: they
// own no memory, start no thread, throw nothing and know no network.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bpls/activation.hpp"
#include "bpls/matrix.hpp"

namespace bpls::kernels {

// Rows that a product of floats accumulates in registers before it adds them to float64. At 256 the sum of products of
// two bytes, 256 · 255², is below 2²⁴: even float32 holds it exactly.
inline constexpr int block_rows = 256;

// Rows of W that a forward tile takes at a time: rows of A are read in long runs, and panels stay in the second cache.
inline constexpr int depth_rows = 512;

// The same for products of integers, whose int32 sums would hold 33,025 rows; more rows would not fit in the first cache.
inline constexpr int integer_block_rows = 512;

// Copies `rows` x `width` elements, lying at byte strides, into a panel from `lane` on. A panel is row-major and nr columns
// wide; `step_rows` consecutive rows of a column share one packed element, and a last element that is not full is filled
// up with rows that add nothing. `weight`, where not null, holds a factor per row. From lane 0 on, `width` may also be
// that of several whole panels, which follow one another at `panel_bytes`.
using Pack = void (*)(const unsigned char* source, std::ptrdiff_t row_stride,
                      std::ptrdiff_t col_stride, int rows, int width, const double* weight,
                      unsigned char* panel, int lane, std::size_t panel_bytes) noexcept;

// out[i * stride + j] += Σ_k (left[k, i] - left_offset) · right[k, j] for mr columns i of one panel, from any lane on, and some
// vectors of columns j of another, or of the same, or of a matrix of the panels' type. right[k, j] is element k * right_stride + j:
// right_stride is nr in a panel. Meanwhile the cache lines at prefetch_at + k * prefetch_stride are fetched.
using Tile = void (*)(const unsigned char* left, const unsigned char* right,
                      std::ptrdiff_t right_stride, int steps, double* out, std::ptrdiff_t stride,
                      const unsigned char* prefetch_at, std::ptrdiff_t prefetch_stride) noexcept;

// The same over the steps k that `nonzero` lists, `count` of them.
using ListedTile = void (*)(const unsigned char* left, const unsigned char* right,
                            std::ptrdiff_t right_stride, const int* nonzero, int count, double* out,
                            std::ptrdiff_t stride, const unsigned char* prefetch_at,
                            std::ptrdiff_t prefetch_stride) noexcept;

// Lists the steps in which some vectors of columns are not zero, in increasing order, and returns how many they are.
using NonzeroSteps = int (*)(const unsigned char* right, std::ptrdiff_t right_stride, int vectors,
                             int steps, int* nonzero) noexcept;

// out[j] += Σ_k panel[k, j] over the nr columns of a panel.
using ColumnSums = void (*)(const unsigned char* panel, int steps, double* out) noexcept;

// Does nothing but multiply-adds of one arithmetic, in registers, `rounds` times over. Returns how many operations that
// was; a multiplication and an addition are two.
using Peak = double (*)(std::size_t rounds) noexcept;

// How columns are packed into panels.
struct Panels {
    int nr;          // columns of a panel
    int block_rows;  // rows that a panel holds at most
    int step_rows;   // rows in a packed element
    int element;     // bytes of a packed element
    Pack pack[3];    // by the source's DType, null where the conversion would lose precision
};

// Vectors in a row of any level's panels at most. Where there are fewer, more are never asked for.
inline constexpr int max_vectors = 3;

// A product of packed panels in one arithmetic.
struct Product {
    Panels panels;
    int mr;                  // columns of the left side in a tile: a panel's or a part of them
    int lanes;               // columns of the right side in a vector
    double left_offset;      // what the tiles take from every value of their left side
    Tile tile[max_vectors];  // by the number of vectors of columns, less one
    Tile narrow[3];  // of a quarter, a half, three quarters of mr columns; null where mr is small
    ListedTile listed[max_vectors];
    NonzeroSteps nonzero_steps;
    ColumnSums column_sums;
    Peak peak;
};

// c[i * c_stride + j] += Σ_k a[i * a_stride + k] · w[k * w_stride + j] for `rows` (1 to mr) rows and `columns` columns. k is
// in [0, depth), or one of the `depth` numbers `nonzero` where that is not null. w is a panel, with w_stride nr, or lies in a
// matrix. c has room for whole vectors.
template <class T>
using LinearTile = void (*)(const T* a, std::ptrdiff_t a_stride, int rows, const T* w,
                            std::ptrdiff_t w_stride, const int* nonzero, int depth, int columns,
                            T* c, std::ptrdiff_t c_stride) noexcept;

// Copies a matrix at byte strides into row-major T.
template <class T>
using CopyRows = void (*)(const unsigned char* source, std::ptrdiff_t row_stride,
                          std::ptrdiff_t col_stride, std::size_t rows, std::size_t cols, T* out,
                          std::size_t out_stride) noexcept;

// The most lanes of any level's vectors: a list of columns is written in whole vectors.
inline constexpr int max_list_lanes = 16;

template <class T>
struct Dense {
    Panels panels;  // of the weights
    int mr;         // rows of a forward tile
    int lanes;      // columns of a vector

    LinearTile<T> tile;
    CopyRows<T> copy_rows[3];  // by source DType, null where T cannot hold it
    // The activations, indexed by Activation. Softmax takes `count` as one row.
    void (*forward[activation_count])(const T* in, T* out, std::size_t count) noexcept;
    void (*derivative[activation_count])(const T* in, T* out, std::size_t count) noexcept;
    void (*inverse[activation_count])(const T* in, T* out, std::size_t count, T margin) noexcept;
    // out = J in, where J is the Jacobian, a symmetric matrix, of the activation at the z that has these values.
    void (*jacobian[activation_count])(const T* in, const T* values, T* out,
                                       std::size_t count) noexcept;
    // sums[j] += Σ_i J_jj², the diagonal of that Jacobian squared, over rows x cols values, the rows one after another.
    void (*squared_slopes[activation_count])(const T* values, std::size_t rows, std::size_t cols,
                                             double* sums) noexcept;
    bool (*all_finite)(const T* values, std::size_t count) noexcept;
    // Lists the columns that are not zero all over some rows, in increasing order, and returns how many they are. The list
    // has room for max_list_lanes more than there are columns.
    int (*nonzero_columns)(const T* a, std::ptrdiff_t stride, int rows, int columns,
                           int* nonzero) noexcept;
};

// out[i * stride + j] = scale[j] · Σ_k rows[i][k] · w[k, j] for `count` (1 to mr) rows and `columns` columns: at most those of the
// tile's vectors, and more than those of all but the last. Elements of four bytes hold the values of one or several k,
// and steps are elements: of a row unsigned ones, side by side; of w signed ones, the tile's vectors of an element after
// each other. Where `nonzero` is not null it lists the elements that count, and steps is how many. scale has room for whole
// vectors.
using BytesTile = void (*)(const unsigned char* const* rows, int count, const std::int32_t* w,
                           const int* nonzero, int steps, const float* scale, int columns,
                           float* out, std::ptrdiff_t stride) noexcept;

// Products of bytes and int8 weights.
struct Bytes {
    int mr;                       // rows of a tile
    int lanes;                    // columns of a vector
    int step_rows;                // values in an element: four bytes, or two int16
    BytesTile tile[max_vectors];  // by the number of vectors of columns, less one
};

// Of two blocks that are compared across the diagonal: both stay in the first cache, and it is a multiple of all lanes.
inline constexpr int mirrored_block = 32;

// Triangular kernels over row-major double, U upper triangular. They touch `size` rows.
struct Triangular {
    // Factors the leading block in place, A = UᵀU, reading and writing its upper triangle only. Returns the first row
    // whose pivot is not above floor[row] (that pivot is left in place), or `size`.
    int (*factor)(double* A, std::ptrdiff_t stride, int size, const double* floor) noexcept;
    // B := U⁻ᵀ B and B := U⁻¹ B for `cols` columns.
    void (*solve_lower)(const double* U, std::ptrdiff_t stride, int size, double* B,
                        std::ptrdiff_t B_stride, int cols) noexcept;
    void (*solve_upper)(const double* U, std::ptrdiff_t stride, int size, double* B,
                        std::ptrdiff_t B_stride, int cols) noexcept;
    // As the tiles of the product of double, but they subtract.
    Tile subtract[max_vectors];
    // Raises `largest` to the largest magnitude of two blocks of mirrored_block rows and columns, and `difference` to the
    // largest that is between upper[i, j] and lower[j, i]. False where one of the differences is not finite.
    bool (*compare_mirrored)(const double* upper, std::ptrdiff_t upper_stride, const double* lower,
                             std::ptrdiff_t lower_stride, double& largest,
                             double& difference) noexcept;
};

// The widest F64 of any level.
inline constexpr int max_lanes = 8;

// What `factor` found out about each of its systems.
struct Factored {
    double shift[max_lanes];  // what the ridge added to the diagonal
    int pivot[max_lanes];     // the first row whose pivot is not above its floor, and that pivot;
    double value[max_lanes];  // undefined in lanes that did not fail
};

// Small systems, solved side by side: lane s of every vector belongs to system s. Interleaved, an n x n matrix takes
// n * interleaved_stride(n) vectors and n x m right-hand sides n * m, row after row. A caller with fewer systems than
// lanes repeats one.
struct Interleaved {
    int lanes;
    // Interleaves the symmetric matrices that start at source[0, lanes), by DType; what is below the diagonal is
    // undefined. True where all values are finite and all matrices are symmetric up to `tolerance` times their largest
    // magnitude; a matrix at the edge of that may be turned down.
    bool (*pack_symmetric[3])(const unsigned char* const* source, std::ptrdiff_t row_stride,
                              std::ptrdiff_t col_stride, int n, double tolerance,
                              double* out) noexcept;
    // Interleaves any matrices, by DType. True where all values are finite.
    bool (*pack[3])(const unsigned char* const* source, std::ptrdiff_t row_stride,
                    std::ptrdiff_t col_stride, int rows, int cols, double* out) noexcept;
    // Writes interleaved matrices to out[0, lanes), row major, for the lanes whose bit is set.
    void (*unpack)(const double* in, int rows, int cols, double* const* out,
                   std::ptrdiff_t out_stride, unsigned wanted) noexcept;
    // Adds eps, or eps times the mean of the diagonal, to the diagonal of A and factors it in place: A + shift·I = UᵀU,
    // the diagonal holding the reciprocals of U's. A pivot is to be above noise times its diagonal entry. Returns a bit
    // for every lane that failed; its factor is undefined, the others' are not affected.
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

// Reads values, a multiple of 128 of them, as fast as they come.
using ReadAll = void (*)(const float* values, std::size_t count) noexcept;

struct Table {
    Product u8;  // exact: the packed bytes are integers
    Product f32;
    Product f64;
    Dense<float> dense_f32;
    Dense<double> dense_f64;
    Bytes bytes;
    Triangular triangular;
    Interleaved interleaved;
    MergeBits merge_bits;
    ReadAll read_all;
};

// One per translation unit; only those of the build's architecture exist.
extern const Table generic;
extern const Table avx2;
extern const Table avx512;
extern const Table avx512vnni;

}  // namespace bpls::kernels
