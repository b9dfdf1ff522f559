// Cholesky with the right-hand sides carried along: factoring [G C] row block by row block turns C into U⁻ᵀC on the way,
// and one back substitution finishes it. All of it is row-major and upper, so every update has the form of a Gram
// product and runs on the same register tiles.
#include "bpls/solve.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/dispatch.hpp"
#include "core/panels.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t block = 32;            // rows factored at a time
constexpr std::size_t outer_block = 256;     // rows that are taken out of the rest at a time
constexpr std::size_t group_unknowns = 192;  // a whole number of every level's panels
constexpr std::size_t chunk_columns = 96;    // that a thread takes at a time

// The weights of a packed panel whose product is to be subtracted.
constexpr std::array<double, outer_block> minus_one = [] {
    std::array<double, outer_block> weights{};
    for (double& w : weights) w = -1.0;
    return weights;
}();

// Memory for one system of n unknowns and m right-hand sides, and the solution of it.
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
          floor_(n),
          left_(n > block ? layout_.size(n) : 0),
          right_(n > block ? layout_.size(n + m) : 0) {}

    // Solves the system into W, or says where that failed and leaves W alone.
    std::optional<FailedPivot> solve(const ConstMatrix& G, const ConstMatrix& C, const Ridge& ridge,
                                     double* W, int n_threads) {
        copy_in(G, 0);
        copy_in(C, n_);
        const double shift = add_ridge(ridge);
        if (const auto failed = factor(n_threads, shift)) return failed;
        back_substitute(n_threads);
        for (std::size_t i = 0; i < n_; ++i) std::copy_n(at(i, n_), m_, W + i * m_);
        return std::nullopt;
    }

 private:
    double* at(std::size_t i, std::size_t j) noexcept { return matrix_.data() + i * stride_ + j; }

    void copy_in(const ConstMatrix& source, std::size_t column) noexcept {
        table().dense_f64.copy_rows[static_cast<int>(source.dtype)](
            source.data, source.row_stride, source.col_stride, source.rows, source.cols,
            at(0, column), stride_);
    }

    double add_ridge(const Ridge& ridge) noexcept {
        double shift = ridge.eps;
        if (ridge.relative) {
            double mean = 0;
            for (std::size_t i = 0; i < n_; ++i) mean += *at(i, i) / static_cast<double>(n_);
            shift *= mean;
        }
        // A pivot below the rounding error of the sums it came from says nothing.
        const double noise = pivot_noise(n_);
        for (std::size_t i = 0; i < n_; ++i) {
            *at(i, i) += shift;
            floor_[i] = std::max(0.0, noise * *at(i, i));
        }
        return shift;
    }

    // Blocks of rows are factored one after the other inside of a larger one, which the rows below see as a whole: they
    // do not fit in the second cache and should be touched seldom.
    std::optional<FailedPivot> factor(int n_threads, double shift) {
        const auto& triangular = table().triangular;
        const auto stride = static_cast<std::ptrdiff_t>(stride_);
        for (std::size_t outer = 0; outer < n_; outer += outer_block) {
            const std::size_t outer_end = std::min(outer + outer_block, n_);
            for (std::size_t k = outer; k < outer_end; k += block) {
                const Range rows{k, std::min(k + block, outer_end)};
                const int size = static_cast<int>(rows.size());
                const int done = triangular.factor(at(k, k), stride, size, floor_.data() + k);
                if (done < size) {
                    const std::size_t pivot = k + static_cast<std::size_t>(done);
                    return FailedPivot{pivot, n_, *at(pivot, pivot), shift};
                }
                update(n_threads, rows, rows.end, outer_end, [&](Range columns) noexcept {
                    triangular.solve_lower(at(k, k), stride, size, at(k, rows.end + columns.begin),
                                           stride, static_cast<int>(columns.size()));
                });
            }
            update(n_threads, {outer, outer_end}, outer_end, n_, [](Range) noexcept {});
        }
        return std::nullopt;
    }

    // Takes the factored `rows` out of what is left: G -= UᵀU and C -= UᵀY for rows [from, until), columns from `from` on.
    // Before that, finish(columns) completes these rows, chunk of columns by chunk.
    template <class F>
    void update(int n_threads, Range rows, std::size_t from, std::size_t until, F&& finish) {
        const int size = static_cast<int>(rows.size());
        const Columns trailing =
            Columns().append(row_major(at(rows.begin, from), rows.size(), n_ + m_ - from, stride_));
        for_each_chunk(n_threads, trailing.width(), [&](Range columns) noexcept {
            finish(columns);
            if (from == until) return;
            pack(trailing, columns, size, minus_one.data(), right_.data());
            const Range unknowns{columns.begin, std::min(columns.end, until - from)};
            if (unknowns.begin < unknowns.end)
                pack(trailing, unknowns, size, nullptr, left_.data());
        });
        if (from == until) return;
        for_each_chunk(n_threads, trailing.width(), [&](Range columns) noexcept {
            multiply({0, std::min(columns.end, until - from)}, columns, size, from, from);
        });
    }

    void back_substitute(int n_threads) {
        const auto& triangular = table().triangular;
        const auto stride = static_cast<std::ptrdiff_t>(stride_);
        for (std::size_t k = (n_ - 1) / block * block;; k -= block) {
            const Range rows{k, std::min(k + block, n_)};
            const int size = static_cast<int>(rows.size());
            const Columns solved = Columns().append(row_major(at(k, n_), rows.size(), m_, stride_));
            for_each_chunk(n_threads, m_, [&](Range columns) noexcept {
                triangular.solve_upper(at(k, k), stride, size, at(k, n_ + columns.begin), stride,
                                       static_cast<int>(columns.size()));
                if (k > 0) pack(solved, columns, size, minus_one.data(), right_.data());
            });
            if (k == 0) break;
            // The rows above, U[0:k, rows] transposed.
            ConstMatrix above = row_major(at(0, k), k, rows.size(), stride_);
            std::swap(above.rows, above.cols);
            std::swap(above.row_stride, above.col_stride);
            const Columns left = Columns().append(above);
            for_each_chunk(n_threads, k, [&](Range unknowns) noexcept {
                pack(left, unknowns, size, nullptr, left_.data());
                multiply(unknowns, {0, m_}, size, 0, n_);
            });
        }
    }

    // Calls body(range) for chunks whose ends are panel borders. The last ones come first: in a triangle they have most work.
    template <class F>
    void for_each_chunk(int n_threads, std::size_t columns, F&& body) {
        const std::size_t width = round_up(chunk_columns, layout_.width);
        const std::size_t chunks = (columns + width - 1) / width;
        const bool small = static_cast<double>(columns * n_ * block) < parallel_threshold;
        parallel_for(small ? 1 : n_threads, chunks, [&](std::size_t chunk, int) noexcept {
            const std::size_t begin = (chunks - 1 - chunk) * width;
            body(Range{begin, std::min(begin + width, columns)});
        });
    }

    void pack(const Columns& columns, Range range, int rows, const double* weight,
              unsigned char* panels) noexcept {
        if (n_ <= block) return;  // one block: nothing is updated
        unsigned char* first = layout_.column(panels, range.begin);
        // Lanes past the last column may hold what an earlier, wider block left there.
        const std::size_t last = (layout_.count(range.size()) - 1) * layout_.bytes;
        if (range.size() % layout_.width != 0)
            std::fill_n(first + last, layout_.bytes, static_cast<unsigned char>(0));
        pack_columns(layout_, columns, range, 0, rows, weight, first);
    }

    // matrix[row + i, column + j] += left[:, i]ᵀ right[:, j] for the tiles of these ranges that reach the upper triangle.
    // Groups of unknowns stay in the second cache while all panels of columns pass by.
    void multiply(Range unknowns, Range columns, int rows, std::size_t row,
                  std::size_t column) noexcept {
        for (std::size_t i = unknowns.begin; i < unknowns.end; i += group_unknowns)
            for (std::size_t j = columns.begin; j < columns.end; j += layout_.width)
                multiply_panel({i, std::min(i + group_unknowns, unknowns.end)},
                               {j, std::min(j + layout_.width, columns.end)}, rows, row, column);
    }

    void multiply_panel(Range unknowns, Range columns, int rows, std::size_t row,
                        std::size_t column) noexcept {
        const auto lanes = static_cast<std::size_t>(product_.lanes);
        for (std::size_t i = unknowns.begin; i < unknowns.end;
             i += static_cast<std::size_t>(product_.mr)) {
            if (row + i >= column + columns.end) break;
            const std::size_t diagonal = row + i, first = column + columns.begin;
            const std::size_t from =
                columns.begin + (diagonal > first ? (diagonal - first) / lanes * lanes : 0);
            product_.tile[(columns.end - from + lanes - 1) / lanes - 1](
                layout_.column(left_.data(), i), layout_.column(right_.data(), from),
                product_.panels.nr, rows, at(row + i, column + from),
                static_cast<std::ptrdiff_t>(stride_), right_.data(), 0);
        }
    }

    const kernels::Product& product_;
    PanelLayout layout_;
    std::size_t n_;
    std::size_t m_;
    std::size_t stride_;
    Buffer<double> matrix_;
    std::vector<double> floor_;
    Buffer<unsigned char> left_;
    Buffer<unsigned char> right_;
};

