// One layer forward. Every thread takes a strip of rows at a time, multiplies it by one block of W's rows after another into
// sums that stay in cache, and applies the activation, or its Jacobian, on the way out.
#include "bpls/linear.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>

#include "core/dense.hpp"
#include "core/panels.hpp"
#include "core/strip.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

// With fewer rows of A, packing W would take longer than the product: W is read in place.
constexpr std::size_t fewest_rows_to_pack = 96;

// The weights of a layer as tiles read them: packed, one set of panels for every block of rows of W, or read in place.
template <class T>
class LayerWeights {
 public:
    // For a product with `rows` rows of A. The last row of W is the bias, where there is one.
    LayerWeights(const kernels::Dense<T>& dense, const ConstMatrix& W, bool bias, std::size_t rows)
        : W_(W),
          layout_(dense.panels),
          depth_(W.rows - (bias ? 1 : 0)),
          lanes_(static_cast<std::size_t>(dense.lanes)),
          depth_block_(static_cast<std::size_t>(dense.panels.block_rows)),
          in_place_(rows < fewest_rows_to_pack && W.dtype == dtype_of<T>() && readable_in_place(W)),
          row_stride_(in_place_ ? W.row_stride / static_cast<std::ptrdiff_t>(sizeof(T))
                                : dense.panels.nr),
          set_bytes_(in_place_ ? 0 : layout_.size(W.cols)),
          panels_bytes_((depth_ + depth_block_ - 1) / depth_block_ * set_bytes_),
          panels_(panels_bytes_),
          start_(padded()) {
        std::fill_n(panels_.data(), panels_bytes_, static_cast<unsigned char>(0));
        if (!in_place_) pack();
        std::fill_n(start_.data(), padded(), T(0));
        if (bias)
            dense.copy_rows[W.dtype](W.at(depth_, 0), W.row_stride, W.col_stride, 1, W.cols,
                                     start_.data(), padded());
        searches_ =
            pays_to_search(depth_, W.cols) && !in_place_ &&
            dense.all_finite(reinterpret_cast<const T*>(panels_.data()), panels_bytes_ / sizeof(T));
    }

    std::size_t depth() const noexcept { return depth_; }
    std::size_t width() const noexcept { return W_.cols; }
    std::size_t padded() const noexcept { return layout_.padded(W_.cols); }
    // The initial value of every row of sums: the bias, or zeros.
    const T* start() noexcept { return start_.data(); }
    // Whether zero columns of A may be left out, and searching for them can pay.
    bool searches() const noexcept { return searches_; }

    WeightPanel<T> panel_at(std::size_t k, std::size_t j) noexcept {
        if (in_place_) return {reinterpret_cast<const T*>(W_.at(k, j)), row_stride_, W_.cols - j};
        const unsigned char* w = layout_.column(panels_.data() + k / depth_block_ * set_bytes_, j);
        // Panels are filled up with zeros, so whole vectors of them can be read.
        const std::size_t rest = round_up(W_.cols - j, lanes_);
        return {reinterpret_cast<const T*>(w), row_stride_, std::min(layout_.width, rest)};
    }

 private:
    void pack() noexcept {
        const Columns columns = Columns().append(W_);
        unsigned char* set = panels_.data();
        for (std::size_t k = 0; k < depth_; k += depth_block_, set += set_bytes_)
            pack_columns(layout_, columns, {0, W_.cols}, k,
                         static_cast<int>(std::min(depth_block_, depth_ - k)), nullptr, set);
    }

    const ConstMatrix& W_;
    PanelLayout layout_;
    std::size_t depth_;
    std::size_t lanes_;
    std::size_t depth_block_;  // rows of W in a set of panels
    bool in_place_;
    std::ptrdiff_t row_stride_;
    std::size_t set_bytes_;
    std::size_t panels_bytes_;
    Buffer<unsigned char> panels_;
    Buffer<T> start_;
    bool searches_;
};

// Calls finish(row, sums) for every row of A, with its pre-activations. Returns whether the first one of every row is finite.
template <class T, class F>
bool for_each_row(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options,
                  F&& finish) {
    const bool narrow = fits_float(A.dtype) && W.dtype == DType::f32;
    if (narrow != (sizeof(T) == sizeof(float)))
        throw std::invalid_argument(
            narrow ? "out is double; expected float, for float32 W and uint8 or float32 A"
                   : "out is float; expected double, unless W is float32 and A uint8 or float32");
    if (W.rows != A.cols + (options.bias ? 1 : 0))
        throw std::invalid_argument("W has " + std::to_string(W.rows) + " rows; expected " +
                                    std::to_string(A.cols) + ", one for each column of A" +
                                    (options.bias ? ", and one for the bias" : ""));
    if (W.cols == 0) return true;
    const kernels::Dense<T>& dense = dense_kernels<T>();
    LayerWeights<T> weights(dense, W, options.bias, A.rows);
    const std::size_t depth = weights.depth(), width = weights.width(), padded = weights.padded();

    const bool in_place = A.dtype == dtype_of<T>() && readable_in_place(A);
    const std::size_t strips = strips_of(A.rows), rows_in_strip = std::min(strip_rows, A.rows);
    const std::size_t copy_size = in_place ? 0 : round_up(rows_in_strip * depth, cache_line);
    const int n_threads = threads_for_work(
        options.n_threads, static_cast<double>(A.rows) * static_cast<double>(depth * width));
    using Worker = ThreadScratch<T, NonzeroColumnList>;
    auto workers = make_workers<Worker>(n_threads, strips, copy_size + rows_in_strip * padded,
                                        weights.searches() ? column_list_room : 0);
    const auto panel_at = [&](std::size_t k, std::size_t j) noexcept {
        return weights.panel_at(k, j);
    };
    std::atomic<bool> all_finite = true;
    parallel_for(workers, strips, [&](std::size_t item, Worker& worker) noexcept {
        const std::size_t first = item * strip_rows;
        Strip<T> strip = strip_at(dense, A, in_place, first, worker.data());
        strip.sums = worker.data() + copy_size;
        strip.padded = padded;
        if (!multiply(dense, strip, weights.start(), depth, width, panel_at, worker.nonzero()))
            all_finite.store(false, std::memory_order_relaxed);
        for (std::size_t i = 0; i < strip.count; ++i) finish(first + i, strip.sums + i * padded);
    });
    return all_finite;
}

}  // namespace

template <class T>
bool linear(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options, T* out) {
    const auto forward = dense_kernels<T>().forward[options.activation];
    const std::size_t width = W.cols;
    return for_each_row<T>(A, W, options, [=](std::size_t row, const T* sums) noexcept {
        forward(sums, out + row * width, width);
    });
}

template <class T>
bool tangent(const ConstMatrix& A, const ConstMatrix& W, const T* values,
             const LinearOptions& options, T* out) {
    const auto jacobian = dense_kernels<T>().jacobian[options.activation];
    const std::size_t width = W.cols;
    return for_each_row<T>(A, W, options, [=](std::size_t row, const T* sums) noexcept {
        jacobian(sums, values + row * width, out + row * width, width);
    });
}

template bool linear<float>(const ConstMatrix&, const ConstMatrix&, const LinearOptions&, float*);
template bool linear<double>(const ConstMatrix&, const ConstMatrix&, const LinearOptions&, double*);
template bool tangent<float>(const ConstMatrix&, const ConstMatrix&, const float*,
                             const LinearOptions&, float*);
template bool tangent<double>(const ConstMatrix&, const ConstMatrix&, const double*,
                              const LinearOptions&, double*);

}  // namespace bpls
