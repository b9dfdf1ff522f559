// What the CPU and its operating system can run. One implementation per architecture, chosen by the build.
#pragma once

#include "bpls/config.hpp"

namespace bpls {

bool cpu_supports(Isa isa) noexcept;

}  // namespace bpls
