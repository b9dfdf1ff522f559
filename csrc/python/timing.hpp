// The timing loop of the bindings that the benchmarks call.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>

namespace bpls::python {

// Returns the seconds per call, over `repeats` calls in a row.
template <class F>
double seconds_per_call(int repeats, F&& call) {
    if (repeats < 1) throw pybind11::value_error("repeats is below 1");
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats; ++i) call();
    return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

}  // namespace bpls::python
