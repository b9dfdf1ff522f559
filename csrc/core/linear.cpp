// One layer forward. W is packed once, or read where it lies if A has a few rows only. Every thread takes a few rows at a
// time, multiplies them block by block of W's rows into a strip that stays in cache, and applies the activation, or its
// Jacobian, on the way out.
#include "bpls/linear.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "core/dense.hpp"
#include "core/dispatch.hpp"
#include "core/panels.hpp"
#include "core/strip.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t few_rows = 96;  // of A, for which W is not packed

// Calls finish(row, sums) for every row, with its pre-activations.
template <class T, class F>
bool for_each_row(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options,
                  F&& finish) {
    const bool narrow = fits_float(A.dtype) && W.dtype == DType::f32;
    if (narrow != (sizeof(T) == sizeof(float)))
        throw std::invalid_argument(
            "linear() gives float only for float32 W and uint8 or float32 A");
    if (W.rows != A.cols + (options.bias ? 1 : 0))
        throw std::invalid_argument("W has not one row per column of A (and one for the bias)");
    if (W.cols == 0) return true;
    const kernels::Dense<T>& dense = dense_kernels<T>();
    const PanelLayout layout(dense.panels);
    const std::size_t depth = A.cols, width = W.cols;
    const std::size_t padded = layout.padded(width);

    // W's panels, one set for every block of rows of W. For a few rows of A packing would take longer than the product.
    const bool W_in_place = A.rows < few_rows && W.dtype == dtype_of<T>() && readable_in_place(W);
    const auto depth_block = static_cast<std::size_t>(dense.panels.block_rows);
    const std::size_t depth_blocks = (depth + depth_block - 1) / depth_block;
    const std::size_t block_bytes = W_in_place ? 0 : layout.size(width);
    Buffer<unsigned char> panels(depth_blocks * block_bytes);
    std::fill_n(panels.data(), depth_blocks * block_bytes, static_cast<unsigned char>(0));
    const Columns columns = Columns().append(W);
    const auto depth_of = [&](std::size_t block) noexcept {
        return static_cast<int>(std::min<std::size_t>(depth_block, depth - block * depth_block));
    };
    if (!W_in_place)
        for (std::size_t block = 0; block < depth_blocks; ++block)
            pack_columns(layout, columns, {0, width}, block * depth_block, depth_of(block), nullptr,
                         panels.data() + block * block_bytes);

    Buffer<T> start(padded);  // what every row begins with: the bias, or zero
    std::fill_n(start.data(), padded, T(0));
    if (options.bias)
        dense.copy_rows[W.dtype](W.at(depth, 0), W.row_stride, W.col_stride, 1, width, start.data(),
                                 padded);

    const bool in_place = A.dtype == dtype_of<T>() && readable_in_place(A);
    const std::size_t strips = (A.rows + strip_rows - 1) / strip_rows;
    int n_threads = threads_for_call(options.n_threads);
    if (static_cast<double>(A.rows) * static_cast<double>(depth * width) < parallel_threshold)
        n_threads = 1;
    n_threads =
        static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(n_threads), strips));
    const std::size_t rows_in_strip = std::min(strip_rows, A.rows);
    const std::size_t copy_size = in_place ? 0 : round_up(rows_in_strip * depth, cache_line);
    const bool looks = pays_to_look(depth, width) && !W_in_place &&
                       dense.all_finite(reinterpret_cast<const T*>(panels.data()),
                                        depth_blocks * block_bytes / sizeof(T));
    std::vector<Buffer<T>> scratch;
    scratch.reserve(static_cast<std::size_t>(n_threads));
    Buffer<int> lists(looks ? static_cast<std::size_t>(n_threads) * NonzeroColumns::room : 0);
    std::vector<NonzeroColumns> nonzero_columns(static_cast<std::size_t>(n_threads));
    for (std::size_t thread = 0; thread < nonzero_columns.size(); ++thread) {
        scratch.emplace_back(copy_size + rows_in_strip * padded);
        if (looks) nonzero_columns[thread].list = lists.data() + thread * NonzeroColumns::room;
    }

    const std::ptrdiff_t w_stride =
        W_in_place ? W.row_stride / static_cast<std::ptrdiff_t>(sizeof(T)) : dense.panels.nr;
    const auto panel_at = [&](std::size_t k, std::size_t j) noexcept {
        if (W_in_place)
            return WeightPanel<T>{reinterpret_cast<const T*>(W.at(k, j)), w_stride, width - j};
        const unsigned char* w = layout.column(panels.data() + k / depth_block * block_bytes, j);
        // Panels are filled up with zeros, so whole vectors of them can be read.
        const std::size_t rest = round_up(width - j, static_cast<std::size_t>(dense.lanes));
        return WeightPanel<T>{reinterpret_cast<const T*>(w), w_stride,
                              std::min(layout.width, rest)};
    };
    std::atomic<bool> all_finite = true;
    parallel_for(n_threads, strips, [&](std::size_t strip, int thread) noexcept {
        const std::size_t first = strip * strip_rows;
        const std::size_t rows = std::min(strip_rows, A.rows - first);
        T* copy = scratch[static_cast<std::size_t>(thread)].data();
        T* sums = copy + copy_size;
        const T* a = copy;
        std::ptrdiff_t a_stride = static_cast<std::ptrdiff_t>(depth);
        if (in_place) {
            a = reinterpret_cast<const T*>(A.at(first, 0));
            a_stride = A.row_stride / static_cast<std::ptrdiff_t>(sizeof(T));
        } else {
            dense.copy_rows[A.dtype](A.at(first, 0), A.row_stride, A.col_stride, rows, depth, copy,
                                     depth);
        }
        if (!multiply(dense, Strip<T>{a, a_stride, rows, sums, padded}, start.data(), depth, width,
                      panel_at, nonzero_columns[static_cast<std::size_t>(thread)]))
            all_finite.store(false, std::memory_order_relaxed);
        for (std::size_t i = 0; i < rows; ++i) finish(first + i, sums + i * padded);
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
