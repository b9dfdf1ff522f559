// The choice between the ways to compute a product, by its shape alone.
#pragma once

#include <cstddef>

namespace bpls::gram_detail {

enum class Way {
    narrow,   // both sides have few columns: rows are read in place, the sums stay in registers
    thin,     // the left side has few columns: rows of the right side stream through
    direct,   // all rows are packed at once; tiles go straight to the result
    blocked,  // row blocks are packed and summed one after the other, and added in order
};

// The most columns of the left side of a thin product.
inline constexpr std::size_t most_thin_columns = 8;

// leftᵀ right, where the left side is the narrower one.
struct ProductShape {
    std::size_t rows;
    std::size_t left;   // columns
    std::size_t right;  // columns
    bool symmetric;     // the left side's columns are the right side's first
    bool in_place;      // the right side can be read where it is
};

// What the choice depends on besides the shape: the product's arithmetic at the active level.
struct Arithmetic {
    std::size_t narrow_columns;  // the most of a narrow product
    std::size_t value_bytes;     // of a packed value
    std::size_t most_rows;       // that are summed at once
};

Way choose_way(const ProductShape& shape, const Arithmetic& arithmetic) noexcept;

}  // namespace bpls::gram_detail
