// How many threads a call uses: from the caller, the environment and the CPUs of the process.
#include "core/threads.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/cpus.hpp"
#include "core/environment.hpp"

namespace bpls {
namespace {

// The argument of set_default_threads(), or 0.
std::atomic<int> chosen = 0;

// A number of threads in a text, or 0 if it is none.
int parsed_threads(const std::string& text) noexcept {
    int number = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    const bool valid = parsed.ec == std::errc() && parsed.ptr == end;
    return valid && number >= 1 && number <= max_threads ? number : 0;
}

// What the environment asks for, or 0. OMP_NUM_THREADS is what people and schedulers limit all libraries with; its first number
// counts, and a value that is none is left to those it is meant for.
int threads_of_environment() {
    const std::string own = environment("BPLS_NUM_THREADS");
    if (own.empty()) {
        const std::string shared = environment("OMP_NUM_THREADS");
        return parsed_threads(shared.substr(0, shared.find(',')));
    }
    const int number = parsed_threads(own);
    if (number == 0)
        throw std::invalid_argument("BPLS_NUM_THREADS=" + own +
                                    " is not a number of threads; expected an integer from 1 to " +
                                    std::to_string(max_threads));
    return number;
}

}  // namespace

int default_threads() {
    static const int requested = threads_of_environment();
    if (const int set = chosen.load(std::memory_order_relaxed); set > 0) return set;
    return requested > 0 ? requested : std::min(usable_cpus(), max_threads);
}

void set_default_threads(int n_threads) {
    if (n_threads < 0 || n_threads > max_threads)
        throw std::invalid_argument("n_threads is " + std::to_string(n_threads) +
                                    "; expected an integer from 0 to " +
                                    std::to_string(max_threads));
    chosen = n_threads;
}

int threads_for_call(int n_threads) {
    return n_threads <= 0 ? default_threads() : std::min(n_threads, max_threads);
}

int threads_for_work(int n_threads, double multiply_adds) {
    return multiply_adds < parallel_threshold ? 1 : threads_for_call(n_threads);
}

}  // namespace bpls
