// The instruction-set levels that were built, that this CPU supports and that is in use; the number of threads of a call.
#pragma once

#include <string>
#include <vector>

#include "bpls/export.h"
#include "bpls/isa.hpp"

namespace bpls {

struct Level {
    Isa isa;
    const char* name;
    const char* flags;  // the compiler flags of its kernels, beyond the common ones
    bool supported;     // by this CPU and its operating system
    Isa fallback;       // the level to use where this one is not supported; generic has itself
};

BPLS_API const char* version() noexcept;
BPLS_API const char* compiler() noexcept;
BPLS_API const char* build_flags() noexcept;  // the build type and the flags common to all files

// The levels compiled into the library, each after the one it falls back to. Levels of other architectures are not listed.
BPLS_API const std::vector<Level>& levels();

// The level in use. It is picked once: the one named by the environment variable BPLS_ISA, or else the supported level
// with the most levels to fall back to. Throws std::invalid_argument if BPLS_ISA or BPLS_NUM_THREADS has an invalid value;
// so does the first call of every function of the library that computes.
BPLS_API const Level& active_level();

// A thread that calls kernels keeps up to 16 MiB of scratch memory for its next call, until the thread ends.

// No call takes more threads than this.
inline constexpr int max_threads = 1024;

// The number of threads of a call that does not name one (n_threads <= 0): the last argument of set_default_threads(), else
// BPLS_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs of the process, by its affinity and its control group's quota. All
// calls share the workers of one pool, also in a child of fork(): a call gets fewer where other calls use them.
BPLS_API int default_threads();

// Sets the default for all threads of the process, from the next call on: 1 to max_threads, or 0 to undo an earlier call.
// Any other number throws std::invalid_argument.
BPLS_API void set_default_threads(int n_threads);

}  // namespace bpls
