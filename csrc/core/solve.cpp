// Cholesky of the augmented matrix: factoring [G C] row block by row block turns C into U⁻ᵀC, and one
// back substitution finishes it. Everything is row-major and upper, so updates are Gram products on the same register tiles.
// Steps (a row block in a chunk of columns) start in a fixed order and wait for those they need: the bits do not depend on
// the number of threads.
#include "bpls/solve.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/dispatch.hpp"
#include "core/panels.hpp"
#include "core/threads.hpp"
#include "core/wait.hpp"

namespace bpls {
namespace {

// Chunks and outer blocks are whole numbers of blocks and of every level's panels.
constexpr std::size_t block = 24;          // rows that are factored at a time
constexpr std::size_t outer_block = 240;   // rows that are updated with all rows above them at once
constexpr std::size_t chunk_columns = 48;  // columns of a step
// Steps wait for each other: a second thread pays only from this multiple of the usual work on.
constexpr double waiting = 16;
// The most unknowns of a system whose matrix is on the stack.
constexpr std::size_t stack_unknowns = 64;
static_assert(outer_block % block == 0 && outer_block <= kernels::block_rows);
static_assert(chunk_columns % block == 0 && block <= kernels::most_triangular_rows);

// Whether a system of n unknowns and m right-hand sides is too little work for a second thread.
bool is_for_one_thread(std::size_t n, std::size_t m) noexcept {
    const double multiply_adds = static_cast<double>(n * n) * static_cast<double>(n / 6 + m);
    return multiply_adds < waiting * parallel_threshold;
}

// Whether such a system is factored as one block, without packing, on one thread.
bool is_small(std::size_t n, std::size_t m) noexcept {
    return n <= static_cast<std::size_t>(table().triangular.at_once) && is_for_one_thread(n, m);
}

// Computes the diagonal of G with the ridge, and the floor of each pivot. Returns the ridge.
double add_ridge(const ConstMatrix& G, const Ridge& ridge, double* diagonal,
                 double* floor) noexcept {
    const std::size_t n = G.rows;
    table().dense_f64.copy_rows[G.dtype](G.data, G.row_stride + G.col_stride, G.col_stride, n, 1,
                                         diagonal, 1);
    double shift = ridge.eps;
    if (ridge.relative) {
        double mean = 0;
        for (std::size_t i = 0; i < n; ++i) mean += diagonal[i] / static_cast<double>(n);
        shift *= mean;
    }
    // A pivot below the rounding error of its sums carries no information.
    const double noise = pivot_noise(n);
    for (std::size_t i = 0; i < n; ++i) {
        diagonal[i] += shift;
        floor[i] = std::max(0.0, noise * diagonal[i]);
    }
    return shift;
}

// Solves a small system, or returns where that failed and leaves W alone. U has room for the matrix, in rows of `stride` values.
std::optional<FailedPivot> solve_small(const ConstMatrix& G, const ConstMatrix& C,
                                       const Ridge& ridge, double* U, std::size_t stride,
                                       double* W) noexcept {
    const auto& triangular = table().triangular;
    const auto& copy_rows = table().dense_f64.copy_rows;
    const std::size_t n = G.rows, m = C.cols;
    const auto size = static_cast<int>(n);
    double diagonal[kernels::most_triangular_rows], floor[kernels::most_triangular_rows];
    const double shift = add_ridge(G, ridge, diagonal, floor);
    copy_rows[G.dtype](G.data, G.row_stride, G.col_stride, n, n, U, stride);
    for (std::size_t i = 0; i < n; ++i) U[i * stride + i] = diagonal[i];
    const auto step = static_cast<std::ptrdiff_t>(stride);
    if (const int failed = triangular.factor(U, step, size, floor); failed < size) {
        const auto pivot = static_cast<std::size_t>(failed);
        return FailedPivot{pivot, n, U[pivot * stride + pivot], shift};
    }
    copy_rows[C.dtype](C.data, C.row_stride, C.col_stride, n, m, W, m);
    const auto columns = static_cast<std::ptrdiff_t>(m);
    triangular.solve_lower(U, step, size, W, columns, static_cast<int>(m));
    triangular.solve_upper(U, step, size, W, columns, static_cast<int>(m));
    return std::nullopt;
}

std::optional<FailedPivot> solve_small(const ConstMatrix& G, const ConstMatrix& C,
                                       const Ridge& ridge, double* W) {
    if (G.rows <= stack_unknowns) {
        alignas(cache_line) double U[stack_unknowns * stack_unknowns];
        return solve_small(G, C, ridge, U, stack_unknowns, W);
    }
    // An odd number of cache lines: the rows of a column are in different sets.
    constexpr std::size_t line = cache_line / sizeof(double);
    const std::size_t stride = (round_up(G.rows, line) / line | 1) * line;
    Buffer<double> U(G.rows * stride);
    return solve_small(G, C, ridge, U.data(), stride, W);
}

// Memory for systems of n unknowns and m right-hand sides, and their solution, one at a time.
class Workspace {
 public:
    Workspace(std::size_t n, std::size_t m)
        : product_(table().f64),
          layout_(product_.panels),
          n_(n),
          m_(m),
          // Tiles may reach past the last row and column.
          stride_(round_up(n + m, cache_line / sizeof(double)) + layout_.width),
          matrix_((round_up(n, block) + layout_.width) * stride_),
          diagonal_(n),
          floor_(n),
          panels_(panels_before(round_up(n, outer_block)) * layout_.bytes),
          negative_(n * m),
          solved_((n + m + chunk_columns - 1) / chunk_columns) {
        for (std::size_t k = 0; k < n_; k += block)
            for (std::size_t chunk = k / chunk_columns; chunk < solved_.size(); ++chunk)
                steps_.push_back({k, chunk});
    }

