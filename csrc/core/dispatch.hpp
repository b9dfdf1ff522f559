// The kernels of the level in use.
#pragma once

#include "kernels/table.hpp"

namespace bpls {

// Picked on the first call; throws as active_level() does.
const kernels::Table& table();

}  // namespace bpls
