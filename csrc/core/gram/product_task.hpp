// What the passes over the rows compute: one product of two sets of columns per task.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/panels.hpp"

namespace bpls::gram_detail {

using Runs = std::vector<Range>;  // of columns, in increasing order

// The columns of one side of a product. The first `of_A` are those of A, of which zero ones can be left out.
struct Side {
    Columns columns;
    std::size_t of_A;

    // Sets `runs` to the side's columns, given the nonzero ones of A. It has room for one run more than `nonzero`, so that
    // nothing is allocated.
    void find_runs(const Runs& nonzero, Runs& runs) const noexcept {
        runs.clear();
        if (of_A > 0) runs = nonzero;
        if (of_A < columns.width()) runs.push_back({of_A, columns.width()});
    }
};

// leftᵀ W right. The first `symmetric` columns of `right` are those of `left`: only the upper triangle of their product is
// computed, into G; the rest goes to C. `column_sums`, where not null, receives 1ᵀ W right. With `transposed` the sides are
// swapped: rightᵀ W left goes to C and 1ᵀ W left to `column_sums`.
struct ProductTask {
    const kernels::Product& product;
    Side left;
    Side right;
    std::size_t symmetric;
    std::optional<ConstMatrix> weight;
    double* G;
    std::size_t G_stride;
    double* C;
    std::size_t C_stride;
    bool transposed;
    double* column_sums;
    bool in_place;  // the right side is read in place, without packing
};

}  // namespace bpls::gram_detail
