// The check that a matrix is symmetric, for callers that check their arguments.
#pragma once

#include "bpls/matrix.hpp"

namespace bpls {

// Returns whether a square matrix of floats is finite and its triangles differ by at most `tolerance` times its largest
// magnitude.
bool is_symmetric(const ConstMatrix& matrix, double tolerance, int n_threads);

}  // namespace bpls
