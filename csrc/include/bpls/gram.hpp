// Gram matrices and cross products: the left and right sides of the normal equations of one layer.
#pragma once

#include <optional>
#include <span>

#include "bpls/export.h"
#include "bpls/matrix.hpp"

namespace bpls {

struct GramOptions {
    bool bias = false;                           // A has a last column of ones
    std::optional<ConstMatrix> sample_weight{};  // one column of weights >= 0, float32 or float64
    int n_threads = 0;                           // 0: default_threads()
    std::span<const double> scale{};  // empty, or a factor for each column of A, not for the bias
    bool center = false;              // subtract its weighted mean from every column of A
};

// Computes G = AᵀWA, (n + bias)² doubles in row-major order, full and exactly symmetric. With B, also computes C = AᵀWB,
// (n + bias) x B.cols, in the same pass over A. A stands for the matrix after the options: (A - mean) * scale and a column of
// ones. Both results are overwritten and must not overlap the inputs.
//
// For uint8 A without weights the result is exact. float32 A is accumulated in float32 over 256 rows at a time and in float64
// across these blocks. C runs in float32 if float32 represents both A and B exactly, in float64 otherwise. If all values are
// finite, the bits do not depend on n_threads.
// Scaling and centring are applied to the finished float64 sums and so cost no time: the error of a centred result is
// relative to the sums before centring. If the weights sum to zero, no mean is subtracted.
//
// Non-finite input makes a value on G's diagonal or in C's column non-finite; nothing else is checked.
// Throws std::invalid_argument if A has no columns or if the numbers of rows or factors differ, and std::bad_alloc.
BPLS_API void gram(const ConstMatrix& A, const std::optional<ConstMatrix>& B,
                   const GramOptions& options, double* G, double* C);

// Computes only C = AᵀWD, (n + bias) x D.cols doubles, by the same rules. It cannot centre and throws
// std::invalid_argument if asked to.
BPLS_API void cross(const ConstMatrix& A, const ConstMatrix& D, const GramOptions& options,
                    double* C);

}  // namespace bpls
