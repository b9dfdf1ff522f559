// Packing: rows of both sides become panels, and the weighted side's columns are summed on the way.
#pragma once

#include <cstddef>

#include "core/gram/result_block.hpp"

namespace bpls::gram_detail {

// Zeroes the sums, and what packing will not write but tiles read.
void start(const PartialSums& sums) noexcept;

// Packs `rows` rows (at most a panel's) from `row` on into one set of panels, and adds to the column sums.
void pack_rows(const PartialSums& sums, std::size_t set, std::size_t row, int rows) noexcept;

}  // namespace bpls::gram_detail
