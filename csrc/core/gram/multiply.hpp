// Multiplication: packed panels, or rows where they lie, go tile by tile into the partial sums. A tile leaves out the steps
// in which its right side is zero.
#pragma once

#include <cstddef>

#include "core/gram/result_block.hpp"
#include "core/nonzero_list.hpp"

namespace bpls::gram_detail {

// The steps of a panel in which it is not zero. Panels at the border of an image are often zero while those within are not:
// searching goes on for a while.
using NonzeroSteps = NonzeroList<12, 60>;

// Adds the products of at most chunk_rows() rows from `row` on.
void add_rows(const PartialSums& sums, std::size_t row, std::size_t rows,
              NonzeroSteps& nonzero_steps) noexcept;

}  // namespace bpls::gram_detail
