// Packing of a network's weights: scaled in double, rounded once, checked for overflow.
#include "core/packed_weights.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/dense.hpp"

namespace bpls {
namespace {

double read_double(const ConstMatrix& W, std::size_t row, std::size_t col) noexcept {
    return *reinterpret_cast<const double*>(W.at(row, col));
}

// The numbers in T; those beyond its range become infinite.
template <class T>
std::vector<T> rounded(const std::vector<double>& numbers) {
    constexpr double largest = std::numeric_limits<T>::max();
    std::vector<T> found;
    found.reserve(numbers.size());
    for (const double number : numbers)
        found.push_back(
            std::abs(number) <= largest
                ? static_cast<T>(number)
                : std::copysign(std::numeric_limits<T>::infinity(), T(number < 0 ? -1 : 1)));
    return found;
}

// The values of a layer and of its bias, up to where the next one begins.
template <class T>
std::size_t room_of(const LayerWeights<T>& layer) noexcept {
    return round_up(layer.packed_values() + layer.width, cache_line / sizeof(T));
}

}  // namespace

template <class T>
PackedWeights<T>::PackedWeights(const Network& network, double scale)
    : dense(&dense_kernels<T>()),
      lower(rounded<T>(network.input_limits().lower)),
      upper(rounded<T>(network.input_limits().upper)) {
    std::size_t values = 0;
    for (std::size_t l = 0; l < network.layers(); ++l) {
        const ConstMatrix W = network.weights(l);
        const std::size_t depth = W.rows - (network.bias() ? 1 : 0);
        const auto way = by_dots(depth, W.cols, static_cast<std::size_t>(dense->lanes))
                             ? LinearWay::dots
                             : LinearWay::panels;
        layers.push_back(
            {layout_of(*dense, way, depth, W.cols, few_rows_vectors), network.activation(l)});
        values += room_of(layers.back().weights);
        widest = std::max(widest, W.cols);
    }
    searches = pays_to_search(inputs(), layers.front().weights.width);
    storage = detail::fresh_block(values * sizeof(T));
    T* to = reinterpret_cast<T*>(storage.data.get());
    for (std::size_t l = 0; l < layers.size(); ++l)
        to = pack_layer(network, l, l == 0 ? scale : 1.0, to);
}

// Returns where the next layer goes. The scale is multiplied in double, before the weights are rounded.
template <class T>
T* PackedWeights<T>::pack_layer(const Network& network, std::size_t number, double scale, T* to) {
    LayerWeights<T>& layer = layers[number].weights;
    const ConstMatrix W = network.weights(number);
    std::vector<T> values(W.rows * W.cols);
    for (std::size_t k = 0; k < W.rows; ++k)
        for (std::size_t j = 0; j < W.cols; ++j) {
            const T value = static_cast<T>(read_double(W, k, j) * (k < layer.depth ? scale : 1.0));
            if (!std::isfinite(value))
                throw std::invalid_argument("weights[" + std::to_string(number) +
                                            "] holds values too large for " +
                                            (sizeof(T) == sizeof(float) ? "float32" : "float64"));
            values[k * W.cols + j] = value;
        }
    layer.weights = to;
    pack(*dense, layer, row_major(values.data(), layer.depth, layer.width), {0, layer.width}, to);
    if (network.bias()) {
        T* start = to + layer.packed_values();
        std::copy_n(values.data() + layer.depth * layer.width, layer.width, start);
        layer.start = start;
    }
    return to + room_of(layer);
}

template struct PackedWeights<float>;
template struct PackedWeights<double>;

}  // namespace bpls
