// Adds the sums of packed columns to the entries of G and C that belong to these columns. Only G's upper triangle is written.
#include "core/gram/add_sums.hpp"

#include <algorithm>

namespace bpls::gram_detail {
namespace {

// Splits a range of columns, packed from column `at` of the panels on, at panel boundaries. Calls action(part, at) for every
// part.
template <class F>
void each_panel(const PanelLayout& layout, Range columns, std::size_t at, F&& action) {
    for (std::size_t c = columns.begin; c < columns.end;) {
        const std::size_t size =
            std::min(columns.end - c, layout.width - (at + c - columns.begin) % layout.width);
        action(Range{c, c + size}, at + c - columns.begin);
        c += size;
    }
}

// Adds the sums of row i of the left side with some columns of the right one, and the offset that tiles subtracted from
// the left side, times the column sums.
void add_row(const ProductTask& task, std::size_t i, Range columns, const unsigned char* sums,
             const double* column_sums) noexcept {
    const std::size_t sum_bytes = task.product.sum_bytes();
    const std::size_t symmetric = task.symmetric;
    const Range of_G{std::max(columns.begin, i), std::min(columns.end, symmetric)};
    if (of_G.begin < of_G.end) {
        double* G = task.G + i * task.G_stride + of_G.begin;
        const std::size_t skipped = of_G.begin - columns.begin;
        task.product.add_sums(sums + skipped * sum_bytes, of_G.size(), column_sums + skipped, G);
    }
    const Range of_C{std::max(columns.begin, symmetric), columns.end};
    if (of_C.begin >= of_C.end) return;
    sums += (of_C.begin - columns.begin) * sum_bytes;
    column_sums += of_C.begin - columns.begin;
    const std::size_t column = of_C.begin - symmetric;
    if (!task.transposed)
        return task.product.add_sums(sums, of_C.size(), column_sums,
                                     task.C + i * task.C_stride + column);
    // Only products of floats are transposed.
    const auto* values = reinterpret_cast<const double*>(sums);
    for (std::size_t c = 0; c < of_C.size(); ++c)
        task.C[(column + c) * task.C_stride + i] += values[c];
}

}  // namespace

void add_sums(const PartialSums& sums, Range rows) noexcept {
    const ResultBlock& block = sums.block;
    const ProductTask& task = *block.task;
    const std::size_t first = sums.first_place();
    const double* column_sums = sums.column_sums();
    each_run(sums.nonzero.left, block.left, [&](Range run, std::size_t i) noexcept {
        each_run(sums.nonzero.right, block.right, [&](Range columns, std::size_t j) noexcept {
            const std::size_t end = std::min(run.end, rows.end);
            for (std::size_t r = std::max(run.begin, rows.begin); r < end; ++r)
                each_panel(
                    block.layout, columns, first + j, [&](Range part, std::size_t at) noexcept {
                        add_row(task, r, part, sums.product_at(first + i + r - run.begin, at),
                                column_sums + at);
                    });
        });
    });
    if (!block.adds_column_sums || rows.begin > 0) return;
    each_run(sums.weighted_runs(), block.weighted_range(),
             [&](Range columns, std::size_t j) noexcept {
                 for (std::size_t c = columns.begin; c < columns.end; ++c)
                     task.column_sums[c] += column_sums[first + j + c - columns.begin];
             });
}

}  // namespace bpls::gram_detail
