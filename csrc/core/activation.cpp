// Activations of whole arrays, cut into pieces of whole rows for the threads.
#include "bpls/activation.hpp"

#include <algorithm>

#include "core/buffer.hpp"
#include "core/dense.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t piece_values = 16384;  // that a thread takes at a time
constexpr std::size_t slope_rows = 256;      // that are summed in the type of the values
constexpr double cost_of_value = 8;  // an activation costs about as much as this many multiply-adds

// Calls kernel(first, count) for runs of values: single rows, or pieces of any size where the activation is elementwise.
template <class F>
void for_each_run(Activation activation, std::size_t rows, std::size_t cols, int n_threads,
                  F&& kernel) {
    const std::size_t values = rows * cols;
    if (values == 0) return;
    const std::size_t run = info_of(activation).elementwise ? std::min(values, piece_values) : cols;
    const std::size_t piece = std::max<std::size_t>(1, piece_values / run) * run;
    n_threads = threads_for_call(n_threads);
    if (static_cast<double>(values) * cost_of_value < parallel_threshold) n_threads = 1;
    parallel_for(n_threads, (values + piece - 1) / piece, [&](std::size_t item, int) noexcept {
        const std::size_t end = std::min(values, (item + 1) * piece);
        for (std::size_t first = item * piece; first < end; first += run)
            kernel(first, std::min(run, end - first));
    });
}

}  // namespace

const char* name_of(Activation activation) noexcept { return info_of(activation).name; }

template <class T>
void forward(Activation activation, const T* in, T* out, std::size_t rows, std::size_t cols,
             int n_threads) {
    const auto kernel = dense_kernels<T>().forward[activation];
    for_each_run(activation, rows, cols, n_threads, [=](std::size_t first, std::size_t count) {
        kernel(in + first, out + first, count);
    });
}

template <class T>
void derivative(Activation activation, const T* z, T* out, std::size_t rows, std::size_t cols,
                int n_threads) {
    const auto kernel = dense_kernels<T>().derivative[activation];
    for_each_run(activation, rows, cols, n_threads, [=](std::size_t first, std::size_t count) {
        kernel(z + first, out + first, count);
    });
}

template <class T>
void jacobian(Activation activation, const T* in, const T* values, T* out, std::size_t rows,
              std::size_t cols, int n_threads) {
    const auto kernel = dense_kernels<T>().jacobian[activation];
    for_each_run(activation, rows, cols, n_threads, [=](std::size_t first, std::size_t count) {
        kernel(in + first, values + first, out + first, count);
    });
}

template <class T>
void squared_slopes(Activation activation, const T* values, double* sums, std::size_t rows,
                    std::size_t cols, int n_threads) {
    const auto kernel = dense_kernels<T>().squared_slopes[activation];
    std::fill_n(sums, cols, 0.0);
    const std::size_t blocks = (rows + slope_rows - 1) / slope_rows;
    n_threads = threads_for_call(n_threads);
    if (static_cast<double>(rows) * static_cast<double>(cols) < parallel_threshold) n_threads = 1;
    // Every block has sums of its own, which are added in order: the bits do not depend on the number of threads.
    Buffer<double> of_blocks(blocks * cols);
    std::fill_n(of_blocks.data(), blocks * cols, 0.0);
    double* all = of_blocks.data();
    parallel_for(n_threads, blocks, [=](std::size_t block, int) noexcept {
        const std::size_t first = block * slope_rows;
        kernel(values + first * cols, std::min(slope_rows, rows - first), cols, all + block * cols);
    });
    for (std::size_t block = 0; block < blocks; ++block)
        for (std::size_t j = 0; j < cols; ++j) sums[j] += all[block * cols + j];
}

template <class T>
void inverse(Activation activation, const T* n, T* out, std::size_t rows, std::size_t cols,
             T margin, int n_threads) {
    const auto kernel = dense_kernels<T>().inverse[activation];
    for_each_run(activation, rows, cols, n_threads, [=](std::size_t first, std::size_t count) {
        kernel(n + first, out + first, count, margin);
    });
}

template void forward(Activation, const float*, float*, std::size_t, std::size_t, int);
template void forward(Activation, const double*, double*, std::size_t, std::size_t, int);
template void derivative(Activation, const float*, float*, std::size_t, std::size_t, int);
template void derivative(Activation, const double*, double*, std::size_t, std::size_t, int);
template void jacobian(Activation, const float*, const float*, float*, std::size_t, std::size_t,
                       int);
template void jacobian(Activation, const double*, const double*, double*, std::size_t, std::size_t,
                       int);
template void squared_slopes(Activation, const float*, double*, std::size_t, std::size_t, int);
template void squared_slopes(Activation, const double*, double*, std::size_t, std::size_t, int);
template void inverse(Activation, const float*, float*, std::size_t, std::size_t, float, int);
template void inverse(Activation, const double*, double*, std::size_t, std::size_t, double, int);

}  // namespace bpls
