// A strip of rows times the weights of a layer. linear() and the predictors put their products together here, and so
// give the same bits. Columns of A that are zero all over a tile are left out, which is no change to any sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/table.hpp"

namespace bpls {

inline constexpr std::size_t strip_rows = 48;  // a multiple of every level's rows of a tile

// Rows of a tile where there are not enough for a whole one, and where zeros are left out: fewer rows have more in common.
inline constexpr std::size_t few_tile_rows = 4;

// The columns of A that are not zero all over a tile, as one thread lists them. Where nearly all are, leaving the others
// out is not worth the trouble, nor is a look at the next tiles.
struct NonzeroColumns {
    // Room for the list of a block of columns.
    static constexpr std::size_t room = kernels::depth_rows + kernels::max_list_lanes;

    int* list = nullptr;  // or null: nothing is left out
    int tiles_to_pass = 0;

    bool looks() const noexcept { return list && tiles_to_pass == 0; }

    // Gives the list of a tile, which count_nonzero(list) makes, and sets `steps` to its length; or null where nearly all of
    // the `steps` columns count.
    template <class F>
    const int* of_tile(int& steps, F&& count_nonzero) noexcept {
        if (!looks()) {
            if (tiles_to_pass > 0) --tiles_to_pass;
            return nullptr;
        }
        const int count = count_nonzero(list);
        if (count > steps - steps / 8) {
            tiles_to_pass = 64;
            return nullptr;
        }
        steps = count;
        return list;
    }
};

// Leaving columns out pays from this size on. Zero times infinity is not zero: the weights must be finite.
constexpr bool pays_to_look(std::size_t depth, std::size_t width) noexcept {
    return depth >= 64 && width >= 32;
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

// sums = start + A W, where panel_at(k, j) are the weights from row k, a multiple of the block, and column j on. Every row
// of sums has room for whole vectors. Returns whether the first sum of every row is finite.
template <class T, class F>
bool multiply(const kernels::Dense<T>& dense, const Strip<T>& strip, const T* start,
              std::size_t depth, std::size_t width, F&& panel_at,
              NonzeroColumns& nonzero) noexcept {
    const auto depth_block = static_cast<std::size_t>(dense.panels.block_rows);
    const auto mr = static_cast<std::size_t>(dense.mr);
    for (std::size_t i = 0; i < strip.count; ++i)
        std::copy_n(start, strip.padded, strip.sums + i * strip.padded);
    for (std::size_t i = 0, rows = 0; i < strip.count; i += rows) {
        const std::size_t rest = strip.count - i;
        rows = std::min(nonzero.looks() || rest < mr ? few_tile_rows : mr, rest);
        const int tile_rows = static_cast<int>(rows);
        for (std::size_t k = 0; k < depth; k += depth_block) {
            const T* a = strip.rows + static_cast<std::ptrdiff_t>(i) * strip.stride + k;
            const int columns = static_cast<int>(std::min(depth_block, depth - k));
            int steps = columns;
            const int* listed = nonzero.of_tile(steps, [&](int* list) noexcept {
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
