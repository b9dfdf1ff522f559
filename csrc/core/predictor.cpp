// Predictors: every layer's weights as panels of four vectors of columns, row after row, so that one row of A reads them
// in one stream. A strip of rows goes through all layers before the next one begins.
#include "bpls/predictor.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "core/dense.hpp"
#include "core/panels.hpp"
#include "core/strip.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr double byte_scale = 1.0 / 255;  // of bytes, where the network names no other
constexpr std::size_t panel_vectors = 4;

double read_double(const ConstMatrix& W, std::size_t row, std::size_t col) noexcept {
    return *reinterpret_cast<const double*>(W.at(row, col));
}

template <class T>
struct PackedLayer {
    std::size_t depth = 0, width = 0, padded = 0;
    Activation activation = Activation::identity;
    const T* start = nullptr;  // the bias, or zeros
    const T* weights =
        nullptr;  // a panel of `panel` columns after another, the last one as wide as it must be
    std::size_t panel = 0;

    WeightPanel<T> panel_at(std::size_t k, std::size_t j) const noexcept {
        const std::size_t columns = std::min(panel, padded - j);
        return {weights + j * depth + k * columns, static_cast<std::ptrdiff_t>(columns), columns};
    }
    std::size_t values() const noexcept { return (depth + 1) * padded; }
};

template <class T>
struct PackedNetwork {
    const kernels::Dense<T>* dense;
    std::vector<PackedLayer<T>> layers;
    std::size_t widest = 0;  // padded
    bool looks = false;      // for zeros among the inputs
    detail::Block memory;

    PackedNetwork(const Network& network, double scale);

    std::size_t inputs() const noexcept { return layers.front().depth; }
    std::size_t outputs() const noexcept { return layers.back().width; }

 private:
    T* pack(const Network& network, std::size_t number, double scale, T* to);
};

template <class T>
PackedNetwork<T>::PackedNetwork(const Network& network, double scale) : dense(&dense_kernels<T>()) {
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
    looks = pays_to_look(layers.front().depth, layers.front().width);
    memory = detail::fresh_block(values * sizeof(T));
    T* to = reinterpret_cast<T*>(memory.memory.get());
    std::fill_n(to, values, T(0));
    for (std::size_t l = 0; l < layers.size(); ++l) to = pack(network, l, l == 0 ? scale : 1.0, to);
}

// Gives where the next layer goes. The scale is multiplied in double, before the weights are rounded.
template <class T>
T* PackedNetwork<T>::pack(const Network& network, std::size_t number, double scale, T* to) {
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

// What a strip of rows needs on its way: a copy of them as T, where they are not read in place, and two layers' values.
template <class T>
class Scratch {
 public:
    Scratch(const PackedNetwork<T>& network, std::size_t rows, bool copies)
        : copy_size_(copies ? round_up(rows * network.inputs(), cache_line) : 0),
          values_size_(round_up(rows * network.widest, cache_line)),
          list_(NonzeroColumns::room),
          memory_(copy_size_ + 2 * values_size_) {
        if (network.looks) nonzero_.list = list_.data();
    }
    T* copy() noexcept { return memory_.data(); }
    T* values(std::size_t layer) noexcept {
        return memory_.data() + copy_size_ + layer % 2 * values_size_;
    }
    NonzeroColumns& nonzero() noexcept { return nonzero_; }

 private:
    std::size_t copy_size_, values_size_;
    Buffer<int> list_;
    Buffer<T> memory_;
    NonzeroColumns nonzero_;
};

// Takes the rows of A from `first` on, strip_rows at most, through the network; finish(row, sums) is called with the last
// pre-activations of each.
template <class T, class F>
bool run_strip(const PackedNetwork<T>& network, const ConstMatrix& A, bool in_place,
               std::size_t first, Scratch<T>& scratch, F&& finish) noexcept {
    const kernels::Dense<T>& dense = *network.dense;
    const std::size_t rows = std::min(strip_rows, A.rows - first);
    Strip<T> strip{scratch.copy(), static_cast<std::ptrdiff_t>(A.cols), rows, nullptr, 0};
    if (in_place) {
        strip.rows = reinterpret_cast<const T*>(A.at(first, 0));
        strip.stride = A.row_stride / static_cast<std::ptrdiff_t>(sizeof(T));
    } else {
        dense.copy_rows[A.dtype](A.at(first, 0), A.row_stride, A.col_stride, rows, A.cols,
                                 scratch.copy(), A.cols);
    }
    bool finite = true;
    NonzeroColumns none;
    for (std::size_t l = 0; l < network.layers.size(); ++l) {
        const PackedLayer<T>& layer = network.layers[l];
        strip.sums = scratch.values(l);
        strip.padded = layer.padded;
        finite &= multiply(
            dense, strip, layer.start, layer.depth, layer.width,
            [&](std::size_t k, std::size_t j) noexcept { return layer.panel_at(k, j); },
            l == 0 ? scratch.nonzero() : none);
        if (l + 1 == network.layers.size()) break;
        const auto forward = dense.forward[layer.activation];
        for (std::size_t i = 0; i < rows; ++i) {
            T* values = strip.sums + i * layer.padded;
            forward(values, values, layer.width);
        }
        strip.rows = strip.sums;
        strip.stride = static_cast<std::ptrdiff_t>(layer.padded);
    }
    for (std::size_t i = 0; i < rows; ++i) finish(first + i, strip.sums + i * strip.padded);
    return finite;
}

// The place of the largest value, the first of equals. A NaN is larger than any number, as NumPy has it.
template <class T>
std::size_t place_of_largest(const T* values, std::size_t count) noexcept {
    std::size_t best = 0;
    for (std::size_t i = 1; i < count && !std::isnan(values[best]); ++i)
        if (values[i] > values[best] || std::isnan(values[i])) best = i;
    return best;
}

}  // namespace

