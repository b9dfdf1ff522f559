// The test that a matrix is symmetric, for callers that check their arguments.
#pragma once

#include "bpls/matrix.hpp"

namespace bpls {

// Whether a square matrix of floats is finite and its two triangles differ nowhere by more than `tolerance` times its
// largest magnitude.
bool is_symmetric(const ConstMatrix& matrix, double tolerance, int n_threads);

}  // namespace bpls
