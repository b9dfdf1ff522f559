// How a layer's product A W is computed, by its shape: the one place that decides it. docs/kernels.md lists the ways.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/table.hpp"

namespace bpls {

enum class LinearWay {
    dots,      // few outputs: dot products of the rows of A and the columns of W
    in_place,  // few rows: register tiles that read W where it is
    panels     // register tiles that read W from panels
};

struct LinearShape {
    std::size_t rows;   // of A
    std::size_t depth;  // columns of A
    std::size_t width;  // columns of W
};

// What the decisions depend on besides the shape.
struct LinearMachine {
    std::size_t size;       // bytes of an element
    std::size_t lanes;      // columns of a vector
    std::size_t tile_rows;  // rows of a register tile
    std::size_t threads;
};

struct LinearPlan {
    LinearWay way;
    bool searches;           // for zeros in A, if W is finite
    std::size_t strip_rows;  // that a thread takes at a time
};

// Rows of W that a product takes at a time: rows of A are read in long runs, and panels stay in the L2 cache.
inline constexpr std::size_t depth_block = 512;

// Whether dot products are faster than tiles, whose vectors would be mostly empty. They end in a sum across the lanes for every
// output, which only long rows make up for. This does not depend on the number of rows, because their bits must not.
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

// About as many multiply-adds as the product takes time: a tile computes whole vectors, and dot products wait for memory.
constexpr double cost_of(const LinearShape& shape, std::size_t lanes) noexcept {
    const std::size_t width = by_dots(shape.depth, shape.width, lanes)
                                  ? std::max<std::size_t>(shape.width, 2)
                                  : (shape.width + lanes - 1) / lanes * lanes;
    return static_cast<double>(shape.rows) * static_cast<double>(shape.depth * width);
}

// The rows of a strip. Their part of A stays in the second cache while all panels pass, and their sums in the first or second
// until the activation is applied. Every thread gets several strips, where there are enough rows.
constexpr std::size_t strip_rows_of(const LinearShape& shape,
                                    const LinearMachine& machine) noexcept {
    constexpr std::size_t strip_bytes = 96 << 10, sums_bytes = 24 << 10;
    constexpr std::size_t strips_per_thread = 4;
    // Weights that do not fit into the first cache are read anew for every strip.
    const std::size_t weights = shape.depth * shape.width * machine.size;
    const std::size_t fewest = weights > sums_bytes ? 48 : 16;
    const std::size_t row_bytes = std::max<std::size_t>(shape.depth, 1) * machine.size;
    std::size_t rows = std::min(strip_bytes / row_bytes, sums_bytes / (shape.width * machine.size));
    rows = std::max(rows, fewest);
    if (machine.threads > 1)
        rows = std::min(rows, shape.rows / (machine.threads * strips_per_thread) + 1);
    return (rows + machine.tile_rows - 1) / machine.tile_rows * machine.tile_rows;
}

// Decides how a product with at least one output is computed.
constexpr LinearPlan plan_linear(const LinearShape& shape, const LinearMachine& machine,
                                 bool W_readable_in_place) noexcept {
    constexpr std::size_t fewest_rows_to_pack =
        96;  // with fewer, packing W takes longer than it saves
    constexpr std::size_t fewest_rows_to_search = 256;  // with fewer, testing W for infinities does
    LinearWay way = LinearWay::panels;
    if (by_dots(shape.depth, shape.width, machine.lanes))
        way = LinearWay::dots;
    else if (W_readable_in_place && shape.rows < fewest_rows_to_pack)
        way = LinearWay::in_place;
    const bool searches = way == LinearWay::panels && shape.rows >= fewest_rows_to_search &&
                          pays_to_search(shape.depth, shape.width);
    return {way, searches, strip_rows_of(shape, machine)};
}

}  // namespace bpls
