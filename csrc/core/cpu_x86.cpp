// Asks CPUID for instructions, and XCR0 for the registers that the operating system saves: a CPU may have AVX-512 under an
// operating system that does not support it.
#include <cstdint>

#include "core/cpu.hpp"

#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif

namespace bpls {
namespace {

struct Registers {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(std::uint32_t leaf) noexcept {
    Registers r;
#if defined(_MSC_VER)
    int raw[4];
    __cpuid(raw, 0);
    if (static_cast<std::uint32_t>(raw[0]) < leaf) return r;
    __cpuidex(raw, static_cast<int>(leaf), 0);
    r = {static_cast<std::uint32_t>(raw[0]), static_cast<std::uint32_t>(raw[1]),
         static_cast<std::uint32_t>(raw[2]), static_cast<std::uint32_t>(raw[3])};
#else
    __get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
#endif
    return r;
}

std::uint64_t xcr0() noexcept {
#if defined(_MSC_VER)
    return _xgetbv(0);
#else
    std::uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (std::uint64_t(high) << 32) | low;
#endif
}

constexpr bool has(std::uint64_t word, std::uint64_t bits) noexcept {
    return (word & bits) == bits;
}

constexpr std::uint64_t bit(int position) noexcept { return std::uint64_t(1) << position; }

}  // namespace

bool cpu_supports(Isa isa) noexcept {
    if (isa == Isa::generic) return true;
    const Registers base = cpuid(1), extended = cpuid(7);
    constexpr std::uint64_t osxsave = bit(27), avx = bit(28), fma = bit(12);
    if (!has(base.ecx, osxsave | avx | fma)) return false;  // xgetbv needs osxsave
    constexpr std::uint64_t ymm_state = bit(1) | bit(2);
    constexpr std::uint64_t zmm_state = ymm_state | bit(5) | bit(6) | bit(7);
    constexpr std::uint64_t avx2 = bit(5);
    constexpr std::uint64_t avx512_f_dq_bw_vl = bit(16) | bit(17) | bit(30) | bit(31);
    constexpr std::uint64_t avx512_vnni = bit(11);  // in ecx
    switch (isa) {
        case Isa::avx2:
            return has(xcr0(), ymm_state) && has(extended.ebx, avx2);
        case Isa::avx512:
            return has(xcr0(), zmm_state) && has(extended.ebx, avx512_f_dq_bw_vl);
        case Isa::avx512vnni:
            return has(extended.ecx, avx512_vnni);
        default:
            return false;  // a level of another architecture
    }
}

}  // namespace bpls