    // Solves the system into W, or returns where that failed and leaves W alone.
    std::optional<FailedPivot> solve(const ConstMatrix& G, const ConstMatrix& C, const Ridge& ridge,
                                     double* W, int n_threads) {
        if (is_for_one_thread(n_, m_)) n_threads = 1;
        const double shift = add_ridge(G, ridge, diagonal_.data(), floor_.data());
        begin();
        // After the factorization right-hand sides have nothing in common: each thread takes some of them.
        const auto lanes = static_cast<std::size_t>(product_.lanes);
        const auto threads = static_cast<std::size_t>(n_threads);
        const std::size_t columns =
            round_up(std::max<std::size_t>(1, (m_ + threads - 1) / threads), lanes);
        const std::size_t parts = (m_ + columns - 1) / columns;
        parallel_for(n_threads, steps_.size() + parts, [&](std::size_t item, int) noexcept {
            if (item < steps_.size()) {
                factor(steps_[item], G, C);
            } else {
                const std::size_t first = (item - steps_.size()) * columns;
                back_substitute({first, std::min(first + columns, m_)}, W);
            }
        });
        const std::size_t pivot = failed_;
        if (pivot == n_) return std::nullopt;
        return FailedPivot{pivot, n_, *at(pivot, pivot), shift};
    }

 private:
    struct Step {
        std::size_t row;    // the first of its block
        std::size_t chunk;  // of columns
    };

    double* at(std::size_t i, std::size_t j) noexcept { return matrix_.data() + i * stride_ + j; }

    // Column j of the factored rows of an outer block. Columns before the block are not kept.
    unsigned char* panel(std::size_t outer, std::size_t j) noexcept {
        unsigned char* first = panels_.data() + panels_before(outer) * layout_.bytes;
        return layout_.column(first, j) - outer / layout_.width * layout_.bytes;
    }
    std::size_t panels_before(std::size_t outer) const noexcept {
        const std::size_t blocks = outer / outer_block;
        const std::size_t not_kept = outer_block / layout_.width * (blocks * (blocks - 1) / 2);
        return blocks * layout_.count(n_ + m_) - not_kept;
    }

