// solve, solve_layer and solve_batched: the residual of the regularised system is at rounding level.
#include <algorithm>

#include "check.hpp"

namespace {

// AᵀA of a random matrix with more rows than columns.
std::vector<double> random_gram(std::size_t n, unsigned seed) {
    const std::vector<double> a = random_values<double>(2 * n * n, seed);
    std::vector<double> G(n * n);
    bpls::gram(bpls::row_major(a.data(), 2 * n, n), std::nullopt, {}, G.data(), nullptr);
    return G;
}

double ridge_of(const std::vector<double>& G, std::size_t n, const bpls::Ridge& ridge) {
    double trace = 0;
    for (std::size_t i = 0; i < n; ++i) trace += G[i * n + i];
    return ridge.relative ? ridge.eps * trace / static_cast<double>(n) : ridge.eps;
}

void check_solution(const std::vector<double>& G, const double* C, const double* W, std::size_t n,
                    std::size_t m, double shift) {
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < m; ++j) {
            double sum = shift * W[i * m + j] - C[i * m + j];
            double magnitude = std::abs(C[i * m + j]);
            for (std::size_t k = 0; k < n; ++k) {
                sum += G[i * n + k] * W[k * m + j];
                magnitude += std::abs(G[i * n + k] * W[k * m + j]);
            }
            CHECK(std::abs(sum) <= 0x1p-44 * static_cast<double>(n) * magnitude);
        }
}

void residual_is_at_rounding_level(std::size_t n, std::size_t m, int threads) {
    const std::vector<double> G = random_gram(n, 1), C = random_values<double>(n * m, 2);
    std::vector<double> W(n * m);
    for (const bpls::Ridge ridge : {bpls::Ridge{1e-6, true}, bpls::Ridge{0.25, false}}) {
        bpls::solve(bpls::row_major(G.data(), n, n), bpls::row_major(C.data(), n, m), ridge,
                    W.data(), threads);
        check_solution(G, C.data(), W.data(), n, m, ridge_of(G, n, ridge));
    }
}

void singular_system_names_its_pivot() {
    const std::vector<double> G = {1, 1, 0, 1, 1, 0, 0, 0, 1}, C = {1, 1, 1};
    std::vector<double> W = {7, 7, 7};
    std::size_t pivot = 99;
    try {
        bpls::solve(bpls::row_major(G.data(), 3, 3), bpls::row_major(C.data(), 3, 1), {0, true},
                    W.data());
    } catch (const bpls::NotPositiveDefinite& error) {
        pivot = error.pivot;
    }
    CHECK(pivot == 1);
    CHECK(W == std::vector<double>({7, 7, 7}));
}

// Every row of a block of rows, of whole ones and of those that are left.
void every_pivot_that_fails_is_named() {
    for (const std::size_t n : {15, 23, 161}) {
        const std::vector<double> C(n, 1);
        for (std::size_t broken = 0; broken < n; ++broken) {
            std::vector<double> G = random_gram(n, 3), W(n, 7);
            G[broken * n + broken] = -1;
            std::size_t pivot = n;
            double value = 1;
            try {
                bpls::solve(bpls::row_major(G.data(), n, n), bpls::row_major(C.data(), n, 1),
                            {0, false}, W.data());
            } catch (const bpls::NotPositiveDefinite& error) {
                pivot = error.pivot;
                value = error.value;
            }
            CHECK(pivot == broken);
            CHECK(value <= -1);
            CHECK(W == std::vector<double>(n, 7));
        }
    }
}

// Large enough for steps that wait for those of other threads, in several outer blocks.
void threads_agree_on_solutions_and_on_failures() {
    constexpr std::size_t n = 500, m = 21, broken = 333;
    const std::vector<double> G = random_gram(n, 1), C = random_values<double>(n * m, 2);
    std::vector<double> bad = G;
    bad[broken * n + broken] = -1;
    std::vector<double> expected;
    for (const int threads : {1, 2, 3, 8}) {
        std::vector<double> W(n * m, 7);
        std::size_t pivot = n;
        try {
            bpls::solve(bpls::row_major(bad.data(), n, n), bpls::row_major(C.data(), n, m), {},
                        W.data(), threads);
        } catch (const bpls::NotPositiveDefinite& error) {
            pivot = error.pivot;
        }
        CHECK(pivot == broken);
        CHECK(W == std::vector<double>(n * m, 7));
        bpls::solve(bpls::row_major(G.data(), n, n), bpls::row_major(C.data(), n, m), {}, W.data(),
                    threads);
        if (expected.empty()) expected = W;
        CHECK(W == expected);
    }
}

void shapes_that_do_not_fit_are_refused() {
    const std::vector<double> values(16, 1.0);
    std::vector<double> W(16);
    const auto refused = [&](std::size_t rows, std::size_t cols, std::size_t C_rows) {
        return throws<std::invalid_argument>([&] {
            bpls::solve(bpls::row_major(values.data(), rows, cols),
                        bpls::row_major(values.data(), C_rows, 1), {}, W.data());
        });
    };
    CHECK(refused(0, 0, 0));
    CHECK(refused(2, 3, 2));
    CHECK(refused(2, 2, 5));
}

