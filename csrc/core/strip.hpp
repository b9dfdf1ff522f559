// A strip of rows times the weights of a layer. linear() and the predictors both multiply here, so their bits agree.
// Columns of A that are zero in all rows of a tile are left out, which changes no sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/linear_plan.hpp"
#include "core/nonzero_list.hpp"
#include "core/panels.hpp"

namespace bpls {

// Rows of a tile where zeros are left out: fewer rows have more zero columns in common.
inline constexpr std::size_t few_tile_rows = 4;

// The most vectors of columns in a panel that few rows are multiplied by: enough sums to keep the multiply-add units busy.
inline constexpr std::size_t few_rows_vectors = 4;

// The columns of A that are not zero in all rows of a tile. After a search that finds too few, the rest of the strip is not
// searched: multiply() ends the pause.
using NonzeroColumnList = NonzeroList<1, std::numeric_limits<int>::max()>;

// The length of the list for a block of columns.
inline constexpr std::size_t column_list_room = depth_block + kernels::max_list_lanes;

// The weights of a layer as kernels read them.
template <class T>
struct LayerWeights {
    std::size_t depth = 0, width = 0;
    LinearWay way = LinearWay::panels;
    const T* start = nullptr;  // the bias; null: zeros
    const T* weights = nullptr;
    // Elements from one column to the next of dots, from one row to the next in place.
    std::ptrdiff_t stride = 0;
    // Columns of a panel, a whole number of vectors. The last panel may be narrower.
    std::size_t panel = 0;
    std::size_t lanes = 1;

