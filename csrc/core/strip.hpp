// A strip of rows times the weights of a layer. linear() and the predictors both multiply here, so their bits agree.
// Columns of A that are zero in all rows of a tile are left out, which changes no sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/nonzero_list.hpp"
#include "core/panels.hpp"

namespace bpls {

// Rows that go through a layer, or a network, before the next ones: a multiple of every level's rows of a tile, and few
// enough that their sums stay in the first two caches.
inline constexpr std::size_t strip_rows = 48;

constexpr std::size_t strips_of(std::size_t rows) noexcept {
    return (rows + strip_rows - 1) / strip_rows;
}

// Rows of a tile where there are not enough for a whole one, and where zeros are left out: fewer rows have more zero columns in
// common.
inline constexpr std::size_t few_tile_rows = 4;

// The columns of A that are not zero in all rows of a tile. A search reads as much as a product with a few columns does, so
// after one that finds too few it pauses.
using NonzeroColumnList = NonzeroList<1, 64>;

// The length of the list for a block of columns.
inline constexpr std::size_t column_list_room = kernels::depth_rows + kernels::max_list_lanes;

// Whether leaving columns out can pay. Zero times infinity is not zero: the weights must be finite, too.
constexpr bool pays_to_search(std::size_t depth, std::size_t width) noexcept {
    constexpr std::size_t fewest_columns = 64;  // of A: otherwise there is little to skip
    constexpr std::size_t fewest_sums = 32;  // of a row: else a search takes as long as the product
    return depth >= fewest_columns && width >= fewest_sums;
}

// Where a tile finds columns of the weights: row after row, `row_stride` elements apart.
template <class T>
struct WeightPanel {
    const T* first;
    std::ptrdiff_t row_stride;
    std::size_t columns;
};

template <class T>
struct Strip {
    const T* rows;  // of A
    std::ptrdiff_t stride;
    std::size_t count;
    T* sums;  // count rows of `padded` sums
    std::size_t padded;
};

// The strip of A that begins at row `first`: read in place, or converted into `copy`, which has room for it. The
// caller sets its sums.
template <class T>
Strip<T> strip_at(const kernels::Dense<T>& dense, const ConstMatrix& A, bool in_place,
                  std::size_t first, T* copy) noexcept {
    const std::size_t count = std::min(strip_rows, A.rows - first);
    if (in_place)
        return {reinterpret_cast<const T*>(A.at(first, 0)),
                A.row_stride / static_cast<std::ptrdiff_t>(sizeof(T)), count, nullptr, 0};
    dense.copy_rows[A.dtype](A.at(first, 0), A.row_stride, A.col_stride, count, A.cols, copy,
                             A.cols);
    return {copy, static_cast<std::ptrdiff_t>(A.cols), count, nullptr, 0};
}

// sums = start + A W, where panel_at(k, j) returns the weights from row k, a multiple of the panels' block_rows, and column j on. Every
// row of sums has room for whole vectors. Returns whether the first sum of every row is finite.
template <class T, class F>
bool multiply(const kernels::Dense<T>& dense, const Strip<T>& strip, const T* start,
              std::size_t depth, std::size_t width, F&& panel_at,
              NonzeroColumnList& nonzero) noexcept {
    const auto depth_block = static_cast<std::size_t>(dense.panels.block_rows);
    const auto mr = static_cast<std::size_t>(dense.mr);
    for (std::size_t i = 0; i < strip.count; ++i)
        std::copy_n(start, strip.padded, strip.sums + i * strip.padded);
    for (std::size_t i = 0, rows = 0; i < strip.count; i += rows) {
        const std::size_t rest = strip.count - i;
        rows = std::min(nonzero.searches() || rest < mr ? few_tile_rows : mr, rest);
        const int tile_rows = static_cast<int>(rows);
        for (std::size_t k = 0; k < depth; k += depth_block) {
            const T* a = strip.rows + static_cast<std::ptrdiff_t>(i) * strip.stride + k;
            const int columns = static_cast<int>(std::min(depth_block, depth - k));
            int steps = columns;
            const int* listed = nonzero.find(steps, [&](int* list) noexcept {
                return dense.nonzero_columns(a, strip.stride, tile_rows, columns, list);
            });
            for (std::size_t j = 0; j < width;) {
                const WeightPanel<T> panel = panel_at(k, j);
                dense.tile(a, strip.stride, tile_rows, panel.first, panel.row_stride, listed, steps,
                           static_cast<int>(panel.columns), strip.sums + i * strip.padded + j,
                           static_cast<std::ptrdiff_t>(strip.padded));
                j += panel.columns;
            }
        }
    }
    bool finite = true;
    for (std::size_t i = 0; i < strip.count; ++i)
        finite &= static_cast<bool>(std::isfinite(strip.sums[i * strip.padded]));
    return finite;
}

}  // namespace bpls
