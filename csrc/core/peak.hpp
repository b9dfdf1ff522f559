// The peak rates of this machine, for the benchmarks.
#pragma once

#include "bpls/matrix.hpp"

namespace bpls {

// Operations per second of the arithmetic in which products of this type run (bytes: the exact one), while every thread does
// nothing but multiply-adds in registers for about `seconds`. A multiplication and an addition are two.
double peak(DType dtype, int n_threads, double seconds);

// Bytes per second at which one thread reads a block of this size over and over, for about `seconds`: the rate of the
// smallest cache that holds the block.
double read_rate(std::size_t bytes, double seconds);

}  // namespace bpls
