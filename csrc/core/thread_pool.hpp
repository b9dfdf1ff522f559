// The threads of the library. Workers are started when a call first needs them, sleep when there is nothing to do, and help
// whoever calls; the caller works itself and never waits for a worker that has not begun.
#pragma once

#include <cstddef>

namespace bpls {

using Body = void (*)(void* context, std::size_t item, int thread) noexcept;

// Calls body(context, item, thread) for every item in [0, items), on this thread and at most n_threads - 1 workers. Items are
// started in increasing order. A worker helps only while fewer than n_threads threads run in all calls together, and gives way
// after an item when more calls come. If no thread can be started the caller does all the work.
void run_on_pool(int n_threads, std::size_t items, Body body, void* context) noexcept;

}  // namespace bpls
