// gram and cross against plain sums, in every element type and layout, and the choice of their ways.
#include <limits>

#include "check.hpp"
#include "core/gram/choose.hpp"

namespace {

struct Shape {
    std::size_t rows, cols, outputs;
};

template <class T>
void gram_equals_plain_sums(Shape shape, bool bias, bool weighted, bool column_major) {
    const auto [d, n, m] = shape;
    const std::vector<T> a = random_values<T>(d * n, 1);
    const std::vector<float> b = random_values<float>(d * m, 2);
    std::vector<double> weight = random_values<double>(d, 3);
    for (double& w : weight) w = weighted ? w + 0.5 : 1.0;
    bpls::ConstMatrix A = bpls::row_major(a.data(), d, n);
    if (column_major) {
        A.row_stride = sizeof(T);
        A.col_stride = static_cast<std::ptrdiff_t>(d * sizeof(T));
    }
    const std::size_t N = n + bias;
    const auto value = [&](std::size_t k, std::size_t i) {
        return i == n ? 1.0 : static_cast<double>(column_major ? a[i * d + k] : a[k * n + i]);
    };
    std::vector<double> G(N * N, NAN), C(N * m, NAN), D(N * m, NAN);
    bpls::GramOptions options{.bias = bias};
    if (weighted) options.sample_weight = bpls::row_major(weight.data(), d, 1);
    bpls::gram(A, bpls::row_major(b.data(), d, m), options, G.data(), C.data());
    bpls::cross(A, bpls::row_major(b.data(), d, m), options, D.data());
    // A rounding per addition, here and in the plain sums: all d of them in float64, 256 in float32; a few for the weights.
    const double u =
        (static_cast<double>(d) + 4) * 0x1p-52 + (std::is_same_v<T, double> ? 0 : 260 * 0x1p-24);
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t j = 0; j < N; ++j) {
            double exact = 0, magnitude = 0;
            for (std::size_t k = 0; k < d; ++k) {
                exact += weight[k] * value(k, i) * value(k, j);
                magnitude += std::abs(weight[k] * value(k, i) * value(k, j));
            }
            const bool integers = std::is_same_v<T, std::uint8_t> && !weighted;
            CHECK(close(G[i * N + j], exact, integers ? 0 : u * magnitude));
            CHECK(G[i * N + j] == G[j * N + i]);
        }
        for (std::size_t j = 0; j < m; ++j) {
            double exact = 0, magnitude = 0;
            for (std::size_t k = 0; k < d; ++k) {
                exact += weight[k] * value(k, i) * b[k * m + j];
                magnitude += std::abs(weight[k] * value(k, i) * b[k * m + j]);
            }
            CHECK(close(C[i * m + j], exact, u * magnitude));
            CHECK(close(D[i * m + j], exact, u * magnitude));
        }
    }
}

template <class T>
void gram_is_right_in_all_layouts() {
    // One vector of rows and one more, one vector of columns and one more, a tile and one more, with a bias and without.
    for (const Shape shape :
         {Shape{0, 3, 1}, Shape{1, 1, 1}, Shape{7, 5, 2}, Shape{33, 7, 8}, Shape{65, 15, 1},
          Shape{40, 16, 5}, Shape{300, 17, 9}, Shape{130, 47, 1}, Shape{129, 48, 4},
          Shape{259, 50, 3}, Shape{2051, 13, 1}, Shape{70, 65, 64}, Shape{5, 130, 97}})
        for (const bool bias : {false, true})
            for (const bool weighted : {false, true})
                for (const bool column_major : {false, true})
                    gram_equals_plain_sums<T>(shape, bias, weighted, column_major);
}

