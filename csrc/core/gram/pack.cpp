// Rows are packed a few at a time, in memory order. Row weights are multiplied into one side only.
#include "core/gram/pack.hpp"

#include <algorithm>
#include <cstring>

#include "core/dispatch.hpp"

namespace bpls::gram_detail {
namespace {

// Rows that pass through all panels before the next ones are read: they are read in memory order and
// fill whole packed elements of every product.
constexpr int rows_at_a_time = 16;

// On the diagonal nothing is written or read left of the panel that holds a tile's first row.
void clear_products(const PartialSums& sums, std::size_t left) noexcept {
    const ResultBlock& block = sums.block;
    const std::size_t columns = block.layout.padded(block.right.size()), width = block.layout.width;
    for (std::size_t i = sums.first_place() / block.mr * block.mr; i < left; i += block.mr) {
        const std::size_t first = block.diagonal ? i / width * width : 0;
        std::memset(sums.product_at(i, first), 0,
                    block.mr * (columns - first) * block.task->product.sum_bytes());
    }
}

// The panels that need not be full: the first, if columns do not begin there, and the last.
void clear_outer_panels(const PanelLayout& layout, unsigned char* panels, std::size_t first_place,
                        std::size_t end) noexcept {
    if (first_place > 0) std::memset(panels, 0, layout.bytes);
    if (end > 0) std::memset(panels + (layout.count(end) - 1) * layout.bytes, 0, layout.bytes);
}

// The weights of some rows in float64, or null.
const double* convert_weights(const PartialSums& sums, std::size_t row, int rows) noexcept {
    if (!sums.block.task->weight) return nullptr;
    const ConstMatrix& weight = *sums.block.task->weight;
    table().dense_f64.copy_rows[weight.dtype](weight.at(row, 0), weight.row_stride,
                                              weight.col_stride, static_cast<std::size_t>(rows), 1,
                                              sums.row_weights(), 1);
    return sums.row_weights();
}

}  // namespace

void start(const PartialSums& sums) noexcept {
    const ResultBlock& block = sums.block;
    const std::size_t first = sums.first_place(), left = sums.left_end(), right = sums.right_end();
    clear_products(sums, left);
    std::fill_n(sums.column_sums(), block.column_sums(), 0.0);
    for (std::size_t set = 0; set < block.panel_sets; ++set) {
        if (block.packs_left) clear_outer_panels(block.layout, sums.left_panels(set), first, left);
        clear_outer_panels(block.layout, sums.right_panels(set), first, right - block.in_place);
    }
}

void pack_rows(const PartialSums& sums, std::size_t set, std::size_t row, int rows) noexcept {
    const ResultBlock& block = sums.block;
    const ProductTask& task = *block.task;
    const PanelLayout& layout = block.layout;
    const kernels::Panels& panels = *layout.panels;
    unsigned char* const left_panels = sums.left_panels(set);
    unsigned char* const right_panels = sums.right_panels(set);
    const Range right{block.right.begin + block.in_place, block.right.end};
    const double* weights = convert_weights(sums, row, rows);
    const std::size_t first = sums.first_place();
    for (int done = 0; done < rows; done += rows_at_a_time) {
        const int count = std::min(rows_at_a_time, rows - done);
        const auto offset =
            static_cast<std::size_t>(done / panels.step_rows * panels.nr * panels.element);
        const auto pack_side = [&](const Side& side, const Runs& runs, Range range,
                                   const double* weight, unsigned char* to) noexcept {
            each_run(runs, range, [&](Range run, std::size_t at) noexcept {
                pack_columns(layout, side.columns, run, row + static_cast<std::size_t>(done), count,
                             weight, to + offset, first + at);
            });
        };
        const double* weight = weights ? weights + done : nullptr;
        if (block.packs_left)
            pack_side(task.left, sums.nonzero.left, block.left, task.transposed ? weight : nullptr,
                      left_panels);
        pack_side(task.right, sums.nonzero.right, right, task.transposed ? nullptr : weight,
                  right_panels);
    }
    if (task.product.left_offset != 0) {
        const unsigned char* from = block.packs_left ? left_panels : right_panels;
        for (std::size_t p = 0; p < layout.count(sums.left_end()); ++p) {
            const std::size_t panel = p * layout.bytes;
            task.product.subtract_offset(from + panel, steps_of(panels, rows), left_panels + panel);
        }
    }
    if (!block.sums_columns()) return;
    unsigned char* panel = task.transposed ? left_panels : right_panels;
    double* out = sums.column_sums();
    const std::size_t end = task.transposed ? sums.left_end() : sums.right_end();
    for (std::size_t j = 0; j < end; j += layout.width, panel += layout.bytes)
        task.product.column_sums(panel, steps_of(panels, rows), out + j);
}

}  // namespace bpls::gram_detail
