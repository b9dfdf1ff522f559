// Multiplies packed panels, or rows read in place, tile by tile and adds the products to the partial sums. A tile skips the
// steps in which its right side is zero.
#pragma once

#include <cstddef>

#include "core/gram/result_block.hpp"
#include "core/nonzero_list.hpp"

namespace bpls::gram_detail {

// The steps of a panel in which it is not zero. Panels at the border of an image are often zero while inner ones are not, so
// the search is not given up soon.
using NonzeroStepList = NonzeroList<12, 120>;

// Adds the products of at most chunk_rows() rows from `row` on.
void add_rows(const PartialSums& sums, std::size_t row, std::size_t rows,
              NonzeroStepList& nonzero_steps) noexcept;

}  // namespace bpls::gram_detail
