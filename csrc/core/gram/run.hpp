// Passes over the rows on several threads. A thread sums a row block into memory of its own and adds that to the result when
// its turn has come; the bits do not depend on the number of threads.
#pragma once

#include <vector>

#include "core/gram/product_task.hpp"

namespace bpls::gram_detail {

// Adds the products of all tasks, whose sides are columns of A and of matrices with as many rows, to their results.
void run(const ConstMatrix& A, const std::vector<ProductTask>& tasks, int n_threads);

}  // namespace bpls::gram_detail
