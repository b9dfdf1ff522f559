// What the CPU and its operating system can run. One implementation per architecture, chosen by the build.
#pragma once

#include "bpls/isa.hpp"

namespace bpls {

// Whether the CPU has what a level needs beyond the level it falls back to.
bool cpu_supports(Isa isa) noexcept;

}  // namespace bpls