    // The number of values that pack() writes.
    std::size_t packed_values() const noexcept {
        if (way == LinearWay::in_place) return 0;
        return way == LinearWay::dots ? width * static_cast<std::size_t>(stride)
                                      : depth * round_up(width, lanes);
    }
};

// Returns the layout of a layer's weights for one of the ways, with panels of at most `vectors` vectors; the caller sets where
// they are, and the stride in place.
template <class T>
LayerWeights<T> layout_of(const kernels::Dense<T>& dense, LinearWay way, std::size_t depth,
                          std::size_t width, std::size_t vectors) noexcept {
    LayerWeights<T> layer;
    layer.depth = depth;
    layer.width = width;
    layer.way = way;
    layer.lanes = static_cast<std::size_t>(dense.lanes);
    layer.stride = static_cast<std::ptrdiff_t>(round_up(depth, layer.lanes));
    // Panels of about the same size: a narrow last one would keep a core less busy.
    const std::size_t all = (width + layer.lanes - 1) / layer.lanes;
    const std::size_t panels = (all + vectors - 1) / vectors;
    layer.panel = (all + panels - 1) / panels * layer.lanes;
    return layer;
}

// Copies the columns [begin, end) of W, without the bias, to where the layer's kernels read them. `begin` is the first column of
// a panel.
template <class T>
void pack(const kernels::Dense<T>& dense, const LayerWeights<T>& layer, const ConstMatrix& W,
          Range columns, T* to) noexcept {
    const auto copy = dense.copy_rows[W.dtype];
    if (layer.way == LinearWay::dots) {
        for (std::size_t j = columns.begin; j < columns.end; ++j) {
            T* column = to + static_cast<std::ptrdiff_t>(j) * layer.stride;
            copy(W.at(0, j), 0, W.row_stride, 1, layer.depth, column, 0);
            std::fill(column + layer.depth, column + layer.stride, T(0));
        }
        return;
    }
    for (std::size_t j = columns.begin; j < columns.end; j += layer.panel) {
        const std::size_t count = std::min(layer.panel, columns.end - j);
        const std::size_t padded = round_up(count, layer.lanes);
        T* panel = to + j * layer.depth;
        if (padded > count) std::fill_n(panel, padded * layer.depth, T(0));
        copy(W.at(0, j), W.row_stride, W.col_stride, layer.depth, count, panel, padded);
    }
}

template <class T>
struct Strip {
    const T* rows;  // of A
    std::ptrdiff_t stride;
    std::size_t count;
};

// `count` rows of A from row `first` on: read in place, or converted into `copy`, which has room for them.
template <class T>
Strip<T> strip_at(const kernels::Dense<T>& dense, const ConstMatrix& A, bool in_place,
                  std::size_t first, std::size_t count, T* copy) noexcept {
    if (in_place)
        return {reinterpret_cast<const T*>(A.at(first, 0)),
                A.row_stride / static_cast<std::ptrdiff_t>(sizeof(T)), count};
    dense.copy_rows[A.dtype](A.at(first, 0), A.row_stride, A.col_stride, count, A.cols, copy,
                             A.cols);
    return {copy, static_cast<std::ptrdiff_t>(A.cols), count};
}

// Multiplies some rows by a block of the rows of the weights, which begins at row k, a multiple of depth_block.
template <class T>
void multiply_block(const kernels::Dense<T>& dense, const LayerWeights<T>& layer,
                    kernels::LinearProduct<T> product, std::size_t k) noexcept {
    product.adds = k > 0;
    product.c_stride = static_cast<std::ptrdiff_t>(layer.width);
    T* const sums = product.c;
    if (layer.way == LinearWay::in_place) {
        product.w = layer.weights + static_cast<std::ptrdiff_t>(k) * layer.stride;
        product.w_stride = layer.stride;
        product.padded = false;
        product.columns = static_cast<int>(layer.width);
        product.start = layer.start;
        dense.multiply(product);
        return;
    }
    product.padded = true;
    for (std::size_t j = 0; j < layer.width; j += layer.panel) {
        const std::size_t columns = std::min(layer.panel, layer.width - j);
        const std::size_t stride = round_up(columns, layer.lanes);
        product.w = layer.weights + j * layer.depth + k * stride;
        product.w_stride = static_cast<std::ptrdiff_t>(stride);
        product.columns = static_cast<int>(columns);
        product.start = layer.start ? layer.start + j : nullptr;
        product.c = sums + j;
        dense.multiply(product);
    }
}

// Multiplies some rows of a strip, all of them or a tile with its zeros left out.
template <class T>
void multiply_rows(const kernels::Dense<T>& dense, const LayerWeights<T>& layer, const T* rows,
                   std::ptrdiff_t stride, std::size_t count, NonzeroColumnList* nonzero,
                   T* sums) noexcept {
    for (std::size_t k = 0; k < layer.depth; k += depth_block) {
        const int depth = static_cast<int>(std::min(depth_block, layer.depth - k));
        kernels::LinearProduct<T> product{};
        product.a = rows + k;
        product.a_stride = stride;
        product.rows = count;
        product.depth = depth;
        product.c = sums;
        if (nonzero)
            product.nonzero = nonzero->find(product.depth, [&](int* list) noexcept {
                return dense.nonzero_columns(product.a, stride, static_cast<int>(count), depth,
                                             list);
            });
        multiply_block(dense, layer, product, k);
    }
}

// sums = start + A W, strip.count rows of layer.width values. Returns whether the first sum of every row is finite.
template <class T>
bool multiply(const kernels::Dense<T>& dense, const Strip<T>& strip, const LayerWeights<T>& layer,
              NonzeroColumnList& nonzero, T* sums) noexcept {
    if (layer.depth == 0) {
        for (std::size_t i = 0; i < strip.count; ++i, sums += layer.width)
            for (std::size_t j = 0; j < layer.width; ++j)
                sums[j] = layer.start ? layer.start[j] : T(0);
        return true;
    }
    if (layer.way == LinearWay::dots) {
        dense.dots[layer.width - 1](strip.rows, strip.stride, strip.count, layer.weights,
                                    layer.stride, static_cast<int>(layer.depth), layer.start, sums);
    } else {
        std::size_t i = 0;
        const auto at = [&](std::size_t row) noexcept {
            return strip.rows + static_cast<std::ptrdiff_t>(row) * strip.stride;
        };
        for (; i < strip.count && nonzero.searches(); i += few_tile_rows)
            multiply_rows(dense, layer, at(i), strip.stride,
                          std::min(few_tile_rows, strip.count - i), &nonzero,
                          sums + i * layer.width);
        if (i < strip.count)
            multiply_rows(dense, layer, at(i), strip.stride, strip.count - i, nullptr,
                          sums + i * layer.width);
        nonzero.resume();
    }
    if (layer.width == 1) return dense.all_finite(sums, strip.count);
    bool finite = true;
    for (std::size_t i = 0; i < strip.count; ++i)
        finite &= static_cast<bool>(std::isfinite(sums[i * layer.width]));
    return finite;
}

}  // namespace bpls
