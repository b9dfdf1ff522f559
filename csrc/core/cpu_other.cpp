// Architectures that have only the generic level.
#include "core/cpu.hpp"

namespace bpls {

bool cpu_supports(Isa isa) noexcept { return isa == Isa::generic; }

}  // namespace bpls
