// One layer forward. W is packed once, unless A has a few rows only; then every thread takes a few rows at a time, multiplies them block by block of
// W's rows into a strip that stays in cache, and applies the activation on the way out.
#include "bpls/linear.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "core/dense.hpp"
#include "core/dispatch.hpp"
#include "core/panels.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t strip_rows = 96;  // a multiple of every level's rows of a tile

}  // namespace

template <class T>
bool linear(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options, T* out) {
    const bool narrow = A.dtype != DType::f64 && W.dtype == DType::f32;
    if (narrow != (sizeof(T) == sizeof(float)))
        throw std::invalid_argument(
            "linear() gives float only for float32 W and uint8 or float32 A");
    if (W.rows != A.cols + (options.bias ? 1 : 0))
        throw std::invalid_argument("W has not one row per column of A (and one for the bias)");
    const kernels::Dense<T>& dense = dense_kernels<T>();
    const PanelLayout layout(dense.panels);
    const std::size_t depth = A.cols, width = W.cols;
    const std::size_t padded = layout.padded(width);

    // W's panels, one set for every block of rows of W. For a few rows of A packing would take longer than the product:
    // then only what does not fill a panel is packed.
    const bool W_in_place = A.rows < strip_rows && W.dtype == dtype_of<T>() && readable_in_place(W);
    const std::size_t packed_from = W_in_place ? width / layout.width * layout.width : 0;
    const std::size_t depth_blocks = (depth + kernels::block_rows - 1) / kernels::block_rows;
    const std::size_t block_bytes = layout.size(width - packed_from);
    Buffer<unsigned char> panels(depth_blocks * block_bytes);
    std::fill_n(panels.data(), depth_blocks * block_bytes, static_cast<unsigned char>(0));
    const Columns columns = Columns().append(W);
    const auto depth_of = [&](std::size_t block) noexcept {
        return static_cast<int>(
            std::min<std::size_t>(kernels::block_rows, depth - block * kernels::block_rows));
    };
    for (std::size_t block = 0; block < depth_blocks; ++block)
        pack_columns(layout, columns, {packed_from, width}, block * kernels::block_rows,
                     depth_of(block), nullptr, panels.data() + block * block_bytes);

    Buffer<T> start(padded);  // what every row begins with: the bias, or zero
    std::fill_n(start.data(), padded, T(0));
    if (options.bias)
        dense.copy_rows[static_cast<int>(W.dtype)](W.at(depth, 0), W.row_stride, W.col_stride, 1,
                                                   width, start.data(), padded);

    const bool in_place = A.dtype == dtype_of<T>() && readable_in_place(A);
    const std::size_t strips = (A.rows + strip_rows - 1) / strip_rows;
    int n_threads = threads_for_call(options.n_threads);
    if (static_cast<double>(A.rows) * static_cast<double>(depth * width) < parallel_threshold)
        n_threads = 1;
    n_threads =
        static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(n_threads), strips));
    const std::size_t rows_in_strip = std::min(strip_rows, A.rows);
    const std::size_t copy_size = in_place ? 0 : round_up(rows_in_strip * depth, cache_line);
    std::vector<Buffer<T>> scratch;
    scratch.reserve(static_cast<std::size_t>(n_threads));
    for (int thread = 0; thread < n_threads; ++thread)
        scratch.emplace_back(copy_size + rows_in_strip * padded);

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
            dense.copy_rows[static_cast<int>(A.dtype)](A.at(first, 0), A.row_stride, A.col_stride,
                                                       rows, depth, copy, depth);
        }
        for (std::size_t i = 0; i < rows; ++i) std::copy_n(start.data(), padded, sums + i * padded);
        for (std::size_t block = 0; block < depth_blocks; ++block)
            for (std::size_t j = 0; j < padded; j += layout.width) {
                const bool packed = j >= packed_from;
                const unsigned char* w = packed
                                             ? panels.data() + block * block_bytes +
                                                   (j - packed_from) / layout.width * layout.bytes
                                             : W.at(block * kernels::block_rows, j);
                const std::ptrdiff_t w_stride =
                    packed ? dense.panels.nr
                           : W.row_stride / static_cast<std::ptrdiff_t>(sizeof(T));
                const T* a_block = a + block * kernels::block_rows;
                const auto mr = static_cast<std::size_t>(dense.mr);
                const auto lanes = static_cast<std::size_t>(dense.lanes);
                const std::size_t vectors = (std::min(layout.width, width - j) + lanes - 1) / lanes;
                for (std::size_t i = 0; i < rows; i += mr)
                    dense.tile[vectors - 1](a_block + static_cast<std::ptrdiff_t>(i) * a_stride,
                                            a_stride, static_cast<int>(std::min(mr, rows - i)),
                                            reinterpret_cast<const T*>(w), w_stride,
                                            depth_of(block), sums + i * padded + j,
                                            static_cast<std::ptrdiff_t>(padded));
            }
        for (std::size_t i = 0; i < rows; ++i)
            if (!std::isfinite(sums[i * padded]))
                all_finite.store(false, std::memory_order_relaxed);
        const auto forward = dense.forward[static_cast<int>(options.activation)];
        for (std::size_t i = 0; i < rows; ++i)
            forward(sums + i * padded, out + (first + i) * width, width);
    });
    return all_finite;
}

template bool linear<float>(const ConstMatrix&, const ConstMatrix&, const LinearOptions&, float*);
template bool linear<double>(const ConstMatrix&, const ConstMatrix&, const LinearOptions&, double*);

}  // namespace bpls
