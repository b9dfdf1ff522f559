// The Gram matrix of bytes with few columns: exact integer products of rows in place.
#pragma once

#include "core/gram/direct.hpp"

namespace bpls::gram_detail {

// Whether the active level has a narrow product of bytes. Without it, narrow bytes are converted to float32.
bool has_narrow_bytes() noexcept;

// The most columns of a task of bytes for a narrow product, with its column of ones if it has one.
std::size_t most_narrow_bytes(const DirectProduct& task) noexcept;

// Computes the Gram matrix of bytes with at most most_narrow_bytes() columns, where the level has such a product. All sums are exact.
void multiply_narrow_bytes(const DirectProduct& task, int n_threads);

}  // namespace bpls::gram_detail
