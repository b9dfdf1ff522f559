// Gram matrices and cross products: the left and right sides of the normal equations of one layer.
#pragma once

#include <optional>
#include <span>

#include "bpls/export.h"
#include "bpls/matrix.hpp"

namespace bpls {

struct GramOptions {
    bool bias = false;                           // as if A had a last column of ones
    std::optional<ConstMatrix> sample_weight{};  // one column of weights >= 0, float32 or float64
    int n_threads = 0;                           // 0: default_threads()
    std::span<const double> scale{};  // empty, or a factor for each column of A, not for the bias
    bool center = false;              // as if every column of A had its weighted mean subtracted
};

// With A as the options make it, (A - mean) * scale and a column of ones:
// G = AᵀWA, (n + bias)² doubles in row-major order, full and exactly symmetric. With B also C = AᵀWB in the same pass
// over A, (n + bias) x B.cols. Both are overwritten and may not overlap the inputs.
//
// uint8 A without weights gives the exact integers. float32 A is accumulated in float32 over 256 rows at a time and in
// float64 across these blocks. C runs in float32 if A and B both fit in it without loss, in float64 otherwise. The bits
// do not depend on n_threads where all values are finite.
// Scaling and centring act on the finished float64 sums and so cost no time: the error of a centred result is relative
// to the sums that are not centred. Where the weights sum to zero, there is no mean to subtract.
//
// Non-finite input shows as a non-finite value on G's diagonal or in C's column; nothing else is checked.
// Throws std::invalid_argument where A has no columns, the row counts or the number of factors differ, std::bad_alloc where scratch memory is short.
BPLS_API void gram(const ConstMatrix& A, const std::optional<ConstMatrix>& B,
                   const GramOptions& options, double* G, double* C);

// C = AᵀWD alone, (n + bias) x D.cols doubles. The same rules; it does not centre (std::invalid_argument).
BPLS_API void cross(const ConstMatrix& A, const ConstMatrix& D, const GramOptions& options,
                    double* C);

}  // namespace bpls
