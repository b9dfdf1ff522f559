// The plan of a pass: how rows and columns are cut. It depends on the shapes alone, so the additions of every result happen
// in one order whatever the number of threads; only integers, whose sums are exact, are cut less finely for one thread.
#pragma once

#include <cstddef>
#include <vector>

#include "core/gram/result_block.hpp"

namespace bpls::gram_detail {

using Group = std::vector<ResultBlock>;  // result blocks that share one pass over the rows

std::size_t scratch_bytes(const Group& group) noexcept;

// Rows that all blocks of a group take before the next ones are read: the largest chunk of any of them.
std::size_t chunk_rows(const Group& group) noexcept;

// An item of work is one row block for one group. Items are numbered group by group.
struct Plan {
    // The tasks outlive the plan. `n_threads` matters for exact sums alone.
    Plan(const ConstMatrix& A, const std::vector<ProductTask>& tasks, int n_threads);

    std::vector<Group> groups;
    std::size_t rows;
    std::size_t row_block_rows;
    std::size_t row_blocks;
    std::size_t scratch_bytes;  // of one thread
    std::size_t result_rows;    // of the tallest task
    double multiply_adds;

    std::size_t items() const noexcept { return groups.size() * row_blocks; }
    std::size_t group_of(std::size_t item) const noexcept { return item / row_blocks; }
    std::size_t row_block_of(std::size_t item) const noexcept { return item % row_blocks; }
    Range rows_of(std::size_t item) const noexcept;
};

}  // namespace bpls::gram_detail
