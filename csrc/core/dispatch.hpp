// The kernels of the level in use.
#pragma once

#include "kernels/table.hpp"

namespace bpls {

// Returns the kernel table of active_level(), and throws what it throws.
const kernels::Table& table();

}  // namespace bpls