    // ---- the factor

    void begin() noexcept {
        // Tiles read the lanes past the last column, which packing does not write.
        for (std::size_t outer = 0; outer < n_; outer += outer_block)
            std::fill_n(panel(outer, (n_ + m_ - 1) / layout_.width * layout_.width), layout_.bytes,
                        static_cast<unsigned char>(0));
        for (Signal& rows : solved_) rows.set(0);
        factored_.set(0);
        failed_ = n_;
    }

    void factor(const Step& step, const ConstMatrix& G, const ConstMatrix& C) noexcept {
        const auto& triangular = table().triangular;
        const auto stride = static_cast<std::ptrdiff_t>(stride_);
        const std::size_t k = step.row, outer = k / outer_block * outer_block;
        const Range rows{k, std::min(k + block, n_)};
        Range columns = columns_of(step.chunk);
        columns.begin = std::max(columns.begin, k);
        if (!reached(solved_[step.chunk], k)) return;
        // An outer block is updated as a whole: the rows above it do not fit in the second cache and should be read rarely.
        if (k == outer) {
            const Range outer_rows{outer, std::min(outer + outer_block, n_)};
            copy_in(G, C, outer_rows, columns);
            const std::size_t last = std::min(step.chunk, (outer_rows.end - 1) / chunk_columns);
            for (std::size_t chunk = k / chunk_columns; chunk <= last; ++chunk)
                if (!reached(solved_[chunk], k)) return;
            for (std::size_t above = 0; above < outer; above += outer_block)
                subtract(outer_rows, columns, above, outer_block);
        } else {
            if (!reached(solved_[k / chunk_columns], k)) return;
            subtract(rows, columns, outer, k - outer);
        }
        const int size = static_cast<int>(rows.size());
        if (columns.begin == k) {
            const int done = triangular.factor(at(k, k), stride, size, floor_.data() + k);
            if (done < size) return fail(k + static_cast<std::size_t>(done));
            finished(factored_, rows.end);
        } else if (!reached(factored_, rows.end)) {
            return;
        }
        const std::size_t right = std::max(columns.begin, rows.end);
        if (right < columns.end)
            triangular.solve_lower(at(k, k), stride, size, at(k, right), stride,
                                   static_cast<int>(columns.end - right));
        if (rows.end < n_ && right < columns.end) {
            const ConstMatrix solved =
                row_major(at(k, right), rows.size(), columns.end - right, stride_);
            pack(solved, right, outer, k - outer);
        }
        finished(solved_[step.chunk], rows.end);
    }

    Range columns_of(std::size_t chunk) const noexcept {
        return {chunk * chunk_columns, std::min((chunk + 1) * chunk_columns, n_ + m_)};
    }

    // Rows of a signal when nothing more will come: more than there are.
    static constexpr std::uint32_t no_more = std::numeric_limits<std::uint32_t>::max();

    // Waits until `rows` rows are done. Returns false if a pivot failed and they may never be.
    bool reached(const Signal& done, std::size_t rows) const noexcept {
        done.wait_until([&] { return done.value() >= rows; });
        return failed_.load(std::memory_order_seq_cst) == n_;
    }

    void finished(Signal& done, std::size_t rows) noexcept {
        done.set(static_cast<std::uint32_t>(rows));
        if (failed_.load(std::memory_order_seq_cst) < n_) done.set(no_more);
    }

    // Ends all waiting.
    void fail(std::size_t pivot) noexcept {
        failed_.store(pivot, std::memory_order_seq_cst);
        for (Signal& rows : solved_) rows.set(no_more);
        factored_.set(no_more);
    }

