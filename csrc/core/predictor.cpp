// Predictors: a strip of rows goes through all layers before the next strip begins. Nothing is allocated on the way, and the
// bits of a row do not depend on the others.
#include "bpls/predictor.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>

#include "core/packed_weights.hpp"
#include "core/strip.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

// The scale of networks without one: that of bytes to [0, 1], unless the network has limits, which are those of a table.
template <class In>
double default_scale(const Network& network) noexcept {
    return std::is_same_v<In, std::uint8_t> && network.input_limits().empty() ? 1.0 / 255 : 1.0;
}

// Rows that go through the network before the next ones: a multiple of every level's rows of a tile, and few enough that
// their values stay in the first two caches.
constexpr std::size_t strip_rows = 48;

// The scratch memory of a strip of rows: a copy of them as T, unless they are read in place, and the values of two layers.
template <class T>
class Scratch {
 public:
    Scratch(const PackedWeights<T>& weights, std::size_t rows, bool copies)
        : copy_size_(copies ? round_up(rows * weights.inputs(), cache_line) : 0),
          values_size_(round_up(rows * weights.widest, cache_line)),
          scratch_(copy_size_ + 2 * values_size_, weights.searches ? column_list_room : 0) {}

    T* copy() noexcept { return scratch_.data(); }
    T* values(std::size_t layer) noexcept {
        return scratch_.data() + copy_size_ + layer % 2 * values_size_;
    }
    NonzeroColumnList& nonzero() noexcept { return scratch_.nonzero(); }

 private:
    std::size_t copy_size_, values_size_;
    ThreadScratch<T, NonzeroColumnList> scratch_;
};

// Moves the values of a strip into the limits of the inputs; `copy` holds the strip. Returns whether all values are finite.
template <class T>
bool clip_strip(const PackedWeights<T>& weights, std::size_t rows, T* copy) noexcept {
    const std::size_t width = weights.inputs();
    const bool finite = weights.dense->all_finite(copy, rows * width);
    for (std::size_t i = 0; i < rows; ++i)
        weights.dense->clip(copy + i * width, weights.lower.data(), weights.upper.data(), width);
    return finite;
}

// Whether rows of a type are read where they are: limits need a copy.
template <class In, class T>
bool reads_in_place(const PackedWeights<T>& weights) noexcept {
    return std::is_same_v<In, T> && !weights.limited();
}

// Takes the strip of A that begins at row `first` through the network; finish(row, sums) is called with the last
// pre-activations of each row. Returns whether the first pre-activation of every row and layer is finite.
template <class T, class F>
bool run_strip(const PackedWeights<T>& weights, const ConstMatrix& A, bool in_place,
               std::size_t first, Scratch<T>& scratch, F&& finish) noexcept {
    const kernels::Dense<T>& dense = *weights.dense;
    Strip<T> strip =
        strip_at(dense, A, in_place, first, std::min(strip_rows, A.rows - first), scratch.copy());
    bool finite = !weights.limited() || clip_strip(weights, strip.count, scratch.copy());
    NonzeroColumnList none;
    T* sums = nullptr;
    std::size_t width = 0;
    for (std::size_t l = 0; l < weights.layers.size(); ++l) {
        const PackedLayer<T>& layer = weights.layers[l];
        sums = scratch.values(l);
        width = layer.weights.width;
        finite &= multiply(dense, strip, layer.weights, l == 0 ? scratch.nonzero() : none, sums);
        if (l + 1 == weights.layers.size()) break;
        const auto forward = dense.forward[layer.activation];
        const std::size_t values = strip.count * width;
        const std::size_t run = info_of(layer.activation).elementwise ? values : width;
        for (std::size_t i = 0; i < values; i += run) forward(sums + i, sums + i, run);
        strip.rows = sums;
        strip.stride = static_cast<std::ptrdiff_t>(width);
    }
    for (std::size_t i = 0; i < strip.count; ++i) finish(first + i, sums + i * width);
    return finite;
}

// The place of the largest value, the first of equals. NaN counts as larger than any number, as in NumPy.
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
    std::shared_ptr<const PackedWeights<Out>> weights;
    Scratch<Out> scratch;

    explicit State(std::shared_ptr<const PackedWeights<Out>> packed)
        : weights(std::move(packed)),
          scratch(*weights, strip_rows, !reads_in_place<In>(*weights)) {}

    template <class F>
    bool run(const In* X, std::size_t rows, std::size_t stride, F&& finish) noexcept {
        const ConstMatrix A = row_major(X, rows, weights->inputs(), stride);
        bool finite = true;
        for (std::size_t first = 0; first < rows; first += strip_rows)
            finite &= run_strip(*weights, A, reads_in_place<In>(*weights), first, scratch, finish);
        return finite;
    }
};

template <class In>
Predictor<In>::Predictor(const Network& network)
    : state_(std::make_unique<State>(std::make_shared<const PackedWeights<Out>>(
          network, network.input_scale().value_or(default_scale<In>(network))))) {}
template <class In>
Predictor<In>::Predictor(const Predictor& other)
    : state_(std::make_unique<State>(other.state_->weights)) {}
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
    return state_->weights->inputs();
}
template <class In>
std::size_t Predictor<In>::outputs() const noexcept {
    return state_->weights->outputs();
}

template <class In>
bool Predictor<In>::predict(const In* X, std::size_t rows, std::size_t stride, Out* out) noexcept {
    const PackedWeights<Out>& weights = *state_->weights;
    const std::size_t width = weights.outputs();
    const auto forward = weights.dense->forward[weights.layers.back().activation];
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
    const PackedWeights<Out>& weights = *state_->weights;
    if (X.dtype != dtype_of<In>())
        throw std::invalid_argument(
            "X has another dtype; expected the one that the predictor is for");
    if (X.cols != weights.inputs())
        throw std::invalid_argument("X has " + std::to_string(X.cols) + " columns; expected " +
                                    std::to_string(weights.inputs()));
    const std::size_t width = weights.outputs();
    const Activation last = activated ? weights.layers.back().activation : Activation::identity;
    const auto forward = weights.dense->forward[last];
    const bool in_place = reads_in_place<In>(weights) && readable_in_place(X);
    double multiply_adds = 0;
    for (const PackedLayer<Out>& layer : weights.layers)
        multiply_adds += static_cast<double>(X.rows) *
                         static_cast<double>(layer.weights.depth * layer.weights.width);
    const std::size_t strips = (X.rows + strip_rows - 1) / strip_rows;
    auto workers = make_workers<Scratch<Out>>(threads_for_work(n_threads, multiply_adds), strips,
                                              weights, std::min(strip_rows, X.rows), !in_place);
    std::atomic<bool> finite = true;
    parallel_for(workers, strips, [&](std::size_t strip, Scratch<Out>& scratch) noexcept {
        const bool good = run_strip(weights, X, in_place, strip * strip_rows, scratch,
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
                std::is_same_v<T, float>
                    ? "out is float; expected double, for float64 rows"
                    : "out is double; expected float, for uint8 and float32 rows");
    });
}

template BPLS_API bool Network::predict<float>(const ConstMatrix&, float*, int) const;
template BPLS_API bool Network::predict<double>(const ConstMatrix&, double*, int) const;
template class Predictor<std::uint8_t>;
template class Predictor<float>;
template class Predictor<double>;

}  // namespace bpls
