// Fetches a cache line ahead of its use, where the compiler can say so.
#pragma once

namespace bpls::kernels {
namespace {

inline void prefetch([[maybe_unused]] const void* line) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(line);
#endif
}

}  // namespace
}  // namespace bpls::kernels