std::string describe(std::size_t pivot, std::size_t size, double value, double ridge,
                     std::ptrdiff_t system) {
    char numbers[160];
    std::snprintf(numbers, sizeof numbers,
                  "G + %.3g·I is not positive definite: pivot %zu of %zu is %.3g", ridge, pivot + 1,
                  size, value);
    return (system < 0 ? "" : "system " + std::to_string(system) + ": ") + numbers;
}

}  // namespace

void check_shapes(const ConstMatrix& G, const ConstMatrix& C) {
    if (G.rows == 0 || G.rows != G.cols || C.rows != G.rows)
        throw std::invalid_argument("G must be square, not empty, and have as many rows as C");
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
    Workspace workspace(G.rows, C.cols);
    if (const auto failed = workspace.solve(G, C, ridge, W, threads_for_call(n_threads)))
        throw failed->error();
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
    n_threads = static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(threads_for_call(n_threads)), batch.count));
    std::vector<Workspace> workspaces;
    workspaces.reserve(static_cast<std::size_t>(n_threads));
    for (int thread = 0; thread < n_threads; ++thread) workspaces.emplace_back(n, m);

    parallel_for(n_threads, batch.count, [&](std::size_t s, int thread) noexcept {
        auto failed = workspaces[static_cast<std::size_t>(thread)].solve(
            batch.G_of(s), batch.C_of(s), ridge, W + s * n * m, 1);
        if (!failed) return;
        failed->system = static_cast<std::ptrdiff_t>(s);
        failure.note(*failed);
    });
}

}  // namespace bpls
