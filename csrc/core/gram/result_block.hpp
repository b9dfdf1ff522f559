// A block of a product's result, and the layout of its sums for one row block. The scratch memory of a block holds sets
// of panels, each with the packed columns of at most panel_rows() rows, then the row weights, then the sums.
#pragma once

#include <cstddef>

#include "core/gram/nonzero_columns.hpp"
#include "core/gram/product_task.hpp"

namespace bpls::gram_detail {

// Tiles are multiplied in groups of at most this many columns of either side, whose sums stay in the second cache.
inline constexpr std::size_t group_columns = 128;

struct ResultBlock {
    // The block where columns `left_columns` meet columns `right_columns` of a task, which outlives it.
    ResultBlock(const ProductTask& of, std::size_t index, Range left_columns,
                Range right_columns) noexcept;

    const ProductTask* task;
    std::size_t task_index;
    Range left;
    Range right;
    PanelLayout layout;
    std::size_t mr;  // columns of the left side in a tile
    std::size_t panel_sets;
    std::size_t in_place;  // columns of the right side that are read in place
    bool diagonal;         // the left side's columns are the right side's first
    bool square;           // ... and there are no others
    bool packs_left;       // otherwise the left side's columns are those of the right side's panels
    bool has_left;         // the left side has panels of its own
    bool adds_column_sums;  // as one of the blocks that pack the weighted side does

    std::size_t panel_rows() const noexcept {
        return static_cast<std::size_t>(layout.panels->block_rows);
    }
    // Rows that are packed before they are multiplied.
    std::size_t chunk_rows() const noexcept { return panel_sets * panel_rows(); }

    // The side that has the row weights, and whose columns are summed.
    const Range& weighted_range() const noexcept { return task->transposed ? left : right; }
    bool sums_columns() const noexcept {
        return adds_column_sums || task->product.left_offset != 0;
    }

    // ---- sizes and offsets in scratch memory

    std::size_t left_bytes() const noexcept { return has_left ? layout.size(left.size()) : 0; }
    std::size_t set_bytes() const noexcept {
        return left_bytes() + layout.size(right.size() - in_place);
    }
    std::size_t weights_offset() const noexcept { return panel_sets * set_bytes(); }
    std::size_t sums_offset() const noexcept {
        return weights_offset() + (task->weight ? panel_rows() * sizeof(double) : 0);
    }
    // The sums of columns come first, then the products.
    std::size_t products() const noexcept {
        return (square ? layout.padded(left.size()) : round_up(left.size(), mr)) *
               layout.padded(right.size());
    }
    std::size_t column_sums() const noexcept {
        return sums_columns() ? layout.padded(weighted_range().size()) : 0;
    }
    std::size_t products_offset() const noexcept {
        return sums_offset() + round_up(column_sums() * sizeof(double), cache_line);
    }
    std::size_t products_bytes() const noexcept { return products() * task->product.sum_bytes(); }
    std::size_t scratch_bytes() const noexcept {
        return round_up(products_offset() + products_bytes(), cache_line);
    }
};

// The sums of one row block for one result block: a view of a thread's scratch memory.
struct PartialSums {
    const ResultBlock& block;
    const NonzeroSides& nonzero;  // of the block's task in the row block
    unsigned char* scratch;

    // The places, in panels, of the columns that take part: from first_place() to the side's end. Up to symmetric_end() the
    // right side's columns are the left side's. The first tile may be half a tile.
    std::size_t first_place() const noexcept {
        if (!block.square) return 0;
        return block.layout.first_place(columns_in(nonzero.left, block.left), block.mr / 2);
    }
    std::size_t left_end() const noexcept {
        return first_place() + columns_in(nonzero.left, block.left);
    }
    std::size_t right_end() const noexcept {
        return first_place() + columns_in(nonzero.right, block.right);
    }
    std::size_t symmetric_end() const noexcept { return block.diagonal ? left_end() : 0; }
    const Runs& weighted_runs() const noexcept {
        return block.task->transposed ? nonzero.left : nonzero.right;
    }

    unsigned char* left_panels(std::size_t set) const noexcept {
        return scratch + set * block.set_bytes();
    }
    unsigned char* right_panels(std::size_t set) const noexcept {
        return left_panels(set) + block.left_bytes();
    }
    double* row_weights() const noexcept {
        return reinterpret_cast<double*>(scratch + block.weights_offset());
    }
    double* column_sums() const noexcept {
        return reinterpret_cast<double*>(scratch + block.sums_offset());
    }
    // The product of the columns at place i of the left side and place j of the right one. The products of a tile are contiguous.
    unsigned char* product_at(std::size_t i, std::size_t j) const noexcept {
        const std::size_t mr = block.mr, width = block.layout.width;
        const std::size_t place = i / mr * mr * block.layout.padded(block.right.size()) +
                                  (j / width * mr + i % mr) * width + j % width;
        return scratch + block.products_offset() + place * block.task->product.sum_bytes();
    }
};

}  // namespace bpls::gram_detail
