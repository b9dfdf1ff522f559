// How many threads a call uses, from the environment, the caller and OpenMP, and the loop that shares items among them.
#include "core/threads.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/environment.hpp"

#if defined(_OPENMP)
#include <omp.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace bpls {
namespace {

int available_threads() noexcept {
#if defined(_OPENMP)
    return omp_get_max_threads();
#else
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

// Whether this is a child of fork(): OpenMP's workers stayed in the parent, and a parallel region would wait for them.
std::atomic<bool> forked = false;

// The argument of set_default_threads(), or 0.
std::atomic<int> chosen = 0;

struct Settings {
    int requested;  // BPLS_NUM_THREADS, or 0
    int available;  // when the library was first asked

    Settings() : requested(0), available(available_threads()) {
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] { forked = true; });
#endif
        const std::string text = environment("BPLS_NUM_THREADS");
        if (text.empty()) return;
        const char* end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data(), end, requested);
        if (parsed.ec != std::errc() || parsed.ptr != end || requested < 1 ||
            requested > max_threads)
            throw std::invalid_argument(
                "BPLS_NUM_THREADS=" + text +
                " is not a number of threads; expected an integer from 1 to " +
                std::to_string(max_threads));
    }
};

const Settings& settings() {
    static const Settings read_once;
    return read_once;
}

}  // namespace

bool has_openmp() noexcept {
#if defined(_OPENMP)
    return true;
#else
    return false;
#endif
}

int default_threads() {
    const Settings& s = settings();
    if (forked) return 1;
    const int now = available_threads();
    const int set = chosen;
    const int wish = set > 0 ? set : s.requested;
    if (wish == 0) return now;
    return now < s.available ? std::min(wish, now) : wish;
}

void set_default_threads(int n_threads) {
    if (n_threads < 0 || n_threads > max_threads)
        throw std::invalid_argument("n_threads is " + std::to_string(n_threads) +
                                    "; expected an integer from 0 to " +
                                    std::to_string(max_threads));
    settings();  // records what OpenMP allows now
    chosen = n_threads;
}

int threads_for_call(int n_threads) {
    const int by_default = default_threads();
    if (n_threads <= 0 || forked) return by_default;
    return std::min(n_threads, max_threads);
}

int threads_for_work(int n_threads, double multiply_adds) {
    const int threads = threads_for_call(n_threads);
    return multiply_adds < parallel_threshold ? 1 : threads;
}

namespace detail {

void run_items(int n_threads, std::size_t items, Body body, void* context) {
    if (n_threads <= 1 || items <= 1) {
        for (std::size_t item = 0; item < items; ++item) body(context, item, 0);
        return;
    }
    const int team = static_cast<int>(threads_for_items(n_threads, items));
    std::atomic<std::size_t> next = 0;
    const auto work = [&](int thread) noexcept {
        for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;)
            body(context, item, thread);
    };
#if defined(_OPENMP)
#pragma omp parallel num_threads(team)
    work(omp_get_thread_num());
#else
    std::vector<std::thread> others;
    others.reserve(static_cast<std::size_t>(team) - 1);
    try {
        for (int thread = 1; thread < team; ++thread) others.emplace_back(work, thread);
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
        // The system has no thread left: the running ones share the items.
    }
    work(0);
    for (std::thread& other : others) other.join();
#endif
}

}  // namespace detail
}  // namespace bpls
