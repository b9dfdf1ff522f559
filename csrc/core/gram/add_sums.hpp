// Adds the sums of a row block to the result. The caller adds row blocks in order, so the order of additions is fixed.
#pragma once

#include "core/gram/result_block.hpp"

namespace bpls::gram_detail {

// Adds the sums to the given rows of the result, which are columns of the left side. The column sums are added with row 0.
void add_sums(const PartialSums& sums, Range rows) noexcept;

}  // namespace bpls::gram_detail
