// How many threads a call uses, and the loop that shares items among them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "bpls/config.hpp"
#include "core/buffer.hpp"
#include "core/thread_pool.hpp"

namespace bpls {

// The number of threads of a call: n_threads, at most max_threads, or default_threads() if it is not positive.
int threads_for_call(int n_threads);

// Below this many multiply-adds a second thread costs more than it saves.
inline constexpr double parallel_threshold = 1 << 18;

// As threads_for_call(), but one for fewer multiply-adds than parallel_threshold.
int threads_for_work(int n_threads, double multiply_adds);

// Ranges of items that threads prefer, at most; with more threads some share one.
inline constexpr int most_ranges = 16;

// No more threads than there are items.
inline std::size_t threads_for_items(int n_threads, std::size_t items) noexcept {
    return std::min(static_cast<std::size_t>(n_threads), items);
}

// Calls body(item, thread) for every item in [0, items), thread in [0, n_threads). Items are started in increasing
// order, so an item may wait for a lower one. The body must not throw.
template <class F>
void parallel_for(int n_threads, std::size_t items, F&& body) noexcept {
    if (n_threads <= 1 || items <= 1) {
        for (std::size_t item = 0; item < items; ++item) body(item, 0);
        return;
    }
    run_on_pool(
        static_cast<int>(threads_for_items(n_threads, items)), items,
        [](void* context, std::size_t item, int thread) noexcept {
            (*static_cast<std::remove_reference_t<F>*>(context))(item, thread);
        },
        &body);
}

// As parallel_for(), in another order: every thread first takes items of a range of its own, then what others have left.
// Calls of one shape that follow each other usually find the memory of an item in the cache of the thread that had it before.
template <class F>
void parallel_for_near(int n_threads, std::size_t items, F&& body) noexcept {
    if (n_threads <= 1 || items <= 1) return parallel_for(n_threads, items, body);
    const std::size_t ranges = threads_for_items(std::min(n_threads, most_ranges), items);
    struct alignas(cache_line) Items {
        std::atomic<std::size_t> next;
        std::size_t end;
    } range[most_ranges];
    for (std::size_t r = 0; r < ranges; ++r) {
        range[r].next.store(r * items / ranges, std::memory_order_relaxed);
        range[r].end = (r + 1) * items / ranges;
    }
    parallel_for(n_threads, items, [&](std::size_t, int thread) noexcept {
        for (std::size_t r = static_cast<std::size_t>(thread) % ranges;; r = (r + 1) % ranges) {
            // Every call of this body finds an item: there are as many as calls.
            const std::size_t item = range[r].next.fetch_add(1, std::memory_order_relaxed);
            if (item < range[r].end) return body(item, thread);
        }
    });
}

// Makes a Worker(arguments...) for every thread that shares the items: what a thread needs for itself, such as scratch
// memory.
template <class Worker, class... Arguments>
std::vector<Worker> make_workers(int n_threads, std::size_t items, const Arguments&... arguments) {
    const std::size_t count = threads_for_items(n_threads, items);
    std::vector<Worker> workers;
    workers.reserve(count);
    for (std::size_t thread = 0; thread < count; ++thread) workers.emplace_back(arguments...);
    return workers;
}

// Calls body(item, worker) for every item, each thread with the worker of its own.
template <class Worker, class F>
void parallel_for(std::vector<Worker>& workers, std::size_t items, F&& body) {
    parallel_for(static_cast<int>(workers.size()), items,
                 [&](std::size_t item, int thread) noexcept {
                     body(item, workers[static_cast<std::size_t>(thread)]);
                 });
}

}  // namespace bpls
