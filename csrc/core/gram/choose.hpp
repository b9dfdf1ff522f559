// The choice between the ways to compute a product, by its shape alone.
#pragma once

#include <cstddef>

namespace bpls::gram_detail {

enum class Way {
    narrow,   // both sides have few columns: rows are read in place, the sums stay in registers
    thin,     // the left side has one to four columns: rows of the right side stream through
    direct,   // all rows are packed at once; tiles go straight to the result
    blocked,  // row blocks are packed and summed one after the other, and added in order
};

// leftᵀ right, where the left side is the narrower one.
struct ProductShape {
    std::size_t rows;
    std::size_t left;   // columns
    std::size_t right;  // columns
    bool symmetric;     // the left side's columns are the right side's first
    bool in_place;      // the right side can be read where it is
};

// What the choice depends on besides the shape: the product's arithmetic.
struct Vectors {
    std::size_t lanes;
    std::size_t most;       // in a tile
    std::size_t element;    // bytes of a packed value
    std::size_t most_rows;  // whose sums are exact without row blocks
};

Way choose_way(const ProductShape& shape, const Vectors& vectors) noexcept;

}  // namespace bpls::gram_detail
