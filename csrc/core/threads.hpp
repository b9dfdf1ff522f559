// The one place where threads start: OpenMP where the build found it, std::thread otherwise (and under the thread
// sanitizer, which cannot see into OpenMP).
#pragma once

#include <cstddef>
#include <type_traits>

#include "bpls/config.hpp"

namespace bpls {

// The threads a call may use: n_threads up to max_threads, or default_threads() where it is not positive. Never more than
// one in a forked child.
int threads_for_call(int n_threads);

// Below this many multiply-adds a second thread costs more than it saves.
inline constexpr double parallel_threshold = 1 << 18;

namespace detail {
using Body = void (*)(void* context, std::size_t item, int thread) noexcept;
void run_items(int n_threads, std::size_t items, Body body, void* context);
}  // namespace detail

// Calls body(item, thread) for every item in [0, items), thread in [0, n_threads). Items are started in increasing
// order, so an item may wait for a lower one. The body must not throw.
template <class F>
void parallel_for(int n_threads, std::size_t items, F&& body) {
    detail::run_items(
        n_threads, items,
        [](void* context, std::size_t item, int thread) noexcept {
            (*static_cast<std::remove_reference_t<F>*>(context))(item, thread);
        },
        &body);
}

}  // namespace bpls