// Narrow, thin, direct and blocked products.
void bits_do_not_depend_on_threads() {
    for (const Shape shape : {Shape{40'000, 7, 6}, Shape{9000, 33, 20}, Shape{9000, 150, 3},
                              Shape{1000, 120, 70}, Shape{20'000, 70, 55}}) {
        const auto [d, n, m] = shape;
        const std::vector<float> a = random_values<float>(d * n, 4),
                                 b = random_values<float>(d * m, 7);
        const bpls::ConstMatrix A = bpls::row_major(a.data(), d, n),
                                B = bpls::row_major(b.data(), d, m);
        const auto results = [&](int threads) {
            std::vector<double> all(n * n + n * m);
            bpls::gram(A, std::nullopt, {.n_threads = threads}, all.data(), nullptr);
            bpls::cross(A, B, {.n_threads = threads}, all.data() + n * n);
            return all;
        };
        const std::vector<double> one = results(1);
        for (const int threads : {2, 3, 7}) CHECK(results(threads) == one);
    }
}

void blocks_of_columns_meet() {
    const std::size_t d = 9, n = 1100, m = 1030;
    const std::vector<double> a = random_values<double>(d * n, 5),
                              b = random_values<double>(d * m, 6);
    std::vector<double> G(n * n), C(n * m);
    bpls::gram(bpls::row_major(a.data(), d, n), bpls::row_major(b.data(), d, m), {}, G.data(),
               C.data());
    for (std::size_t i = 0; i < n; i += 37)
        for (std::size_t j = 0; j < n; ++j) {
            double exact = 0;
            for (std::size_t k = 0; k < d; ++k) exact += a[k * n + i] * a[k * n + j];
            CHECK(close(G[i * n + j], exact, 1e-14));
            exact = 0;
            for (std::size_t k = 0; k < d; ++k) exact += a[k * n + i] * b[k * m + j % m];
            CHECK(close(C[i * m + j % m], exact, 1e-14));
        }
}

// Each row begins one value after the one before it, as in a sliding window. The array ends with the last row.
void rows_may_overlap() {
    const std::size_t d = 7;
    for (const std::size_t n : {5, 67, 1029, 1031, 1036, 2045}) {
        const std::vector<float> x = random_values<float>(n + d - 1, 8);
        std::vector<double> G(n * n);
        bpls::gram(bpls::row_major(x.data(), d, n, 1), std::nullopt, {}, G.data(), nullptr);
        for (std::size_t i = 0; i < n; i += 31)
            for (std::size_t j = 0; j < n; ++j) {
                double exact = 0;
                for (std::size_t k = 0; k < d; ++k)
                    exact += static_cast<double>(x[k + i]) * static_cast<double>(x[k + j]);
                CHECK(close(G[i * n + j], exact, 1e-6));
            }
    }
}

// ---- the choice of the way, at its borders

constexpr bpls::gram_detail::Arithmetic floats{
    .narrow_columns = 48, .value_bytes = 4, .sum_rows = std::numeric_limits<std::size_t>::max()};

void narrow_products_end_with_a_tile() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t columns) {
        return choose_way({200'000, columns, columns, true, true}, floats);
    };
    CHECK(way(1) == Way::narrow);
    CHECK(way(48) == Way::narrow);
    CHECK(way(49) == Way::blocked);
}

void thin_products_read_the_wider_side_in_place() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t left, bool symmetric, bool in_place) {
        return choose_way({100'000, left, 200, symmetric, in_place}, floats);
    };
    CHECK(way(8, false, true) == Way::thin);
    CHECK(way(9, false, true) == Way::blocked);
    CHECK(way(8, false, false) == Way::blocked);
    CHECK(way(8, true, true) == Way::blocked);
}

void direct_products_fit_into_the_cache_and_their_sums() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t rows, std::size_t left, bool symmetric,
                        const Arithmetic& arithmetic) {
        return choose_way({rows, left, 1024, symmetric, true}, arithmetic);
    };
    CHECK(way(1024, 1024, true, floats) == Way::direct);
    CHECK(way(1025, 1024, true, floats) == Way::blocked);
    CHECK(way(512, 1024, false, floats) == Way::direct);  // both sides are packed
    CHECK(way(513, 1024, false, floats) == Way::blocked);
    CHECK(way(4096, 1024, true, {16, 1, 4096}) == Way::direct);
    CHECK(way(4096, 1024, true, {16, 1, 4095}) == Way::blocked);
}

void rows_that_differ_are_refused() {
    const double one = 1;
    double G, C;
    CHECK(throws<std::invalid_argument>(
        [&] { bpls::gram(bpls::row_major(&one, 1, 1), bpls::row_major(&one, 0, 1), {}, &G, &C); }));
}

void no_columns_are_refused() {
    const double one = 1;
    double C;
    CHECK(throws<std::invalid_argument>([&] {
        bpls::cross(bpls::row_major(&one, 1, 0), bpls::row_major(&one, 1, 1), {.bias = true}, &C);
    }));
}

}  // namespace

int main() {
    return run_tests([] {
        gram_is_right_in_all_layouts<std::uint8_t>();
        gram_is_right_in_all_layouts<float>();
        gram_is_right_in_all_layouts<double>();
        bits_do_not_depend_on_threads();
        blocks_of_columns_meet();
        rows_may_overlap();
        narrow_products_end_with_a_tile();
        thin_products_read_the_wider_side_in_place();
        direct_products_fit_into_the_cache_and_their_sums();
        rows_that_differ_are_refused();
        no_columns_are_refused();
    });
}
