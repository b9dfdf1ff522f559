// Cross products of two matrices whose rows are read in place: nothing is packed that threads would have to share.
#pragma once

#include "core/gram/direct.hpp"

namespace bpls::gram_detail {

// Computes a product that is not symmetric and has no weights, in the arithmetic of float or double. Both sides are one matrix of
// that type, readable in place; they have at least as many columns as a tile and a vector. The bits do not depend on the number
// of threads.
void multiply_in_place(const DirectProduct& task, int n_threads);

}  // namespace bpls::gram_detail
