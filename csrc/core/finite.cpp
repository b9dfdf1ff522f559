// Scans a matrix on all threads. The element found does not depend on their number.
#include "core/finite.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/dense.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

template <class T>
std::optional<Place> scan(const ConstMatrix& matrix, int n_threads) {
    const bool contiguous = matrix.col_stride == static_cast<std::ptrdiff_t>(sizeof(T));
    const auto finite = dense_kernels<T>().all_finite;
    const auto value = [&](std::size_t row, std::size_t col) noexcept {
        T x;
        std::memcpy(&x, matrix.at(row, col), sizeof x);
        return x;
    };
    const auto finite_row = [&](std::size_t row) noexcept {
        if (contiguous) return finite(reinterpret_cast<const T*>(matrix.at(row, 0)), matrix.cols);
        for (std::size_t col = 0; col < matrix.cols; ++col)
            if (!std::isfinite(value(row, col))) return false;
        return true;
    };
    constexpr std::size_t piece = 256;  // rows
    std::atomic<std::size_t> bad_row = matrix.rows;
    n_threads = threads_for_call(n_threads);
    if (static_cast<double>(matrix.rows) * static_cast<double>(matrix.cols) < parallel_threshold)
        n_threads = 1;
    // Contiguous rows are one run of values.
    const bool dense =
        contiguous && matrix.row_stride == static_cast<std::ptrdiff_t>(matrix.cols * sizeof(T));
    parallel_for(n_threads, (matrix.rows + piece - 1) / piece, [&](std::size_t item, int) noexcept {
        const std::size_t begin = item * piece, end = std::min(begin + piece, matrix.rows);
        if (dense &&
            finite(reinterpret_cast<const T*>(matrix.at(begin, 0)), (end - begin) * matrix.cols))
            return;
        for (std::size_t row = begin; row < end && row < bad_row; ++row)
            if (!finite_row(row))
                for (std::size_t seen = bad_row; row < seen;)
                    if (bad_row.compare_exchange_weak(seen, row)) break;
    });
    const std::size_t row = bad_row;
    for (std::size_t col = 0; row < matrix.rows && col < matrix.cols; ++col)
        if (const T x = value(row, col); !std::isfinite(x)) return Place{row, col, std::isnan(x)};
    return std::nullopt;
}

}  // namespace

std::optional<Place> first_nonfinite(const ConstMatrix& matrix, int n_threads) {
    if (matrix.cols == 0) return std::nullopt;
    return visit_dtype(matrix.dtype, [&]<class T>() -> std::optional<Place> {
        if constexpr (std::is_floating_point_v<T>)
            return scan<T>(matrix, n_threads);
        else
            return std::nullopt;
    });
}

}  // namespace bpls
