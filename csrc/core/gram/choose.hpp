// The choice between the ways to compute a product, by its shape alone. The borders were measured: where two ways meet they
// take about the same time.
#pragma once

#include <cstddef>

namespace bpls::gram_detail {

enum class Way {
    narrow,  // both sides have few columns: rows are read in place, the sums stay in registers
    thin,  // the left side has few columns: the rows of the right side, read in place, stream through
    in_place,  // tiles read both sides in place
    direct,    // all rows are packed at once; tiles go straight to the result
    blocked,   // row blocks are packed and summed one after the other, and added in order
};

// Which sides of a product can be read where they are.
enum class InPlace { none, right, both };

// The most columns of the left side of a thin product.
inline constexpr std::size_t most_thin_columns = 8;
// Rows beyond this do not stay in the caches that the threads share.
inline constexpr std::size_t most_cached_bytes = 4u << 20;
// Products are packed at once, symmetric ones up to this size, if they have few rows for each column: row blocks would have too few
// rows for their sums, of which each thread has its own. With more rows, row blocks share the work more evenly and may skip zeros.
inline constexpr std::size_t most_packed_bytes = 14u << 20;  // no thread needs more than 16 MiB
inline constexpr std::size_t few_rows_per_column = 5;
// The same for cached rows of so many columns, whose result threads can share evenly.
inline constexpr std::size_t many_columns = 256;
inline constexpr std::size_t few_cached_rows_per_column = 8;
// Below this size row blocks cost more than they gain, whatever the shape.
inline constexpr std::size_t small_bytes = 128u << 10;

// leftᵀ right, where the left side is the narrower one.
struct ProductShape {
    std::size_t rows;
    std::size_t left;   // columns
    std::size_t right;  // columns
    bool symmetric;     // the left side's columns are the right side's first
    InPlace in_place;
};

// What the choice depends on besides the shape: the product's arithmetic at the active level.
struct Arithmetic {
    std::size_t lanes;           // columns of a vector
    std::size_t narrow_columns;  // the most of a narrow product
    std::size_t value_bytes;     // of a packed value
    std::size_t sum_rows;        // the most rows that a sum holds
    std::size_t copies = 1;      // of the columns that are packed
};

constexpr Way choose_way(const ProductShape& shape, const Arithmetic& arithmetic) noexcept {
    const std::size_t columns = shape.right + (shape.symmetric ? 0 : shape.left);
    const std::size_t bytes = shape.rows * columns * arithmetic.value_bytes;
    const bool cached = bytes <= most_cached_bytes;
    const bool few_rows = shape.rows <= shape.left * (cached && shape.left >= many_columns
                                                          ? few_cached_rows_per_column
                                                          : few_rows_per_column);
    const std::size_t most_bytes =
        shape.symmetric ? most_packed_bytes / arithmetic.copies : most_cached_bytes;
    const bool packs_at_once = bytes <= (few_rows ? most_bytes : small_bytes);
    const bool thin = shape.left <= most_thin_columns;
    if (cached && !thin && shape.right > arithmetic.lanes && !shape.symmetric &&
        shape.in_place == InPlace::both)
        return Way::in_place;
    if (shape.right <= arithmetic.narrow_columns) return Way::narrow;
    if (thin && !shape.symmetric && shape.in_place != InPlace::none) return Way::thin;
    return packs_at_once && shape.rows <= arithmetic.sum_rows ? Way::direct : Way::blocked;
}

// Whether a product of sides in place is computed as the transpose of rightᵀ left. Tiles take the left side's columns `step` at a
// time, and the right side's in vectors of `lanes`. If `transposed`, the result of leftᵀ right is stored in columns: moving a vector
// of sums there takes as long as multiplying rows_of_transposition rows.
constexpr bool puts_wider_side_left(const ProductShape& shape, bool transposed, std::size_t step,
                                    std::size_t lanes) noexcept {
    constexpr std::size_t rows_of_transposition = 8;
    const auto work = [&](std::size_t left, std::size_t right, bool in_columns) {
        return (left + step - 1) / step * step * ((right + lanes - 1) / lanes) *
               (shape.rows + (in_columns ? rows_of_transposition : 0));
    };
    return shape.left >= lanes &&
           work(shape.right, shape.left, !transposed) < work(shape.left, shape.right, transposed);
}

}  // namespace bpls::gram_detail