template <class In>
struct Predictor<In>::State {
    std::shared_ptr<const PackedNetwork<Out>> network;
    Scratch<Out> scratch;

    explicit State(std::shared_ptr<const PackedNetwork<Out>> packed)
        : network(std::move(packed)), scratch(*network, strip_rows, !std::is_same_v<In, Out>) {}

    template <class F>
    bool run(const In* X, std::size_t rows, std::size_t stride, F&& finish) noexcept {
        const ConstMatrix A = row_major(X, rows, network->inputs(), stride);
        bool finite = true;
        for (std::size_t first = 0; first < rows; first += strip_rows)
            finite &= run_strip(*network, A, std::is_same_v<In, Out>, first, scratch, finish);
        return finite;
    }
};

template <class In>
Predictor<In>::Predictor(const Network& network)
    : state_(std::make_unique<State>(std::make_shared<const PackedNetwork<Out>>(
          network,
          network.input_scale().value_or(std::is_same_v<In, std::uint8_t> ? byte_scale : 1.0)))) {}
template <class In>
Predictor<In>::Predictor(const Predictor& other)
    : state_(std::make_unique<State>(other.state_->network)) {}
template <class In>
Predictor<In>::Predictor(Predictor&& other) noexcept = default;
template <class In>
Predictor<In>& Predictor<In>::operator=(Predictor other) noexcept {
    state_.swap(other.state_);
    return *this;
}
template <class In>
Predictor<In>::~Predictor() = default;

template <class In>
std::size_t Predictor<In>::inputs() const noexcept {
    return state_->network->inputs();
}
template <class In>
std::size_t Predictor<In>::outputs() const noexcept {
    return state_->network->outputs();
}

template <class In>
bool Predictor<In>::predict(const In* X, std::size_t rows, std::size_t stride, Out* out) noexcept {
    const PackedNetwork<Out>& network = *state_->network;
    const std::size_t width = network.outputs();
    const auto forward = network.dense->forward[network.layers.back().activation];
    return state_->run(X, rows, stride, [=](std::size_t row, const Out* sums) noexcept {
        forward(sums, out + row * width, width);
    });
}

template <class In>
std::ptrdiff_t Predictor<In>::decide(const In* x) noexcept {
    std::size_t place = 0;
    const std::size_t width = outputs();
    const bool finite = state_->run(x, 1, inputs(), [&](std::size_t, const Out* sums) noexcept {
        place = place_of_largest(sums, width);
    });
    return finite ? static_cast<std::ptrdiff_t>(place) : -1;
}

template <class In>
bool Predictor<In>::predict(const ConstMatrix& X, Out* out, int n_threads, bool activated) const {
    const PackedNetwork<Out>& network = *state_->network;
    if (X.dtype != dtype_of<In>())
        throw std::invalid_argument("X has another type than the predictor was made for");
    if (X.cols != network.inputs())
        throw std::invalid_argument("X has " + std::to_string(X.cols) + " columns; expected " +
                                    std::to_string(network.inputs()));
    const std::size_t width = network.outputs();
    const Activation last = activated ? network.layers.back().activation : Activation::identity;
    const auto forward = network.dense->forward[last];
    const bool in_place = std::is_same_v<In, Out> && readable_in_place(X);
    double work = 0;
    for (const PackedLayer<Out>& layer : network.layers)
        work += static_cast<double>(X.rows) * static_cast<double>(layer.depth * layer.width);
    const std::size_t strips = (X.rows + strip_rows - 1) / strip_rows;
    const int threads = work < parallel_threshold ? 1 : threads_for_call(n_threads);
    const std::size_t team = std::min(static_cast<std::size_t>(threads), strips);
    std::vector<Scratch<Out>> scratch;
    scratch.reserve(team);
    for (std::size_t thread = 0; thread < team; ++thread)
        scratch.emplace_back(network, std::min(strip_rows, X.rows), !in_place);
    std::atomic<bool> finite = true;
    parallel_for(static_cast<int>(team), strips, [&](std::size_t strip, int thread) noexcept {
        const bool good = run_strip(network, X, in_place, strip * strip_rows,
                                    scratch[static_cast<std::size_t>(thread)],
                                    [=](std::size_t row, const Out* sums) noexcept {
                                        forward(sums, out + row * width, width);
                                    });
        if (!good) finite.store(false, std::memory_order_relaxed);
    });
    return finite;
}

template <class T>
bool Network::predict(const ConstMatrix& X, T* out, int n_threads) const {
    return visit_dtype(X.dtype, [&]<class In>() -> bool {
        if constexpr (std::is_same_v<typename Predictor<In>::Out, T>)
            return Predictor<In>(*this).predict(X, out, n_threads);
        else
            throw std::invalid_argument(
                "predict() gives double for float64 rows, float for uint8 and float32 ones");
    });
}

template BPLS_API bool Network::predict<float>(const ConstMatrix&, float*, int) const;
template BPLS_API bool Network::predict<double>(const ConstMatrix&, double*, int) const;
template class Predictor<std::uint8_t>;
template class Predictor<float>;
template class Predictor<double>;

}  // namespace bpls
