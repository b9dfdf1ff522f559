// Several callers at once, each with threads of its own, get what one caller gets. Run under the thread sanitizer.
#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <thread>

#include "check.hpp"

namespace {

struct Results {
    std::vector<double> G, W;
    std::vector<float> out;

    bool operator==(const Results&) const = default;
};

Results all_kernels(int n_threads) {
    const std::size_t d = 5000, n = 70, m = 20;
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

#if defined(__unix__) || defined(__APPLE__)
// A child has none of its parent's worker threads; a call that waited for them would never return.
void a_forked_child_computes(const Results& expected) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(all_kernels(2) == expected ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

}  // namespace

int main() {
    return run_tests([] {
        const Results expected = all_kernels(1);
        std::vector<Results> results(4);
        std::vector<std::thread> callers;
        for (std::size_t i = 0; i < results.size(); ++i)
            callers.emplace_back(
                [&results, i] { results[i] = all_kernels(static_cast<int>(i % 4) + 1); });
        for (std::thread& caller : callers) caller.join();
        for (const Results& result : results) CHECK(result == expected);
        CHECK(bpls::default_threads() >= 1);
#if defined(__unix__) || defined(__APPLE__)
        a_forked_child_computes(expected);
#endif
    });
}
