// Rows gathered by index, and rows with clipped columns, on all threads.
#include "bpls/rows.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/dense.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t bytes_of_item = 128u << 10;  // that a thread copies at a time, about
// Copying fewer bytes takes less time than starting a thread.
constexpr std::size_t bytes_of_thread = 256u << 10;

}  // namespace

void take_rows(const ConstMatrix& X, std::span<const std::int64_t> rows, int n_threads,
               unsigned char* out) {
    if (X.cols > 1 && X.col_stride != size_of(X.dtype))
        throw std::invalid_argument("X has a column stride of " + std::to_string(X.col_stride) +
                                    " bytes; expected that of contiguous rows, " +
                                    std::to_string(size_of(X.dtype)));
    for (const std::int64_t row : rows)
        if (row < 0 || static_cast<std::size_t>(row) >= X.rows)
            throw std::invalid_argument("rows names row " + std::to_string(row) + " of " +
                                        std::to_string(X.rows));
    const std::size_t bytes = X.cols * static_cast<std::size_t>(size_of(X.dtype));
    const std::size_t in_item =
        std::max<std::size_t>(1, bytes_of_item / std::max<std::size_t>(1, bytes));
    const std::size_t items = (rows.size() + in_item - 1) / in_item;
    n_threads = rows.size() * bytes < 2 * bytes_of_thread ? 1 : threads_for_call(n_threads);
    parallel_for(n_threads, items, [&](std::size_t item, int) noexcept {
        const std::size_t end = std::min(rows.size(), (item + 1) * in_item);
        for (std::size_t i = item * in_item; i < end; ++i)
            std::memcpy(out + i * bytes, X.at(static_cast<std::size_t>(rows[i]), 0), bytes);
    });
}

template <class T>
bool clip_rows(const ConstMatrix& X, const T* lower, const T* upper, int n_threads, T* out) {
    const kernels::Dense<T>& dense = dense_kernels<T>();
    const auto copy = dense.copy_rows[X.dtype];
    if (!copy) throw std::invalid_argument("X is float64; expected limits of the same type");
    const std::size_t bytes = X.cols * sizeof(T);
    const std::size_t in_item =
        std::max<std::size_t>(1, bytes_of_item / std::max<std::size_t>(1, bytes));
    const std::size_t items = (X.rows + in_item - 1) / in_item;
    n_threads = X.rows * bytes < 2 * bytes_of_thread ? 1 : threads_for_call(n_threads);
    std::atomic<bool> finite = true;
    parallel_for(n_threads, items, [&](std::size_t item, int) noexcept {
        const std::size_t end = std::min(X.rows, (item + 1) * in_item);
        for (std::size_t i = item * in_item; i < end; ++i) {
            T* row = out + i * X.cols;
            copy(X.at(i, 0), X.row_stride, X.col_stride, 1, X.cols, row, X.cols);
            if (!dense.all_finite(row, X.cols)) finite.store(false, std::memory_order_relaxed);
            dense.clip(row, lower, upper, X.cols);
        }
    });
    return finite;
}

template bool clip_rows(const ConstMatrix&, const float*, const float*, int, float*);
template bool clip_rows(const ConstMatrix&, const double*, const double*, int, double*);

}  // namespace bpls
