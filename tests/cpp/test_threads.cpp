// Kernels on threads: many callers, forks at random moments, limits of the system. Whatever happens the bits are those of one
// thread, or memory has ended. Run under the thread sanitizer.
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "check.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define BPLS_POSIX
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <filesystem>
#include <fstream>
#endif

namespace {

struct Results {
    std::vector<double> G, W;
    std::vector<float> out;

    bool operator==(const Results&) const = default;
};

Results all_kernels(int n_threads, std::size_t d = 5000) {
    const std::size_t n = 70, m = 20;
    const std::vector<float> a = random_values<float>(d * n, 1), b = random_values<float>(d * m, 2);
    const auto A = bpls::row_major(a.data(), d, n), B = bpls::row_major(b.data(), d, m);
    Results results{std::vector<double>(n * n), std::vector<double>(n * m),
                    std::vector<float>(d * m)};
    std::vector<double> C(n * m);
    std::vector<float> W(n * m);
    bpls::gram(A, B, {.n_threads = n_threads}, results.G.data(), C.data());
    bpls::solve(bpls::row_major(results.G.data(), n, n), bpls::row_major(C.data(), n, m), {},
                results.W.data(), n_threads);
    for (std::size_t i = 0; i < n * m; ++i) W[i] = static_cast<float>(results.W[i]);
    bpls::linear(A, bpls::row_major(W.data(), n, m), {false, bpls::Activation::softmax, n_threads},
                 results.out.data());
    return results;
}

// A large system on several threads, whose steps wait for each other; and one whose factorization fails.
void a_large_system_is_solved_or_fails_on_every_number_of_threads() {
    const std::size_t n = 400, m = 3;
    const std::vector<double> values = random_values<double>(n * n, 3);
    std::vector<double> G(n * n), C = random_values<double>(n * m, 4), expected(n * m);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
            G[i * n + j] = values[std::min(i, j) * n + std::max(i, j)] + (i == j ? 60.0 : 0.0);
    const auto view = bpls::row_major(G.data(), n, n), sides = bpls::row_major(C.data(), n, m);
    bpls::solve(view, sides, {0, false}, expected.data(), 1);
    for (const int n_threads : {2, 3, 5}) {
        std::vector<double> W(n * m);
        bpls::solve(view, sides, {0, false}, W.data(), n_threads);
        CHECK(W == expected);
    }
    for (const std::size_t pivot : {0, 23, 200, 399}) {
        const double before = G[pivot * n + pivot];
        G[pivot * n + pivot] = -1;
        for (const int n_threads : {1, 2, 3, 5}) {
            std::vector<double> W(n * m, 7.0);
            CHECK(throws<bpls::NotPositiveDefinite>(
                [&] { bpls::solve(view, sides, {0, false}, W.data(), n_threads); }));
            CHECK(W == std::vector<double>(n * m, 7.0));
        }
        G[pivot * n + pivot] = before;
    }
}

void several_callers_get_what_one_gets(const Results& expected) {
    std::vector<Results> results(4);
    std::vector<std::thread> callers;
    for (std::size_t i = 0; i < results.size(); ++i)
        callers.emplace_back(
            [&results, i] { results[i] = all_kernels(static_cast<int>(i % 4) + 1); });
    for (std::thread& caller : callers) caller.join();
    for (const Results& result : results) CHECK(result == expected);
}

#if defined(BPLS_POSIX)

// The exit code of a child that computes; a child that hangs is ended by a signal.
template <class F>
int exit_code_of_child(F&& compute) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        _exit(compute());
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int threads_of_this_process() {
#if defined(__linux__)
    int count = 0;
    for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
        ++count;
    return count;
#else
    return 3;
#endif
}

void a_forked_child_uses_all_threads(const Results& expected) {
    CHECK(exit_code_of_child([&] {
              if (all_kernels(3) != expected) return 1;
              return threads_of_this_process() >= 3 ? 0 : 2;
          }) == 0);
    // The child of a child has a pool of its own, too.
    CHECK(exit_code_of_child([&] {
              if (all_kernels(2) != expected) return 1;
              return exit_code_of_child([&] { return all_kernels(2) == expected ? 0 : 1; });
          }) == 0);
}

// Callers work and limits change while this thread forks; parent and children compute the same bits. Under a sanitizer the
// children end at once: its allocator's lock may be held by another thread at the fork, and stays locked in the child.
void forks_at_random_moments_disturb_nobody() {
    const std::size_t rows = 1500;
    const Results expected = all_kernels(1, rows);
    std::atomic<bool> enough = false;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> others;
    for (int caller = 0; caller < 3; ++caller)
        others.emplace_back([&, caller] {
            for (int round = 0; !enough; ++round)
                if (all_kernels((round + caller) % 5, rows) != expected) ++wrong;
        });
    others.emplace_back([&] {
        for (int round = 0; !enough; ++round) {
            bpls::set_default_threads(1 + round % 4);
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
    });
    const auto compute = [&] {
#if !defined(BPLS_SANITIZED)
        for (const int n_threads : {0, 2, 3})
            if (all_kernels(n_threads, rows) != expected) return 1;
#endif
        return 0;
    };
    std::mt19937 generator(5);
    for (int round = 0; round < 20; ++round) {
        std::this_thread::sleep_for(std::chrono::microseconds(generator() % 3000));
        CHECK(exit_code_of_child(compute) == 0);
    }
    enough = true;
    for (std::thread& other : others) other.join();
    bpls::set_default_threads(0);
    CHECK(wrong == 0);
}

#if !defined(BPLS_SANITIZED) && defined(__linux__)

// The bits of one thread, or the end of memory as an exception.
int right_or_out_of_memory(const Results& expected) {
    try {
        return all_kernels(6) == expected ? 0 : 1;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

rlim_t bytes_of_this_process() {
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void limits_of_memory_cost_threads_or_an_exception(const Results& expected) {
    for (rlim_t more = 0; more <= rlim_t{24} << 20; more += rlim_t{100} << 10)
        CHECK(exit_code_of_child([&] {
                  const rlim_t bytes = bytes_of_this_process() + more;
                  const rlimit limit{bytes, bytes};
                  if (setrlimit(RLIMIT_AS, &limit) != 0) return 3;
                  return right_or_out_of_memory(expected);
              }) == 0);
}

// Root is not limited: the child becomes another user, with no other process.
void limits_of_threads_cost_threads_only(const Results& expected) {
    const uid_t nobody = 65431;
    for (rlim_t threads = 1; threads <= 7; ++threads)
        CHECK(exit_code_of_child([&] {
                  const rlimit limit{threads, threads};
                  if (setrlimit(RLIMIT_NPROC, &limit) != 0) return 3;
                  if (getuid() == 0 && setuid(nobody) != 0) return 4;
                  if (all_kernels(6) != expected || all_kernels(2) != expected) return 1;
                  return getuid() != nobody ||
                                 threads_of_this_process() <= static_cast<int>(threads)
                             ? 0
                             : 2;
              }) == 0);
}

#endif
#endif

}  // namespace

int main() {
    return run_tests([] {
        const Results expected = all_kernels(1);
        CHECK(bpls::default_threads() >= 1);
        several_callers_get_what_one_gets(expected);
        a_large_system_is_solved_or_fails_on_every_number_of_threads();
#if defined(BPLS_POSIX)
        a_forked_child_uses_all_threads(expected);
        forks_at_random_moments_disturb_nobody();
#if !defined(BPLS_SANITIZED) && defined(__linux__)
        limits_of_memory_cost_threads_or_an_exception(expected);
        limits_of_threads_cost_threads_only(expected);
#endif
#endif
    });
}
