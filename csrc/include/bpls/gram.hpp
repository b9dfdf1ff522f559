// Gram matrices and cross products: the left and right sides of the normal equations of one layer.
#pragma once

#include <optional>

#include "bpls/matrix.hpp"

namespace bpls {

struct GramOptions {
    bool bias = false;                           // as if A had a last column of ones
    std::optional<ConstMatrix> sample_weight{};  // one column of weights >= 0, float32 or float64
    int n_threads = 0;                           // 0: default_threads()
};

// G = AᵀWA, (n + bias)² doubles in row-major order, full and exactly symmetric. With B also C = AᵀWB in the same pass
// over A, (n + bias) x B.cols. Both are overwritten and may not overlap the inputs.
//
// uint8 A without weights gives the exact integers. float32 A is accumulated in float32 over 256 rows at a time and in
// float64 across these blocks. C runs in float32 if A and B both fit in it without loss, in float64 otherwise. The bits
// do not depend on n_threads.
//
// Non-finite input shows as a non-finite value on G's diagonal or in C's column; nothing else is checked.
// Throws std::invalid_argument where the row counts differ, std::bad_alloc where scratch memory is short.
void gram(const ConstMatrix& A, const std::optional<ConstMatrix>& B, const GramOptions& options,
          double* G, double* C);

// C = AᵀWD alone, (n + bias) x D.cols doubles. The same rules.
void cross(const ConstMatrix& A, const ConstMatrix& D, const GramOptions& options, double* C);

}  // namespace bpls
