// A network's weights as predictors read them: one row of inputs reads them in one stream.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "bpls/network.hpp"
#include "core/strip.hpp"

namespace bpls {

template <class T>
struct PackedLayer {
    LayerWeights<T> weights;
    Activation activation = Activation::identity;
};

template <class T>
struct PackedWeights {
    const kernels::Dense<T>* dense;
    std::vector<PackedLayer<T>> layers;
    std::size_t widest = 0;       // the largest width of a layer
    bool searches = false;        // for zeros among the inputs
    std::vector<T> lower, upper;  // the limits of the inputs, or empty
    detail::Block storage;

    // Multiplies the first layer's weights, but not its bias, by `scale`. Throws std::invalid_argument where T cannot hold a
    // weight, and std::bad_alloc.
    PackedWeights(const Network& network, double scale);

    bool limited() const noexcept { return !lower.empty(); }
    std::size_t inputs() const noexcept { return layers.front().weights.depth; }
    std::size_t outputs() const noexcept { return layers.back().weights.width; }

 private:
    T* pack_layer(const Network& network, std::size_t number, double scale, T* to);
};

}  // namespace bpls
