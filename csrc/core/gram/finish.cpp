// The steps after the passes, in float64. The order of the multiplications is fixed, so results are reproducible bit for bit.
#include "core/gram/finish.hpp"

#include <algorithm>

#include "core/dispatch.hpp"
#include "core/threads.hpp"

namespace bpls::gram_detail {
namespace {

// The centred sum of products of two columns, given their sums. Integers lose nothing before the division.
double centred(double product, double sum_of_left, double sum_of_right, double weight) noexcept {
    return (weight * product - sum_of_left * sum_of_right) / weight;
}

}  // namespace

double total_weight(const std::optional<ConstMatrix>& weight, std::size_t rows, bool narrow) {
    if (!weight) return static_cast<double>(rows);
    constexpr std::size_t block = 256;  // weights, converted on the stack
    double values[block];
    double total = 0;
    for (std::size_t row = 0; row < rows; row += block) {
        const std::size_t count = std::min(block, rows - row);
        table().dense_f64.copy_rows[weight->dtype](weight->at(row, 0), weight->row_stride,
                                                   weight->col_stride, count, 1, values, 1);
        double sum = 0;
        for (std::size_t k = 0; k < count; ++k)
            sum += narrow ? static_cast<double>(static_cast<float>(values[k])) : values[k];
        total += sum;
    }
    return total;
}

void centre(const GramSums& sums) noexcept {
    const auto [G, n, stride, C, m, sums_of_A, sums_of_B, total] = sums;
    for (std::size_t i = 0; i < n; ++i) {
        double* row = G + i * stride;
        for (std::size_t j = i; j < n; ++j)
            row[j] = centred(row[j], sums_of_A[i], sums_of_A[j], total);
        if (row[i] < 0) row[i] = 0;  // the rounding error of a column that hardly varies
        for (std::size_t j = 0; j < m; ++j)
            C[i * m + j] = centred(C[i * m + j], sums_of_A[i], sums_of_B[j], total);
    }
    std::fill_n(sums_of_A, n, 0.0);
}

void append_bias(const GramSums& sums) noexcept {
    const auto [G, n, stride, C, m, sums_of_A, sums_of_B, total] = sums;
    for (std::size_t i = 0; i < n; ++i) G[i * stride + n] = sums_of_A[i];
    G[n * stride + n] = total;
    std::copy_n(sums_of_B, m, C + n * m);
}

void scale_row(double factor, double* row, std::size_t count) noexcept {
    for (std::size_t j = 0; j < count; ++j) row[j] *= factor;
}

void scale_columns_of_A(const GramSums& sums, std::span<const double> scale) noexcept {
    const std::size_t n = sums.n;
    for (std::size_t i = 0; i < scale.size(); ++i) {
        double* row = sums.G + i * sums.stride;
        scale_row(scale[i], row + i, sums.stride - i);
        for (std::size_t j = i; j < n; ++j) row[j] *= scale[j];
        scale_row(scale[i], sums.C + i * sums.m, sums.m);
    }
}

void clear(double* values, std::size_t count, int n_threads) {
    constexpr std::size_t piece = 1u << 16;    // values that a thread clears at a time: half a MiB
    constexpr std::size_t fewest = 4 * piece;  // values for a second thread
    n_threads = count < fewest ? 1 : threads_for_call(n_threads);
    parallel_for(n_threads, (count + piece - 1) / piece, [=](std::size_t item, int) noexcept {
        std::fill_n(values + item * piece, std::min(piece, count - item * piece), 0.0);
    });
}

void mirror(double* G, std::size_t n, int n_threads) {
    constexpr std::size_t block = kernels::mirrored_block;
    const auto copy_mirrored = table().triangular.copy_mirrored;
    const auto stride = static_cast<std::ptrdiff_t>(n);
    n_threads = threads_for_work(n_threads, static_cast<double>(n * n));
    parallel_for(n_threads, (n + block - 1) / block, [=](std::size_t item, int) noexcept {
        const std::size_t i0 = item * block;
        for (std::size_t j0 = i0; j0 < n; j0 += block)
            if (i0 < j0 && j0 + block <= n)
                copy_mirrored(G + i0 * n + j0, stride, G + j0 * n + i0, stride);
            else
                for (std::size_t i = i0; i < std::min(i0 + block, n); ++i)
                    for (std::size_t j = std::max(j0, i + 1); j < std::min(j0 + block, n); ++j)
                        G[j * n + i] = G[i * n + j];
    });
}

}  // namespace bpls::gram_detail
