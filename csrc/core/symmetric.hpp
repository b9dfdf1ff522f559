// The test that a matrix is symmetric, for callers that check their arguments.
#pragma once

#include "bpls/matrix.hpp"

namespace bpls {

// Whether the two triangles of a square matrix of finite floats differ nowhere by more than `tolerance` times its largest
// magnitude.
bool is_symmetric(const ConstMatrix& matrix, double tolerance, int n_threads);

}  // namespace bpls
