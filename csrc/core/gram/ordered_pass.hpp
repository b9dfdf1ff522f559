// A pass over the rows on several threads. Each thread sums a row block into its own memory; the sums are added to the
// result in the order of the row blocks, so the bits do not depend on the number of threads.
#pragma once

#include <vector>

#include "core/gram/product_task.hpp"

namespace bpls::gram_detail {

// Adds the products of all tasks to their results. The sides of a task are columns of A and of matrices with as many rows.
void ordered_pass(const ConstMatrix& A, const std::vector<ProductTask>& tasks, int n_threads);

}  // namespace bpls::gram_detail
