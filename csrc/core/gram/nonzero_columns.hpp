// The columns of A that take part in a row block: those that are zero in all of its rows are left out. One column always
// stays, so that values of the other side that are not finite reach the result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/gram/product_task.hpp"

namespace bpls::gram_detail {

// Calls action(run, at) for every run within a range; `at` counts the columns of the runs before it.
template <class F>
void each_run(const Runs& runs, Range within, F&& action) {
    std::size_t at = 0;
    for (const Range& run : runs) {
        const Range part{std::max(run.begin, within.begin), std::min(run.end, within.end)};
        if (part.begin >= part.end) continue;
        action(part, at);
        at += part.size();
    }
}

inline std::size_t columns_in(const Runs& runs, Range within) noexcept {
    std::size_t count = 0;
    each_run(runs, within, [&](Range run, std::size_t) noexcept { count += run.size(); });
    return count;
}

// The columns of a task's two sides that take part in a row block.
struct NonzeroSides {
    Runs left;
    Runs right;
};

// Finds the columns of a matrix that are not zero in all of some rows.
class NonzeroColumnSearch {
 public:
    // Without `wanted` it never searches and takes all columns.
    NonzeroColumnSearch(const ConstMatrix& A, bool wanted);

    // The view is valid until the next call.
    const Runs& among(Range rows) noexcept;

    // Two runs are further apart than the smallest gap. A vector with this capacity never grows.
    std::size_t most_runs() const noexcept { return A_->cols / (smallest_gap + 1) + 1; }

 private:
    // Gaps of at most this many zero columns are not cut out: a run has a cost of its own.
    static constexpr std::size_t smallest_gap = 4;

    void merge(Range rows) noexcept;
    bool is_nonzero(std::size_t column) const noexcept;
    bool mostly_nonzero() const noexcept;
    void collect() noexcept;

    const ConstMatrix* A_;
    std::size_t row_bytes_;
    bool searches_;
    std::vector<unsigned char> bits_;  // of all values of a column, or-ed
    Runs runs_;
};

}  // namespace bpls::gram_detail
