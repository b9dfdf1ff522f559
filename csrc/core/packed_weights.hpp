// A network's weights as predictors read them: panels of a few vectors of columns, row after row, so that one row of inputs
// reads them in one stream.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "bpls/network.hpp"
#include "core/strip.hpp"

namespace bpls {

template <class T>
struct PackedLayer {
    std::size_t depth = 0, width = 0, padded = 0;
    Activation activation = Activation::identity;
    const T* start = nullptr;    // the bias, or zeros
    const T* weights = nullptr;  // panels one after another; the last one may be narrower
    std::size_t panel = 0;       // columns of a panel

    WeightPanel<T> panel_at(std::size_t k, std::size_t j) const noexcept {
        const std::size_t columns = std::min(panel, padded - j);
        return {weights + j * depth + k * columns, static_cast<std::ptrdiff_t>(columns), columns};
    }
    std::size_t values() const noexcept { return (depth + 1) * padded; }
};

template <class T>
struct PackedWeights {
    const kernels::Dense<T>* dense;
    std::vector<PackedLayer<T>> layers;
    std::size_t widest = 0;  // the largest `padded`
    bool searches = false;   // for zeros among the inputs
    detail::Block storage;

    // Multiplies the first layer's weights, but not its bias, by `scale`. Throws std::invalid_argument where T cannot hold a
    // weight, and std::bad_alloc.
    PackedWeights(const Network& network, double scale);

    std::size_t inputs() const noexcept { return layers.front().depth; }
    std::size_t outputs() const noexcept { return layers.back().width; }

 private:
    T* pack(const Network& network, std::size_t number, double scale, T* to);
};

}  // namespace bpls
