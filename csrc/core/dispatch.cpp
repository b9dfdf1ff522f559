// Which levels there are, and which one is in use.
#include "core/dispatch.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

#include "bpls/config.hpp"
#include "core/cpu.hpp"
#include "core/environment.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::string_view isa_names[] = {"generic", "avx2", "avx512", "avx512vnni"};

std::string joined(bool supported_only) {
    std::string names;
    for (const Level& level : levels())
        if (level.supported || !supported_only)
            names += (names.empty() ? "" : ", ") + std::string(level.name);
    return names;
}

const Level& pick() {
    const std::string wish = environment("BPLS_ISA");
    if (wish.empty()) {
        const Level* best = &levels().front();
        for (const Level& level : levels())
            if (level.supported) best = &level;
        return *best;
    }
    for (const Level& level : levels())
        if (wish == level.name) {
            if (level.supported) return level;
            throw std::invalid_argument("BPLS_ISA=" + wish +
                                        " is not supported by this CPU; it runs " + joined(true));
        }
    for (const std::string_view name : isa_names)
        if (wish == name)
            throw std::invalid_argument("BPLS_ISA=" + wish +
                                        " is not part of this build, which has " + joined(false));
    throw std::invalid_argument(
        "BPLS_ISA=" + wish + " is not an instruction-set level; expected one of " + joined(true));
}

const kernels::Table& table_of([[maybe_unused]] Isa isa) noexcept {
#if defined(BPLS_X86)
    switch (isa) {
        case Isa::avx2:
            return kernels::avx2;
        case Isa::avx512:
            return kernels::avx512;
        case Isa::avx512vnni:
            return kernels::avx512vnni;
        case Isa::generic:
            break;
    }
#endif
    return kernels::generic;
}

}  // namespace

const char* version() noexcept { return BPLS_VERSION; }
const char* compiler() noexcept { return BPLS_COMPILER; }
const char* build_flags() noexcept { return BPLS_BUILD_FLAGS; }

const std::vector<Level>& levels() {
    static const std::vector<Level> all = {
        {Isa::generic, "generic", BPLS_FLAGS_GENERIC, true},
#if defined(BPLS_X86)
        {Isa::avx2, "avx2", BPLS_FLAGS_AVX2, cpu_supports(Isa::avx2)},
        {Isa::avx512, "avx512", BPLS_FLAGS_AVX512, cpu_supports(Isa::avx512)},
        {Isa::avx512vnni, "avx512vnni", BPLS_FLAGS_AVX512VNNI, cpu_supports(Isa::avx512vnni)},
#endif
    };
    return all;
}

const Level& active_level() {
    static const Level& level = [&]() -> const Level& {
        default_threads();  // reads the environment too
        return pick();
    }();
    return level;
}

const kernels::Table& table() {
    static const kernels::Table& active = table_of(active_level().isa);
    return active;
}

}  // namespace bpls
