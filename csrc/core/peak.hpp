// The peak of this machine, for the benchmarks.
#pragma once

#include "bpls/matrix.hpp"

namespace bpls {

// Operations per second of the arithmetic in which products of this type run (uint8: the exact one), with every thread
// doing nothing but multiply-adds in registers for about `seconds`. A multiplication and an addition are two.
double peak(DType dtype, int n_threads, double seconds);

// Bytes per second that one thread reads from so many bytes over and over, for about `seconds`: the rate of the smallest
// cache that holds them.
double read_rate(std::size_t bytes, double seconds);

}  // namespace bpls
