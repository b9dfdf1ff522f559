// Gathering rows of a matrix, and clipping their columns.
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

// Copies X to `out`, row major, and moves every value of column j to the nearest number from lower[j] to upper[j]. Returns
// whether all values of X are finite; NaN stays. T is float for uint8 and float32, double for float64; another T throws
// std::invalid_argument.
template <class T>
BPLS_API bool clip_rows(const ConstMatrix& X, const T* lower, const T* upper, int n_threads,
                        T* out);

}  // namespace bpls
