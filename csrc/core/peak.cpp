// Runs the probes of the level in use. The library does not contain this file: the extension does.
#include "core/peak.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "bpls/config.hpp"
#include "core/buffer.hpp"
#include "core/threads.hpp"
#include "kernels/levels.hpp"

namespace bpls {
namespace {

const kernels::Probes& probes() {
    return *kernels::built_probes[&active_level() - levels().data()];
}

}  // namespace

double peak(DType dtype, int n_threads, double seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t rounds =
        10'000;  // tens of microseconds between two readings of the clock
    const kernels::Peak kernel = probes().peak[dtype];
    n_threads = threads_for_call(n_threads);
    std::vector<double> operations(static_cast<std::size_t>(n_threads));
    // The threads may sleep; the clock starts when they are awake.
    parallel_for(n_threads, operations.size(), [&](std::size_t, int) noexcept { kernel(rounds); });
    const Clock::time_point start = Clock::now();
    const auto elapsed = [start]() noexcept {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    parallel_for(n_threads, operations.size(), [&](std::size_t item, int) noexcept {
        double done = 0;
        do done += kernel(rounds);
        while (elapsed() < seconds);
        operations[item] = done;
    });
    const double taken = elapsed();
    double total = 0;
    for (const double done : operations) total += done;
    return total / taken;
}

double read_rate(std::size_t bytes, double seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr int reads = 16;  // between two readings of the clock
    const std::size_t count = round_up(bytes / sizeof(float), kernels::read_multiple);
    const kernels::ReadAll kernel = probes().read_all;
    Buffer<float> values(count);
    std::fill_n(values.data(), count, 0.0f);
    double done = 0, taken = 0;
    const Clock::time_point start = Clock::now();
    do {
        for (int again = 0; again < reads; ++again) kernel(values.data(), count);
        done += reads * static_cast<double>(count * sizeof(float));
        taken = std::chrono::duration<double>(Clock::now() - start).count();
    } while (taken < seconds);
    return done / taken;
}

}  // namespace bpls
