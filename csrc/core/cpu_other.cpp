// Architectures with no level of their own: the generic one.
#include "core/cpu.hpp"

namespace bpls {

bool cpu_supports(Isa isa) noexcept { return isa == Isa::generic; }

}  // namespace bpls
