// What the test programs share: a check that reports its place, random data, and the skip of levels this CPU lacks.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "bpls/bpls.hpp"

inline int failures = 0;

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                           \
        }                                                                         \
    } while (false)

template <class T>
std::vector<T> random_values(std::size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::vector<T> values(count);
    for (T& value : values)
        if constexpr (std::is_integral_v<T>)
            value = static_cast<T>(generator() & 255u);
        else
            value = static_cast<T>(generator()) / static_cast<T>(generator.max()) - T(0.5);
    return values;
}

inline bool close(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance; }

template <class Exception, class F>
bool throws(F&& call) {
    try {
        call();
    } catch (const Exception&) {
        return true;
    }
    return false;
}

// The exit code of a test program.
template <class F>
int run_tests(F&& tests) {
    try {
        bpls::active_level();
    } catch (const std::invalid_argument& error) {
        std::printf("skipped: %s\n", error.what());
        return 77;
    }
    tests();
    std::printf("level %s: %d check(s) failed\n", bpls::active_level().name, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
