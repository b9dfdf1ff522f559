// Gathering rows of a matrix.
#pragma once

#include <cstdint>
#include <span>

#include "bpls/export.h"
#include "bpls/matrix.hpp"

namespace bpls {

// Copies rows of X, whose elements are contiguous, to `out`, one after another. Throws std::invalid_argument for any other X,
// or for a row that X does not have.
BPLS_API void take_rows(const ConstMatrix& X, std::span<const std::int64_t> rows, int n_threads,
                        unsigned char* out);

}  // namespace bpls
