// Ridge-regularised normal equations by Cholesky, in float64: one system, one layer, or many small systems.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "bpls/export.h"
#include "bpls/gram.hpp"
#include "bpls/matrix.hpp"

namespace bpls {

struct Ridge {
    double eps = 1e-6;
    bool relative = true;  // eps is relative to the mean of G's diagonal
};

// The regularised matrix is not positive definite to working precision.
class BPLS_API NotPositiveDefinite : public std::runtime_error {
 public:
    NotPositiveDefinite(std::size_t pivot, std::size_t size, double value, double ridge,
                        std::ptrdiff_t system = -1);

    std::size_t pivot;      // 0-based
    double value;           // of the pivot
    double ridge;           // added to the diagonal
    std::ptrdiff_t system;  // in solve_batched(), else -1
};

// Computes W = (G + ridge·I)⁻¹ C: n x m doubles, row major, which must not overlap G or C. Only G's upper triangle is used.
// Throws NotPositiveDefinite, and leaves W untouched, if a pivot is not above n·2⁻⁵²·(G_ii + ridge). Throws std::invalid_argument if shapes do not match.
// Values are not checked: non-finite ones lead to a non-finite result or a failed pivot.
BPLS_API void solve(const ConstMatrix& G, const ConstMatrix& C, const Ridge& ridge, double* W,
                    int n_threads = 0);

// Runs gram() and solve() for one layer: W is (A.cols + bias) x B.cols.
BPLS_API void solve_layer(const ConstMatrix& A, const ConstMatrix& B, const GramOptions& options,
                          const Ridge& ridge, double* W);

// Solves `count` systems of one size. G and C describe the first; the others follow at these strides, in bytes. W has
// count x n x m doubles. Throws for the first system that fails, and leaves that part of W untouched.
BPLS_API void solve_batched(const ConstMatrix& G, std::ptrdiff_t G_stride, const ConstMatrix& C,
                            std::ptrdiff_t C_stride, std::size_t count, const Ridge& ridge,
                            double* W, int n_threads = 0);

}  // namespace bpls
