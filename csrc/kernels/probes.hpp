// The probes that measure what a CPU allows at most. The benchmarks state their results relative to them; the library does
// not contain them.
#pragma once

#include <cstddef>

#include "kernels/table.hpp"

namespace bpls::kernels {

// Does nothing but multiply-adds of one arithmetic, in registers, `rounds` times over. Returns the number of operations; a
// multiplication and an addition are two.
using Peak = double (*)(std::size_t rounds) noexcept;

// The number of values that ReadAll reads is a multiple of this: eight vectors of the widest level.
inline constexpr std::size_t read_multiple = 128;

// Reads values as fast as memory delivers them.
using ReadAll = void (*)(const float* values, std::size_t count) noexcept;

// The probes of one level.
struct Probes {
    ByDType<Peak> peak;  // of the arithmetic in which products of this type run
    ReadAll read_all;
};

}  // namespace bpls::kernels
