// What was built, what this CPU can run, what is in use; and how many threads a call takes.
#pragma once

#include <string>
#include <vector>

#include "bpls/export.h"

namespace bpls {

// Instruction-set levels, each a superset of the one before it.
enum class Isa { generic, avx2, avx512, avx512vnni };

struct Level {
    Isa isa;
    const char* name;
    const char*
        flags;       // the compiler flags of this level's translation unit, beyond the common ones
    bool supported;  // by this CPU and its operating system
};

BPLS_API const char* version() noexcept;
BPLS_API const char* compiler() noexcept;
BPLS_API const char* build_flags() noexcept;  // the build type and the flags common to all files

// The levels compiled into the library, lowest first. Levels the build left out are not listed.
BPLS_API const std::vector<Level>& levels();

// The level in use. It is picked once: the highest supported one, or the one named by the environment variable
// BPLS_ISA. Throws std::invalid_argument where BPLS_ISA or BPLS_NUM_THREADS has a value that cannot be honoured; every
// function of the library that computes does the same on its first call.
BPLS_API const Level& active_level();

// A thread that calls kernels keeps up to 16 MiB of scratch memory for the next call, until it ends.

// True where the library was built with OpenMP; otherwise its threads are std::thread.
BPLS_API bool has_openmp() noexcept;

// No call takes more threads than this.
inline constexpr int max_threads = 1024;

// Threads of a call that does not name a number (n_threads <= 0): what set_default_threads() was given last, else
// BPLS_NUM_THREADS if set, else OpenMP's maximum; where
// OpenMP's maximum has been lowered since the library was first asked (by threadpoolctl, say), never more than that.
// One in a child of fork(), whatever a call names: OpenMP's threads do not survive it.
BPLS_API int default_threads();

// For all threads of the process, from the next call on: 1 to max_threads, or 0 to take back what was set before.
// Another number throws std::invalid_argument.
BPLS_API void set_default_threads(int n_threads);

}  // namespace bpls
