// One layer forward. Every thread takes a strip of rows at a time, multiplies it by W and applies the activation, or its
// Jacobian, while the sums are in cache. linear_plan.hpp decides how.
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

// The weights of one call: packed, or W itself.
template <class T>
class CallWeights {
 public:
    // The last row of W is the bias, where there is one.
    CallWeights(const kernels::Dense<T>& dense, const ConstMatrix& W, bool bias, bool in_place,
                const LinearPlan& plan, int n_threads)
        : layer_(layout_of(
              dense, plan.way, W.rows - (bias ? 1 : 0), W.cols,
              plan.searches ? few_rows_vectors : static_cast<std::size_t>(dense.vectors))),
          packed_(layer_.packed_values() + (bias && !in_place ? W.cols : 0)) {
        const std::size_t values = layer_.packed_values();
        if (layer_.way == LinearWay::in_place) {
            layer_.weights = reinterpret_cast<const T*>(W.data);
            layer_.stride = W.row_stride / static_cast<std::ptrdiff_t>(sizeof(T));
        } else {
            layer_.weights = packed_.data();
            pack_all(dense, W, n_threads);
        }
        if (bias && in_place) {
            layer_.start = reinterpret_cast<const T*>(W.at(layer_.depth, 0));
        } else if (bias) {
            T* start = packed_.data() + values;
            dense.copy_rows[W.dtype](W.at(layer_.depth, 0), W.row_stride, W.col_stride, 1, W.cols,
                                     start, W.cols);
            layer_.start = start;
        }
        searches_ = plan.searches && dense.all_finite(packed_.data(), values);
    }

    const LayerWeights<T>& layer() const noexcept { return layer_; }
    // Whether zero columns of A may be left out, and searching for them can pay.
    bool searches() const noexcept { return searches_; }

 private:
    void pack_all(const kernels::Dense<T>& dense, const ConstMatrix& W, int n_threads) {
        const std::size_t step = layer_.way == LinearWay::dots ? W.cols : layer_.panel;
        parallel_for(n_threads, (W.cols + step - 1) / step, [&](std::size_t item, int) noexcept {
            const Range columns{item * step, std::min((item + 1) * step, W.cols)};
            pack(dense, layer_, W, columns, packed_.data());
        });
    }

    LayerWeights<T> layer_;
    Buffer<T> packed_;  // and the bias
    bool searches_;
};

void check_arguments(const ConstMatrix& A, const ConstMatrix& W, bool bias, bool out_is_float) {
    const bool narrow = fits_float(A.dtype) && W.dtype == DType::f32;
    if (narrow != out_is_float)
        throw std::invalid_argument(
            narrow ? "out is double; expected float, for float32 W and uint8 or float32 A"
                   : "out is float; expected double, unless W is float32 and A uint8 or float32");
    if (W.rows != A.cols + (bias ? 1 : 0))
        throw std::invalid_argument("W has " + std::to_string(W.rows) + " rows; expected " +
                                    std::to_string(A.cols) + ", one for each column of A" +
                                    (bias ? ", and one for the bias" : ""));
}

// Computes the pre-activations of a strip after the other, into `out` or, where that is null, into memory of the thread, and calls
// finish(first, count, sums) for runs of values: `first` is the place of sums[0] in the result. Returns whether the first
// pre-activation of every row is finite.
template <class T, class F>
bool for_each_run(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options, T* out,
                  F&& finish) {
    check_arguments(A, W, options.bias, sizeof(T) == sizeof(float));
    const std::size_t depth = A.cols, width = W.cols;
    if (width == 0 || A.rows == 0) return true;
    const kernels::Dense<T>& dense = dense_kernels<T>();
    const LinearShape shape{A.rows, depth, width};
    const auto lanes = static_cast<std::size_t>(dense.lanes);
    const int n_threads = threads_for_work(options.n_threads, cost_of(shape, lanes));
    const LinearMachine machine{sizeof(T), lanes, static_cast<std::size_t>(dense.mr),
                                static_cast<std::size_t>(n_threads)};
    const auto can_be_read = [](const ConstMatrix& matrix) {
        return matrix.dtype == dtype_of<T>() && readable_in_place(matrix);
    };
    const bool in_place = can_be_read(A), W_in_place = can_be_read(W);
    const LinearPlan plan = plan_linear(shape, machine, W_in_place);
    CallWeights<T> weights(dense, W, options.bias, W_in_place, plan, n_threads);

    const std::size_t strip_rows = std::min(A.rows, plan.strip_rows);
    const std::size_t strips = (A.rows + strip_rows - 1) / strip_rows;
    const std::size_t copy_size = in_place ? 0 : round_up(strip_rows * depth, cache_line);
    const std::size_t sums_size = out ? 0 : strip_rows * width;
    using Worker = ThreadScratch<T, NonzeroColumnList>;
    auto workers = make_workers<Worker>(n_threads, strips, copy_size + sums_size,
                                        weights.searches() ? column_list_room : 0);
    const bool elementwise = info_of(options.activation).elementwise;
    std::atomic<bool> all_finite = true;
    parallel_for(workers, strips, [&](std::size_t item, Worker& worker) noexcept {
        const std::size_t first = item * strip_rows;
        const std::size_t count = std::min(strip_rows, A.rows - first);
        T* sums = out ? out + first * width : worker.data() + copy_size;
        const Strip<T> strip = strip_at(dense, A, in_place, first, count, worker.data());
        if (!multiply(dense, strip, weights.layer(), worker.nonzero(), sums))
            all_finite.store(false, std::memory_order_relaxed);
        const std::size_t run = elementwise ? count * width : width;
        for (std::size_t i = 0; i < count * width; i += run)
            finish(first * width + i, run, sums + i);
    });
    return all_finite;
}

}  // namespace

template <class T>
bool linear(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options, T* out) {
    const auto forward = dense_kernels<T>().forward[options.activation];
    if (options.activation == Activation::identity)
        return for_each_run(A, W, options, out, [](std::size_t, std::size_t, T*) noexcept {});
    // Row by row in place, loads would wait for the partial stores of the row before.
    T* const sums_at = info_of(options.activation).elementwise ? out : nullptr;
    return for_each_run(A, W, options, sums_at,
                        [=](std::size_t first, std::size_t count, T* sums) noexcept {
                            forward(sums, out + first, count);
                        });
}

template <class T>
bool tangent(const ConstMatrix& A, const ConstMatrix& W, const T* values,
             const LinearOptions& options, T* out) {
    const auto jacobian = dense_kernels<T>().jacobian[options.activation];
    T* const sums_at = out == values ? nullptr : out;
    return for_each_run(A, W, options, sums_at,
                        [=](std::size_t first, std::size_t count, T* sums) noexcept {
                            jacobian(sums, values + first, out + first, count);
                        });
}

template bool linear<float>(const ConstMatrix&, const ConstMatrix&, const LinearOptions&, float*);
template bool linear<double>(const ConstMatrix&, const ConstMatrix&, const LinearOptions&, double*);
template bool tangent<float>(const ConstMatrix&, const ConstMatrix&, const float*,
                             const LinearOptions&, float*);
template bool tangent<double>(const ConstMatrix&, const ConstMatrix&, const double*,
                              const LinearOptions&, double*);

}  // namespace bpls
