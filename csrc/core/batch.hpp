// Batches of systems: the parts of solve_batched(), and the limits that callers check arguments against.
#pragma once

#include <cstddef>
#include <limits>
#include <mutex>
#include <optional>

#include "bpls/solve.hpp"

namespace bpls {

// `count` systems of one size; G and C are the first, the others follow at these strides, in bytes.
struct Batch {
    ConstMatrix G;
    std::ptrdiff_t G_stride;
    ConstMatrix C;
    std::ptrdiff_t C_stride;
    std::size_t count;

    // The matrices of system s.
    ConstMatrix G_of(std::size_t s) const noexcept { return moved(G, s, G_stride); }
    ConstMatrix C_of(std::size_t s) const noexcept { return moved(C, s, C_stride); }

 private:
    static ConstMatrix moved(ConstMatrix matrix, std::size_t s, std::ptrdiff_t stride) noexcept {
        matrix.data += static_cast<std::ptrdiff_t>(s) * stride;
        return matrix;
    }
};

// A factorization that failed, in plain numbers: several threads can record it without allocating.
struct FailedPivot {
    std::size_t pivot;
    std::size_t size;
    double value;
    double ridge;
    std::ptrdiff_t system = -1;

    NotPositiveDefinite error() const { return {pivot, size, value, ridge, system}; }
};

struct BatchOutcome {
    // Some value may not be finite, or some G not symmetric: the caller checks that before it reports a failure.
    bool suspect = false;
    std::optional<FailedPivot> failure;  // of the first system that failed
};

// Up to this many unknowns systems are solved side by side, one in each lane of a vector, and checked on the way; larger
// ones are solved one by one and never suspect.
inline constexpr std::size_t max_interleaved = 64;

// The largest difference of G's triangles, relative to its largest magnitude, that counts as symmetric: rounding in float32
// may cause it.
inline constexpr double symmetry_tolerance = 1e-6;

// A pivot of n unknowns that is smaller than this, relative to its entry on the diagonal, is lost in the rounding error of
// its sums.
inline double pivot_noise(std::size_t n) noexcept {
    return static_cast<double>(n) * std::numeric_limits<double>::epsilon();
}

// The first system of the batch that failed, whichever thread found it first.
class FirstFailure {
 public:
    void record(const FailedPivot& failed) noexcept {
        const std::lock_guard lock(mutex_);
        if (!first_ || failed.system < first_->system) first_ = failed;
    }
    const std::optional<FailedPivot>& get() const noexcept { return first_; }

 private:
    std::mutex mutex_;
    std::optional<FailedPivot> first_;
};

// Throws std::invalid_argument unless G is square, not empty, and has as many rows as C.
void check_shapes(const ConstMatrix& G, const ConstMatrix& C);

// As solve_batched(), but reports failures instead of throwing them.
BatchOutcome solve_batch(const Batch& batch, const Ridge& ridge, double* W, int n_threads);

// Solves systems of any size, each on one thread.
void solve_one_by_one(const Batch& batch, const Ridge& ridge, double* W, int n_threads,
                      FirstFailure& failure);

}  // namespace bpls
