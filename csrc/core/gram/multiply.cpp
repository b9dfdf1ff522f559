// Products of groups of columns, small enough that their sums stay in the second cache. The order of the additions to a sum
// is that of the rows.
#include "core/gram/multiply.hpp"

#include <algorithm>

#include "core/gram/pack.hpp"

namespace bpls::gram_detail {
namespace {

// The smallest tile for `columns` columns of the left side and `vectors` + 1 vectors of the right side.
kernels::Tile tile_for(const kernels::Product& product, std::size_t columns, int vectors) noexcept {
    const bool half = columns <= static_cast<std::size_t>(product.mr / 2);
    return half ? product.half[vectors] : product.tile[vectors];
}

// One set of panels, which holds `rows` rows from `row` on.
struct PackedRows {
    std::size_t set;
    std::size_t row;
    int rows;
};

// The product of a group of columns over one set of panels. The first `symmetric` columns of the right side are the left
// side's: vectors left of a tile's first row belong to the half that is mirrored.
class GroupProduct {
 public:
    GroupProduct(const PartialSums& sums, Range left, Range right, std::size_t symmetric,
                 const PackedRows& packed) noexcept
        : sums_(sums),
          block_(sums.block),
          product_(sums.block.task->product),
          A_(*sums.block.task->right.columns.begin()),
          left_(left),
          right_(right),
          symmetric_(symmetric),
          row_(packed.row),
          steps_(steps_of(product_.panels, packed.rows)),
          lanes_(static_cast<std::size_t>(product_.lanes)),
          left_panels_(block_.has_left ? sums.left_panels(packed.set)
                                       : sums.right_panels(packed.set)),
          right_panels_(sums.right_panels(packed.set)) {}

    void add(NonzeroStepList& nonzero_steps, Prefetch& prefetch) const noexcept {
        // Fewer columns are zero in more steps: vectors are searched one by one, if there are many.
        constexpr std::size_t many_columns = 256;
        const bool by_vectors = block_.right.size() >= many_columns;
        for (std::size_t j = right_.begin, end; j < right_.end; j = end) {
            const std::size_t width =
                by_vectors && nonzero_steps.searches() ? lanes_ : block_.layout.width;
            end = std::min((j / width + 1) * width, right_.end);
            add_panel({j, end}, nonzero_steps, prefetch);
        }
    }

 private:
    // Adds the products of a panel of the right side, or of some of its vectors: all tiles share it, so it stays in the first cache.
    void add_panel(Range panel, NonzeroStepList& nonzero_steps, Prefetch& prefetch) const noexcept {
        const bool in_place = panel.begin < block_.in_place;
        const auto values_from = [&](std::size_t from) noexcept {
            return in_place ? A_.at(row_, block_.right.begin + from)
                            : block_.layout.column(right_panels_, from - block_.in_place);
        };
        const auto vectors_from = [&](std::size_t from) noexcept {
            return static_cast<int>((panel.end - from + lanes_ - 1) / lanes_);
        };
        const std::ptrdiff_t stride =
            in_place ? A_.row_stride / product_.panels.element : product_.panels.nr;
        // The first columns of a cross product meet every row of the left side, so a value there that is not finite reaches
        // the result.
        int count = steps_;
        const int* listed = nullptr;
        if (panel.begin > 0 || block_.task->symmetric > 0)
            listed = nonzero_steps.find(count, [&](int* list) noexcept {
                return product_.nonzero_steps(values_from(panel.begin), stride,
                                              vectors_from(panel.begin), steps_, list);
            });
        // Rows read in place come from memory: the first tiles fetch the panel after this one, line by line. They fetch the
        // line of its last column: where lines do not begin with a panel, its first columns are in the cache already.
        int fetched = in_place && panel.end < block_.in_place ? 0 : steps_;
        for (std::size_t i = left_.begin, next; i < left_.end; i = next) {
            next = std::min((i / block_.mr + 1) * block_.mr, left_.end);
            const std::size_t wanted = std::max(panel.begin, std::min(i, symmetric_));
            if (wanted >= panel.end) break;
            const std::size_t from = wanted / lanes_ * lanes_;
            const unsigned char* values = values_from(from);
            Prefetch::Lines lines;
            if (fetched < steps_) {
                const auto first = static_cast<std::size_t>(std::min(fetched, steps_ - count));
                lines = {A_.at(row_ + first,
                               block_.right.begin +
                                   std::min(panel.end + panel.size(), block_.in_place) - 1),
                         A_.row_stride};
                fetched += count;
            } else {
                lines = prefetch.take(count, values, in_place ? bytes_of_others() : cache_line);
            }
            const unsigned char* left = block_.layout.column(left_panels_, i);
            const int vectors = vectors_from(from) - 1;
            void* out = sums_.product_at(i, from);
            // Listed tiles are whole: they would reach from the first half tile into another panel.
            if (count == steps_ || i % block_.mr != 0)
                tile_for(product_, next - i, vectors)(left, values, stride, steps_, out,
                                                      product_.panels.nr, lines.first,
                                                      lines.stride);
            else
                product_.listed[vectors](left, values, stride, listed, count, out,
                                         product_.panels.nr, lines.first, lines.stride);
        }
    }

    // Bytes that a tile fetches in a step where one of the tiles fetches the next panel: the others together fetch one line
    // of the next rows.
    std::size_t bytes_of_others() const noexcept {
        const std::size_t tiles = (left_.size() + block_.mr - 1) / block_.mr;
        return (cache_line + tiles - 2) / std::max<std::size_t>(1, tiles - 1);
    }

    const PartialSums& sums_;
    const ResultBlock& block_;
    const kernels::Product& product_;
    const ConstMatrix& A_;
    Range left_;
    Range right_;
    std::size_t symmetric_;
    std::size_t row_;
    int steps_;
    std::size_t lanes_;
    unsigned char* left_panels_;
    unsigned char* right_panels_;
};

// The rows after a chunk, which are packed next. They would not stay in the cache while several sets are multiplied.
Prefetch next_rows(const ResultBlock& block, std::size_t row) noexcept {
    if (block.panel_sets > 1) return {};
    return prefetch_rows(*block.task->right.columns.begin(), row, block.panel_rows());
}

}  // namespace

void add_rows(const PartialSums& sums, std::size_t row, std::size_t rows,
              NonzeroStepList& nonzero_steps) noexcept {
    const ResultBlock& block = sums.block;
    const std::size_t panel_rows = block.panel_rows();
    const std::size_t sets = (rows + panel_rows - 1) / panel_rows;
    const auto packed = [&](std::size_t set) noexcept {
        const std::size_t done = set * panel_rows;
        return PackedRows{set, row + done, static_cast<int>(std::min(panel_rows, rows - done))};
    };
    for (std::size_t set = 0; set < sets; ++set)
        pack_rows(sums, set, packed(set).row, packed(set).rows);
    Prefetch prefetch = next_rows(block, row + rows);
    const std::size_t first = sums.first_place(), left = sums.left_end(), right = sums.right_end(),
                      symmetric = sums.symmetric_end();
    const std::size_t group = round_up(group_columns, block.layout.width);
    for (std::size_t j = 0; j < right; j += group)
        for (std::size_t i = 0; i < left; i += group)
            for (std::size_t set = 0; set < sets; ++set)
                GroupProduct(sums, {std::max(first, i), std::min(i + group, left)},
                             {j, std::min(j + group, right)}, symmetric, packed(set))
                    .add(nonzero_steps, prefetch);
}

}  // namespace bpls::gram_detail