    void copy_in(const ConstMatrix& G, const ConstMatrix& C, Range rows, Range columns) noexcept {
        const auto copy = [&](const ConstMatrix& source, std::size_t begin, std::size_t end,
                              std::size_t first) noexcept {
            if (begin >= end) return;
            table().dense_f64.copy_rows[source.dtype](
                source.at(rows.begin, begin - first), source.row_stride, source.col_stride,
                rows.size(), end - begin, at(rows.begin, begin), stride_);
        };
        copy(G, columns.begin, std::min(columns.end, n_), 0);
        copy(C, std::max(columns.begin, n_), columns.end, n_);
        for (std::size_t i = std::max(rows.begin, columns.begin);
             i < std::min(rows.end, columns.end); ++i)
            *at(i, i) = diagonal_[i];
    }

    // Packs factored rows, which are `row` and following of an outer block, into its panels from `column` on.
    void pack(const ConstMatrix& solved, std::size_t column, std::size_t outer,
              std::size_t row) noexcept {
        const std::size_t lane = column % layout_.width;
        unsigned char* first =
            panel(outer, column - lane) +
            row * layout_.width * static_cast<std::size_t>(layout_.panels->element);
        pack_columns(layout_, Columns().append(solved), {0, solved.cols}, 0,
                     static_cast<int>(solved.rows), nullptr, first, lane);
    }

    // G -= UᵀU and C -= UᵀY with the first `depth` rows of an outer block, for these rows and columns of the upper triangle.
    void subtract(Range rows, Range columns, std::size_t outer, std::size_t depth) noexcept {
        const auto lanes = static_cast<std::size_t>(product_.lanes);
        const auto mr = static_cast<std::size_t>(product_.mr);
        for (std::size_t j = columns.begin, end; j < columns.end; j = end) {
            end = std::min(j / layout_.width * layout_.width + layout_.width, columns.end);
            for (std::size_t i = rows.begin; i < std::min(rows.end, end); i += mr) {
                const std::size_t from = j + (i > j ? (i - j) / lanes * lanes : 0);
                table().triangular.subtract[(end - from + lanes - 1) / lanes - 1](
                    panel(outer, i), panel(outer, from), product_.panels.nr,
                    static_cast<int>(depth), at(i, from), static_cast<std::ptrdiff_t>(stride_),
                    panels_.data(), 0);
            }
        }
    }

    // ---- the solution

    // Solves UX = Y for some columns, the last rows first.
    void back_substitute(Range columns, double* W) noexcept {
        for (std::size_t chunk = 0; chunk < solved_.size(); ++chunk)
            if (!reached(solved_[chunk], std::min((chunk + 1) * chunk_columns, n_))) return;
        const auto& dense = table().dense_f64;
        const auto stride = static_cast<std::ptrdiff_t>(stride_);
        const auto width = static_cast<std::ptrdiff_t>(columns.size());
        double* negative = negative_.data() + n_ * columns.begin;
        for (std::size_t k = (n_ - 1) / block * block;; k -= block) {
            const Range rows{k, std::min(k + block, n_)};
            const std::size_t depth = n_ - rows.end;
            if (depth > 0)
                dense.multiply({.a = at(k, rows.end),
                                .a_stride = stride,
                                .rows = rows.size(),
                                .w = negative + rows.end * columns.size(),
                                .w_stride = width,
                                .padded = false,
                                .nonzero = nullptr,
                                .depth = static_cast<int>(depth),
                                .columns = static_cast<int>(width),
                                .adds = true,
                                .start = nullptr,
                                .c = at(k, n_ + columns.begin),
                                .c_stride = stride});
            table().triangular.solve_upper(at(k, k), stride, static_cast<int>(rows.size()),
                                           at(k, n_ + columns.begin), stride,
                                           static_cast<int>(width));
            for (std::size_t i = k; i < rows.end; ++i) {
                const double* x = at(i, n_ + columns.begin);
                std::copy_n(x, columns.size(), W + i * m_ + columns.begin);
                std::transform(x, x + columns.size(), negative + i * columns.size(),
                               [](double value) noexcept { return -value; });
            }
            if (k == 0) break;
        }
    }

