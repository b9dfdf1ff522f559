// Many systems at once. Small ones are solved in groups, one system in each lane of a vector: the matrices of a group are
// interleaved into scratch memory, factored and solved there, and the solutions written back one by one.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>

#include "core/batch.hpp"
#include "core/buffer.hpp"
#include "core/dispatch.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

// Right-hand sides in scratch memory at a time, so that a group stays in the first two caches.
constexpr std::size_t max_cols = 16;
// Groups that a thread takes at a time: one alone would be done too soon.
constexpr std::size_t groups_of_piece = 8;

// Views a matrix whose rows follow each other without a gap as one row, which is interleaved in longer blocks.
ConstMatrix flat(ConstMatrix matrix) noexcept {
    if (matrix.cols == 1) {
        std::swap(matrix.rows, matrix.cols);
        std::swap(matrix.row_stride, matrix.col_stride);
    } else if (matrix.row_stride == static_cast<std::ptrdiff_t>(matrix.cols) * matrix.col_stride) {
        matrix.cols *= matrix.rows;
        matrix.rows = 1;
    }
    return matrix;
}

// Solves groups of `lanes` systems, each thread in its own part of the scratch memory.
class Groups {
 public:
    Groups(const Batch& batch, const Ridge& ridge, double* W, int n_threads)
        : kernel_(table().interleaved),
          batch_(batch),
          ridge_(ridge),
          W_(W),
          n_(batch.G.rows),
          m_(batch.C.cols),
          lanes_(static_cast<std::size_t>(kernel_.lanes)),
          matrix_size_(n_ * stride() * lanes_),
          scratch_size_(round_up(matrix_size_ + n_ * std::min(m_, max_cols) * lanes_,
                                 cache_line / sizeof(double))),
          scratch_(scratch_size_ * static_cast<std::size_t>(n_threads)) {}

    std::size_t count() const noexcept { return (batch_.count + lanes_ - 1) / lanes_; }

    void solve(std::size_t group, int thread) noexcept {
        const std::size_t first = group * lanes_;
        const std::size_t systems = std::min(lanes_, batch_.count - first);
        double* U = scratch_.data() + static_cast<std::size_t>(thread) * scratch_size_;
        const int n = static_cast<int>(n_);
        const ConstMatrix& G = batch_.G;
        bool fine =
            kernel_.pack_symmetric[G.dtype](starts(G.data, batch_.G_stride, first, systems).data(),
                                            G.row_stride, G.col_stride, n, symmetry_tolerance, U);
        kernels::Factored found;
        const unsigned failed =
            kernel_.factor(U, n, ridge_.eps, ridge_.relative, pivot_noise(n_), found);
        const unsigned real = (1u << systems) - 1;  // lanes that hold a system of their own
        if (failed & real) {
            const int s = std::countr_zero(failed & real);  // the first of them
            failure_.record({static_cast<std::size_t>(found.pivot[s]), n_, found.value[s],
                             found.shift[s], static_cast<std::ptrdiff_t>(first) + s});
        }

        double* B = U + matrix_size_;
        for (std::size_t begin = 0; begin < m_; begin += max_cols) {
            const std::size_t cols = std::min(max_cols, m_ - begin);
            ConstMatrix C = batch_.C;
            C.data = C.at(0, begin);
            C.cols = cols;
            C = flat(C);
            fine &= kernel_.pack[C.dtype](starts(C.data, batch_.C_stride, first, systems).data(),
                                          C.row_stride, C.col_stride, static_cast<int>(C.rows),
                                          static_cast<int>(C.cols), B);
            kernel_.solve(U, n, B, static_cast<int>(cols));
            const bool all = cols == m_;
            kernel_.unpack(
                B, all ? 1 : n, static_cast<int>(all ? n_ * m_ : cols),
                starts(W_ + begin, static_cast<std::ptrdiff_t>(n_ * m_), first, systems).data(),
                static_cast<std::ptrdiff_t>(m_), real & ~failed);
        }
        if (!fine) suspect_ = true;
    }

    BatchOutcome outcome() const { return {suspect_, failure_.get()}; }

 private:
    std::size_t stride() const noexcept {
        return static_cast<std::size_t>(kernels::interleaved_stride(static_cast<int>(n_)));
    }

    // The first elements of a group's systems. Lanes without a system repeat the last one.
    template <class T>
    std::array<T*, kernels::max_lanes> starts(T* data, std::ptrdiff_t stride, std::size_t first,
                                              std::size_t systems) const noexcept {
        std::array<T*, kernels::max_lanes> result{};
        for (std::size_t lane = 0; lane < lanes_; ++lane)
            result[lane] =
                data + static_cast<std::ptrdiff_t>(first + std::min(lane, systems - 1)) * stride;
        return result;
    }

    const kernels::Interleaved& kernel_;
    const Batch& batch_;
    const Ridge& ridge_;
    double* W_;
    std::size_t n_;
    std::size_t m_;
    std::size_t lanes_;
    std::size_t matrix_size_;   // doubles of an interleaved matrix
    std::size_t scratch_size_;  // and with its right-hand sides
    Buffer<double> scratch_;
    std::atomic<bool> suspect_ = false;
    FirstFailure failure_;
};

}  // namespace

BatchOutcome solve_batch(const Batch& batch, const Ridge& ridge, double* W, int n_threads) {
    check_shapes(batch.G, batch.C);
    const std::size_t n = batch.G.rows, m = batch.C.cols;
    if (n > max_interleaved) {
        FirstFailure failure;
        solve_one_by_one(batch, ridge, W, n_threads, failure);
        return {false, failure.get()};
    }
    const auto multiply_adds =
        static_cast<double>(batch.count) * static_cast<double>(n * n * (n + 6 * m)) / 6;
    const std::size_t piece_systems =
        groups_of_piece * static_cast<std::size_t>(table().interleaved.lanes);
    const std::size_t pieces = (batch.count + piece_systems - 1) / piece_systems;
    n_threads =
        static_cast<int>(threads_for_items(threads_for_work(n_threads, multiply_adds), pieces));
    Groups groups(batch, ridge, W, n_threads);
    parallel_for(n_threads, pieces, [&](std::size_t item, int thread) noexcept {
        const std::size_t end = std::min((item + 1) * groups_of_piece, groups.count());
        for (std::size_t group = item * groups_of_piece; group < end; ++group)
            groups.solve(group, thread);
    });
    return groups.outcome();
}

void solve_batched(const ConstMatrix& G, std::ptrdiff_t G_stride, const ConstMatrix& C,
                   std::ptrdiff_t C_stride, std::size_t count, const Ridge& ridge, double* W,
                   int n_threads) {
    const BatchOutcome outcome =
        solve_batch({G, G_stride, C, C_stride, count}, ridge, W, n_threads);
    if (outcome.failure) throw outcome.failure->error();
}

}  // namespace bpls
