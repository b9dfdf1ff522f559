// The levels of this build, and the choice of the one in use.
#include "core/dispatch.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "bpls/config.hpp"
#include "core/cpu.hpp"
#include "core/environment.hpp"
#include "core/threads.hpp"
#include "kernels/levels.hpp"

namespace bpls {
namespace {

using kernels::built_levels;
using kernels::BuiltLevel;

const BuiltLevel& built_level(Isa isa) noexcept {
    return *std::ranges::find(built_levels, isa, &BuiltLevel::isa);
}

// The number of levels that this one can fall back to, one after another.
int rank(Isa isa) noexcept {
    const Isa fallback = built_level(isa).fallback;
    return fallback == isa ? 0 : 1 + rank(fallback);
}

bool supported(Isa isa) noexcept {
    const Isa fallback = built_level(isa).fallback;
    return cpu_supports(isa) && (fallback == isa || supported(fallback));
}

std::string joined(bool supported_only) {
    std::string names;
    for (const Level& level : levels())
        if (level.supported || !supported_only) (names += names.empty() ? "" : ", ") += level.name;
    return names;
}

const Level& pick() {
    const std::string wish = environment("BPLS_ISA");
    if (wish.empty()) {
        const auto worth = [](const Level& level) {
            return level.supported ? rank(level.isa) : -1;
        };
        return *std::ranges::max_element(levels(), {}, worth);
    }
    for (const Level& level : levels())
        if (wish == level.name) {
            if (level.supported) return level;
            throw std::invalid_argument("BPLS_ISA=" + wish +
                                        " is not supported by this CPU; it runs " + joined(true));
        }
    if (std::ranges::find(kernels::level_names, wish) != std::end(kernels::level_names))
        throw std::invalid_argument("BPLS_ISA=" + wish + " is not part of this build, which has " +
                                    joined(false));
    throw std::invalid_argument(
        "BPLS_ISA=" + wish + " is not an instruction-set level; expected one of " + joined(true));
}

}  // namespace

const char* version() noexcept { return BPLS_VERSION; }
const char* compiler() noexcept { return BPLS_COMPILER; }
const char* build_flags() noexcept { return BPLS_BUILD_FLAGS; }

const std::vector<Level>& levels() {
    static const std::vector<Level> all = [] {
        std::vector<Level> found;
        for (const BuiltLevel& level : built_levels)
            found.push_back(
                {level.isa, level.name, level.flags, supported(level.isa), level.fallback});
        return found;
    }();
    return all;
}

const Level& active_level() {
    static const Level& level = [&]() -> const Level& {
        default_threads();  // throws for a BPLS_NUM_THREADS that is not a number of threads
        return pick();
    }();
    return level;
}

const kernels::Table& table() {
    static const kernels::Table& active = *built_level(active_level().isa).table;
    return active;
}

}  // namespace bpls
