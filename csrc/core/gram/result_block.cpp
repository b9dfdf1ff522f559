// How many sets of panels a result block packs at a time, and what it reads in place: choices by size, not by threads.
#include "core/gram/result_block.hpp"

#include <algorithm>

namespace bpls::gram_detail {
namespace {

// Bytes of sums that stay in the second cache as one group.
constexpr std::size_t small_sums = 256u << 10;
// Bytes of the panel sets of a block: a part of the last cache.
constexpr std::size_t panels_limit = 6u << 20;
// More sets gain nothing: the sums of a group are read and written once per chunk.
constexpr std::size_t most_panel_sets = 8;

}  // namespace

ResultBlock::ResultBlock(const ProductTask& of, std::size_t index, Range left_columns,
                         Range right_columns) noexcept
    : task(&of),
      task_index(index),
      left(left_columns),
      right(right_columns),
      layout(of.product.panels),
      mr(static_cast<std::size_t>(of.product.mr)),
      panel_sets(1),
      in_place(0),
      diagonal(of.symmetric > 0 && left.begin == right.begin),
      square(diagonal && right.end <= of.symmetric),
      // Row weights are packed into one side only.
      packs_left(!diagonal || of.weight),
      has_left(packs_left || of.product.left_offset != 0),
      adds_column_sums(of.column_sums && (of.transposed ? right.begin : left.begin) == 0) {
    // Where the sums outgrow the second cache and a panel serves several groups of them, several sets are packed, and a
    // group is multiplied with all of them before the next group is touched.
    if (of.in_place)
        in_place = right.size() / layout.width * layout.width;
    else if (products_bytes() > small_sums && left.size() > group_columns &&
             right.size() > 2 * group_columns)
        panel_sets = std::clamp<std::size_t>(panels_limit / set_bytes(), 1, most_panel_sets);
}

}  // namespace bpls::gram_detail
