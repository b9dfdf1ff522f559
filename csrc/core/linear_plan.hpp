// How a layer's product A W is computed, by its shape: the one place that decides it. docs/kernels.md lists the ways.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/table.hpp"

namespace bpls {

enum class LinearWay {
    dots,      // few outputs: dot products of A's rows with the columns of W
    in_place,  // few rows: register tiles that read W where it is
    panels     // register tiles that read W from panels
};

// What the decisions depend on.
struct LinearShape {
    std::size_t rows;   // of A
    std::size_t depth;  // columns of A
    std::size_t width;  // columns of W
    std::size_t size;   // bytes of an element
    std::size_t lanes;  // columns of a vector
    std::size_t tile_rows;
};

// Whether dot products are faster than tiles, whose vectors would be mostly empty. They end in a sum across the lanes for every
// output, which only long rows make up for. Does not depend on the rows: their bits must not.
constexpr bool by_dots(std::size_t depth, std::size_t width, std::size_t lanes) noexcept {
    constexpr std::size_t free_outputs = 2, columns_per_output = 8;
    return width <= std::min<std::size_t>(lanes / 2, kernels::max_dots) &&
           (width <= free_outputs || depth >= columns_per_output * (width - free_outputs));
}

// Whether leaving zero columns of A out can pay. Zero times infinity is not zero: the weights must be finite, too.
constexpr bool pays_to_search(std::size_t depth, std::size_t width) noexcept {
    constexpr std::size_t fewest_columns = 64;  // of A: otherwise there is little to skip
    constexpr std::size_t fewest_sums = 32;  // of a row: else a search takes as long as the product
    return depth >= fewest_columns && width >= fewest_sums;
}

// With fewer rows of A, packing W takes longer than it saves.
inline constexpr std::size_t fewest_rows_to_pack = 96;

constexpr LinearWay way_of(const LinearShape& shape, bool W_readable_in_place) noexcept {
    if (by_dots(shape.depth, shape.width, shape.lanes)) return LinearWay::dots;
    return W_readable_in_place && shape.rows < fewest_rows_to_pack ? LinearWay::in_place
                                                                   : LinearWay::panels;
}

// About as many multiply-adds as the product takes time: a tile computes whole vectors, and dot products wait for memory.
constexpr double cost_of(const LinearShape& shape) noexcept {
    const std::size_t width = by_dots(shape.depth, shape.width, shape.lanes)
                                  ? std::max<std::size_t>(shape.width, 2)
                                  : (shape.width + shape.lanes - 1) / shape.lanes * shape.lanes;
    return static_cast<double>(shape.rows) * static_cast<double>(shape.depth * width);
}

// Rows that a thread takes at a time. Their part of A stays in the second cache while all panels pass, and their sums in the
// first two until the activation is applied. Every thread gets several strips, where there are enough rows.
constexpr std::size_t strip_rows_of(const LinearShape& shape, std::size_t threads) noexcept {
    constexpr std::size_t strip_bytes = 96 << 10, sums_bytes = 24 << 10;
    constexpr std::size_t strips_per_thread = 4;
    const std::size_t weights = shape.depth * shape.width * shape.size;
    const std::size_t fewest = weights > sums_bytes ? 48 : 16;
    const std::size_t by_cache =
        std::min(strip_bytes / (shape.size * std::max<std::size_t>(shape.depth, 1)),
                 sums_bytes / (shape.size * shape.width));
    std::size_t rows = std::max(fewest, by_cache);
    if (threads > 1) rows = std::min(rows, shape.rows / (threads * strips_per_thread) + 1);
    return (rows + shape.tile_rows - 1) / shape.tile_rows * shape.tile_rows;
}

}  // namespace bpls
