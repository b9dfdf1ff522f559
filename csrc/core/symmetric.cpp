// The comparison of a matrix with its transpose, block by block: every element is read once.
#include "core/symmetric.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/dispatch.hpp"
#include "core/panels.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t block = kernels::mirrored_block;

struct Extremes {
    double largest = 0;
    double difference = 0;
    bool finite = true;  // whether all differences are

    void merge(const Extremes& other) noexcept {
        largest = std::max(largest, other.largest);
        difference = std::max(difference, other.difference);
        finite = finite && other.finite;
    }
};

// A block of a matrix as row-major double: read in place if possible, otherwise a copy.
class Block {
 public:
    Block(const ConstMatrix& matrix, std::size_t row, std::size_t col) noexcept
        : rows(std::min(block, matrix.rows - row)), cols(std::min(block, matrix.cols - col)) {
        if (matrix.dtype == DType::f64 && readable_in_place(matrix)) {
            values = reinterpret_cast<const double*>(matrix.at(row, col));
            stride = matrix.row_stride / size_of(DType::f64);
            return;
        }
        table().dense_f64.copy_rows[matrix.dtype](matrix.at(row, col), matrix.row_stride,
                                                  matrix.col_stride, rows, cols, copy_, block);
        values = copy_;
        stride = block;
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    std::size_t rows;
    std::size_t cols;
    const double* values;
    std::ptrdiff_t stride;

 private:
    double copy_[block * block];
};

// Up to this many rows pairs are compared one by one: a block costs more than they do.
constexpr std::size_t few_rows = 8;

template <class T>
Extremes compare_pairs(const ConstMatrix& matrix) noexcept {
    const auto value = [&](std::size_t row, std::size_t col) noexcept {
        T x;
        std::memcpy(&x, matrix.at(row, col), sizeof x);
        return static_cast<double>(x);
    };
    Extremes all;
    for (std::size_t i = 0; i < matrix.rows; ++i)
        for (std::size_t j = i; j < matrix.rows; ++j) {
            const double x = value(i, j), y = value(j, i), apart = std::abs(x - y);
            all.finite &= std::isfinite(apart);
            all.largest = std::max({all.largest, std::abs(x), std::abs(y)});
            all.difference = std::max(all.difference, apart);
        }
    return all;
}

Extremes compare_blocks(const ConstMatrix& matrix, int n_threads) {
    const std::size_t blocks = (matrix.rows + block - 1) / block;
    n_threads = threads_for_work(
        n_threads, static_cast<double>(matrix.rows) * static_cast<double>(matrix.cols));
    auto found = make_workers<Extremes>(n_threads, blocks);
    parallel_for(found, blocks, [&](std::size_t row, Extremes& of_thread) noexcept {
        Extremes mine;
        for (std::size_t col = row; col < blocks; ++col) {
            const Block upper(matrix, row * block, col * block);
            const auto compare = [&](const Block& lower) noexcept {
                mine.finite &= table().triangular.compare_mirrored(
                    upper.values, upper.stride, lower.values, lower.stride,
                    static_cast<int>(upper.rows), static_cast<int>(upper.cols), row == col,
                    mine.largest, mine.difference);
            };
            if (row == col)
                compare(upper);
            else
                compare(Block(matrix, col * block, row * block));
        }
        of_thread.merge(mine);
    });
    Extremes all;
    for (const Extremes& part : found) all.merge(part);
    return all;
}

}  // namespace

bool is_symmetric(const ConstMatrix& matrix, double tolerance, int n_threads) {
    const auto pairs = [&]<class T>() { return compare_pairs<T>(matrix); };
    const Extremes all = matrix.rows <= few_rows ? visit_dtype(matrix.dtype, pairs)
                                                 : compare_blocks(matrix, n_threads);
    return all.finite && all.difference <= tolerance * all.largest;
}

}  // namespace bpls