// `count` systems of n unknowns, one after the other.
struct Systems {
    std::size_t n, m, count;
    std::vector<double> G, C;

    Systems(std::size_t n_, std::size_t m_, std::size_t count_)
        : n(n_), m(m_), count(count_), C(random_values<double>(count * n * m, 9)) {
        for (unsigned s = 0; s < count; ++s) {
            const std::vector<double> next = random_gram(n, s);
            G.insert(G.end(), next.begin(), next.end());
        }
    }
    const double* G_of(std::size_t s) const { return G.data() + s * n * n; }
    const double* C_of(std::size_t s) const { return C.data() + s * n * m; }

    // Solves systems [first, last).
    void solve(std::size_t first, std::size_t last, double* W) const {
        const auto stride = static_cast<std::ptrdiff_t>(n * sizeof(double));
        bpls::solve_batched(bpls::row_major(G_of(first), n, n),
                            stride * static_cast<std::ptrdiff_t>(n),
                            bpls::row_major(C_of(first), n, m),
                            stride * static_cast<std::ptrdiff_t>(m), last - first, {}, W, 3);
    }
};

void batch_solves_every_system(std::size_t n, std::size_t m, std::size_t count) {
    const Systems systems(n, m, count);
    std::vector<double> W(count * n * m), tail(count * n * m);
    systems.solve(0, count, W.data());
    for (std::size_t s = 0; s < count; ++s) {
        const std::vector<double> G(systems.G_of(s), systems.G_of(s) + n * n);
        check_solution(G, systems.C_of(s), W.data() + s * n * m, n, m, ridge_of(G, n, {}));
    }
    // A system has the same bits wherever it stands.
    for (std::size_t first = 1; first < count; ++first) {
        systems.solve(first, count, tail.data());
        CHECK(std::equal(W.begin() + static_cast<std::ptrdiff_t>(first * n * m), W.end(),
                         tail.begin()));
    }
}

void batch_names_the_first_system_that_fails(std::size_t n) {
    Systems systems(n, 2, 70);
    const std::size_t pivot = n / 2, size = n * 2;
    for (const std::size_t bad : {60, 43, 41}) systems.G[(bad * n + pivot) * n + pivot] = -1;
    systems.G[43 * n * n] = -1;  // an earlier pivot of a later system
    std::vector<double> W(70 * size, 7.0);
    std::ptrdiff_t system = -1;
    std::size_t failed = n;
    try {
        systems.solve(0, 70, W.data());
    } catch (const bpls::NotPositiveDefinite& error) {
        system = error.system;
        failed = error.pivot;
    }
    CHECK(system == 41);
    CHECK(failed == pivot);
    // The other systems of its group are solved all the same.
    for (const std::size_t s : {40, 42}) {
        const std::vector<double> G(systems.G_of(s), systems.G_of(s) + n * n);
        check_solution(G, systems.C_of(s), W.data() + s * size, n, 2, ridge_of(G, n, {}));
    }
    for (std::size_t i = 41 * size; i < 42 * size; ++i) CHECK(W[i] == 7.0);
}

void layer_recovers_its_weights() {
    const std::size_t d = 400, n = 9, m = 3;
    const std::vector<float> a = random_values<float>(d * n, 3);
    const std::vector<double> truth = random_values<double>((n + 1) * m, 4);
    std::vector<double> B(d * m), W((n + 1) * m);
    bpls::linear(bpls::row_major(a.data(), d, n), bpls::row_major(truth.data(), n + 1, m),
                 {true, bpls::Activation::identity, 0}, B.data());
    bpls::solve_layer(bpls::row_major(a.data(), d, n), bpls::row_major(B.data(), d, m),
                      {.bias = true}, {1e-12, true}, W.data());
    for (std::size_t i = 0; i < W.size(); ++i) CHECK(close(W[i], truth[i], 1e-4));
}

}  // namespace

int main() {
    return run_tests([] {
        // All rests of a block of rows; one block on the stack, one in a buffer, many.
        for (std::size_t n = 1; n <= 25; ++n)
            for (const std::size_t m : {1, 9}) residual_is_at_rounding_level(n, m, 2);
        for (const std::size_t n : {63, 64, 65, 95, 96, 97, 129, 159, 160, 161, 200})
            for (const std::size_t m : {1, 15, 16, 17, 30}) residual_is_at_rounding_level(n, m, 2);
        residual_is_at_rounding_level(300, 130, 3);
        // Enough right-hand sides for a second thread.
        for (const std::size_t m : {1013, 1014}) residual_is_at_rounding_level(64, m, 2);
        singular_system_names_its_pivot();
        every_pivot_that_fails_is_named();
        threads_agree_on_solutions_and_on_failures();
        shapes_that_do_not_fit_are_refused();
        for (std::size_t n = 1; n <= 66; ++n) batch_solves_every_system(n, 1 + n % 3, 11);
        for (const std::size_t n : {1, 5, 18}) batch_solves_every_system(n, 40, 3);
        for (const std::size_t n : {1, 2, 5, 16, 64, 65})
            batch_names_the_first_system_that_fails(n);
        layer_recovers_its_weights();
    });
}
