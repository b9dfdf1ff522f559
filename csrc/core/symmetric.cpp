#include "core/symmetric.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t block = 32;  // two blocks stay in the first cache

struct Extremes {
    double largest = 0;
    double difference = 0;

    void merge(const Extremes& other) noexcept {
        largest = std::max(largest, other.largest);
        difference = std::max(difference, other.difference);
    }
};

// The block at (i, j) and the one across the diagonal, at (j, i). Rows and columns that are not there count as zero.
template <class T>
Extremes compare(const ConstMatrix& matrix, std::size_t i, std::size_t j) noexcept {
    const std::size_t rows = std::min(block, matrix.rows - i);
    const std::size_t cols = std::min(block, matrix.cols - j);
    const auto value = [&](std::size_t row, std::size_t col) noexcept {
        T x;
        std::memcpy(&x, matrix.at(row, col), sizeof x);
        return x;
    };
    T upper[block][block] = {}, lower[block][block] = {};
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cols; ++c) upper[r][c] = value(i + r, j + c);
    for (std::size_t c = 0; c < cols; ++c)
        for (std::size_t r = 0; r < rows; ++r) lower[r][c] = value(j + c, i + r);
    // Lane by lane, so that the loop needs no order.
    T largest[block] = {}, difference[block] = {};
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < block; ++c) {
            const T u = upper[r][c], l = lower[r][c];
            const T magnitude = std::abs(u) > std::abs(l) ? std::abs(u) : std::abs(l);
            largest[c] = largest[c] > magnitude ? largest[c] : magnitude;
            difference[c] = difference[c] > std::abs(u - l) ? difference[c] : std::abs(u - l);
        }
    return {*std::max_element(largest, largest + block),
            *std::max_element(difference, difference + block)};
}

}  // namespace

bool is_symmetric(const ConstMatrix& matrix, double tolerance, int n_threads) {
    const std::size_t blocks = (matrix.rows + block - 1) / block;
    n_threads = threads_for_call(n_threads);
    if (static_cast<double>(matrix.rows) * static_cast<double>(matrix.cols) < parallel_threshold)
        n_threads = 1;
    std::vector<Extremes> found(static_cast<std::size_t>(n_threads));
    parallel_for(n_threads, blocks, [&](std::size_t row, int thread) noexcept {
        Extremes& mine = found[static_cast<std::size_t>(thread)];
        for (std::size_t col = row; col < blocks; ++col)
            mine.merge(matrix.dtype == DType::f32
                           ? compare<float>(matrix, row * block, col * block)
                           : compare<double>(matrix, row * block, col * block));
    });
    Extremes all;
    for (const Extremes& part : found) all.merge(part);
    return all.difference <= tolerance * all.largest;
}

}  // namespace bpls
