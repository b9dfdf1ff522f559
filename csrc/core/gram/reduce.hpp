// Reduction: the sums of a row block are added to the result. The caller adds row blocks in order, so that every result has
// one order of additions.
#pragma once

#include "core/gram/result_block.hpp"

namespace bpls::gram_detail {

// Adds the sums to those rows of the result (columns of the left side) that lie in `rows`. The column sums are added with
// row 0.
void add_to_result(const PartialSums& sums, Range rows) noexcept;

}  // namespace bpls::gram_detail
