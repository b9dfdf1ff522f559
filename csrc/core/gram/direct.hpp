// Products whose rows are packed all at once: tiles are summed over all rows and moved to the result, and to its other
// triangle, while they are in the first cache. The result is neither cleared before nor mirrored after.
#pragma once

#include <cstddef>
#include <optional>

#include "core/gram/choose.hpp"
#include "core/panels.hpp"

namespace bpls::gram_detail {

// leftᵀ W right. The first `symmetric` columns of `right` are those of `left`: their product goes to G, whose rows are
// `symmetric` long; the rest goes to C. With `transposed` nothing is symmetric, and rightᵀ W left goes to C.
struct DirectProduct {
    const kernels::Product& product;
    Columns left;
    Columns right;
    std::size_t symmetric;
    std::size_t rows;
    std::optional<ConstMatrix> weight;
    double* G;
    double* C;
    std::size_t C_stride;
    bool transposed;
};

// Whether the left side has panels of its own where all rows are packed at once.
bool has_left(const DirectProduct& task) noexcept;

// What the choice of the way depends on.
ProductShape shape_of(const DirectProduct& task) noexcept;

// Computes the product. The bits do not depend on the number of threads: a sum belongs to one of them.
void multiply_directly(const DirectProduct& task, int n_threads);

}  // namespace bpls::gram_detail
