// solve, solve_layer and solve_batched: the residual of the regularised system is at rounding level.
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

void shapes_that_do_not_fit_are_refused() {
    const std::vector<double> values(16, 1.0);
    std::vector<double> W(16);
    const auto refused = [&](std::size_t rows, std::size_t cols, std::size_t C_rows) {
        try {
            bpls::solve(bpls::row_major(values.data(), rows, cols),
                        bpls::row_major(values.data(), C_rows, 1), {}, W.data());
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    CHECK(refused(0, 0, 0));
    CHECK(refused(2, 3, 2));
    CHECK(refused(2, 2, 5));
}

void batch_equals_single_solves() {
    const std::size_t count = 70, n = 5, m = 2;
    std::vector<double> G, W(count * n * m), one(n * m);
    for (unsigned s = 0; s < count; ++s) {
        const std::vector<double> next = random_gram(n, s);
        G.insert(G.end(), next.begin(), next.end());
    }
    const std::vector<double> C = random_values<double>(count * n * m, 9);
    const auto solve_all = [&] {
        bpls::solve_batched(bpls::row_major(G.data(), n, n), n * n * sizeof(double),
                            bpls::row_major(C.data(), n, m), n * m * sizeof(double), count, {},
                            W.data(), 3);
    };
    solve_all();
    for (std::size_t s = 0; s < count; ++s) {
        bpls::solve(bpls::row_major(G.data() + s * n * n, n, n),
                    bpls::row_major(C.data() + s * n * m, n, m), {}, one.data());
        CHECK(
            std::equal(one.begin(), one.end(), W.begin() + static_cast<std::ptrdiff_t>(s * n * m)));
    }
    for (const std::size_t bad : {60, 41}) G[bad * n * n] = -1;
    std::ptrdiff_t system = -1;
    try {
        solve_all();
    } catch (const bpls::NotPositiveDefinite& error) {
        system = error.system;
    }
    CHECK(system == 41);
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
        for (const std::size_t n : {1, 2, 63, 64, 65, 129, 200})
            for (const std::size_t m : {1, 30}) residual_is_at_rounding_level(n, m, 2);
        residual_is_at_rounding_level(300, 130, 3);
        singular_system_names_its_pivot();
        shapes_that_do_not_fit_are_refused();
        batch_equals_single_solves();
        layer_recovers_its_weights();
    });
}
