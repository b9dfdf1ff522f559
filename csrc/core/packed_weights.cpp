// Packing of a network's weights: scaled in double, rounded once, checked for overflow.
#include "core/packed_weights.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "core/dense.hpp"

namespace bpls {
namespace {

// Vectors of columns in a panel: enough sums that one row of inputs keeps the multiply-add units busy.
constexpr std::size_t panel_vectors = 4;

double read_double(const ConstMatrix& W, std::size_t row, std::size_t col) noexcept {
    return *reinterpret_cast<const double*>(W.at(row, col));
}

}  // namespace

template <class T>
PackedWeights<T>::PackedWeights(const Network& network, double scale) : dense(&dense_kernels<T>()) {
    const auto lanes = static_cast<std::size_t>(dense->lanes);
    std::size_t values = 0;
    for (std::size_t l = 0; l < network.layers(); ++l) {
        PackedLayer<T> layer;
        const ConstMatrix W = network.weights(l);
        layer.depth = W.rows - (network.bias() ? 1 : 0);
        layer.width = W.cols;
        layer.padded = round_up(W.cols, lanes);
        layer.panel = std::min(panel_vectors * lanes, layer.padded);
        layer.activation = network.activation(l);
        values += round_up(layer.values(), cache_line / sizeof(T));
        widest = std::max(widest, layer.padded);
        layers.push_back(layer);
    }
    searches = pays_to_search(layers.front().depth, layers.front().width);
    storage = detail::fresh_block(values * sizeof(T));
    T* to = reinterpret_cast<T*>(storage.data.get());
    std::fill_n(to, values, T(0));
    for (std::size_t l = 0; l < layers.size(); ++l) to = pack(network, l, l == 0 ? scale : 1.0, to);
}

// Returns where the next layer goes. The scale is multiplied in double, before the weights are rounded.
template <class T>
T* PackedWeights<T>::pack(const Network& network, std::size_t number, double scale, T* to) {
    PackedLayer<T>& layer = layers[number];
    const ConstMatrix W = network.weights(number);
    const auto rounded = [&](double value) {
        const T result = static_cast<T>(value);
        if (!std::isfinite(result))
            throw std::invalid_argument("weights[" + std::to_string(number) +
                                        "] holds values too large for " +
                                        (sizeof(T) == sizeof(float) ? "float32" : "float64"));
        return result;
    };
    layer.weights = to;
    for (std::size_t j = 0; j < layer.width; ++j) {
        const std::size_t first = j / layer.panel * layer.panel;
        const std::size_t columns = std::min(layer.panel, layer.padded - first);
        T* column = to + first * layer.depth + (j - first);
        for (std::size_t k = 0; k < layer.depth; ++k)
            column[k * columns] = rounded(read_double(W, k, j) * scale);
    }
    T* start = to + layer.depth * layer.padded;
    if (network.bias())
        for (std::size_t j = 0; j < layer.width; ++j)
            start[j] = rounded(read_double(W, layer.depth, j));
    layer.start = start;
    return to + round_up(layer.values(), cache_line / sizeof(T));
}

template struct PackedWeights<float>;
template struct PackedWeights<double>;

}  // namespace bpls