    const kernels::Product& product_;
    PanelLayout layout_;
    std::size_t n_;
    std::size_t m_;
    std::size_t stride_;
    Buffer<double> matrix_;
    std::vector<double> diagonal_;  // with the ridge
    std::vector<double> floor_;
    Buffer<unsigned char> panels_;
    Buffer<double> negative_;  // the solution with the other sign: tiles only add
    std::vector<Step> steps_;
    std::vector<Signal> solved_;           // rows, by chunk of columns
    Signal factored_;                      // rows whose diagonal block is factored
    std::atomic<std::size_t> failed_ = 0;  // the failed pivot, or n
};

std::string describe(std::size_t pivot, std::size_t size, double value, double ridge,
                     std::ptrdiff_t system) {
    char numbers[160];  // the sentence below with four numbers of any size
    std::snprintf(numbers, sizeof numbers,
                  "G + %.3g·I is not positive definite: pivot %zu of %zu is %.3g", ridge, pivot + 1,
                  size, value);
    return (system < 0 ? "" : "system " + std::to_string(system) + ": ") + numbers;
}

}  // namespace

void check_shapes(const ConstMatrix& G, const ConstMatrix& C) {
    if (G.rows == 0 || G.rows != G.cols)
        throw std::invalid_argument("G has " + std::to_string(G.rows) + " rows and " +
                                    std::to_string(G.cols) +
                                    " columns; expected a square matrix that is not empty");
    if (C.rows != G.rows)
        throw std::invalid_argument("C has " + std::to_string(C.rows) + " rows; expected " +
                                    std::to_string(G.rows) + ", as G has");
}

NotPositiveDefinite::NotPositiveDefinite(std::size_t pivot_, std::size_t size, double value_,
                                         double ridge_, std::ptrdiff_t system_)
    : std::runtime_error(describe(pivot_, size, value_, ridge_, system_)),
      pivot(pivot_),
      value(value_),
      ridge(ridge_),
      system(system_) {}

void solve(const ConstMatrix& G, const ConstMatrix& C, const Ridge& ridge, double* W,
           int n_threads) {
    check_shapes(G, C);
    const auto failed =
        is_small(G.rows, C.cols)
            ? solve_small(G, C, ridge, W)
            : Workspace(G.rows, C.cols).solve(G, C, ridge, W, threads_for_call(n_threads));
    if (failed) throw failed->error();
}

void solve_layer(const ConstMatrix& A, const ConstMatrix& B, const GramOptions& options,
                 const Ridge& ridge, double* W) {
    const std::size_t n = A.cols + (options.bias ? 1 : 0);
    Buffer<double> G(n * n), C(n * B.cols);
    gram(A, B, options, G.data(), C.data());
    solve(row_major(G.data(), n, n), row_major(C.data(), n, B.cols), ridge, W, options.n_threads);
}

void solve_one_by_one(const Batch& batch, const Ridge& ridge, double* W, int n_threads,
                      FirstFailure& failure) {
    const std::size_t n = batch.G.rows, m = batch.C.cols;
    const std::size_t team = threads_for_items(threads_for_call(n_threads), batch.count);
    std::deque<Workspace> workspaces;  // which cannot be moved
    while (workspaces.size() < team) workspaces.emplace_back(n, m);

    parallel_for(static_cast<int>(team), batch.count, [&](std::size_t s, int thread) noexcept {
        auto failed = workspaces[static_cast<std::size_t>(thread)].solve(
            batch.G_of(s), batch.C_of(s), ridge, W + s * n * m, 1);
        if (!failed) return;
        failed->system = static_cast<std::ptrdiff_t>(s);
        failure.record(*failed);
    });
}

}  // namespace bpls
