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

// Products of every way: narrow, thin, in place, direct and blocked.
void bits_do_not_depend_on_threads() {
    for (const Shape shape : {Shape{40'000, 7, 6}, Shape{9000, 33, 20}, Shape{9000, 150, 3},
                              Shape{1000, 120, 70}, Shape{60, 700, 200}, Shape{20'000, 70, 55}}) {
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

// Rows of every number of columns around a vector, and of rows around a step; contiguous, with gaps, every second column, and
// backwards. The arrays end with the last byte.
void narrow_bytes_have_exact_sums() {
    struct Layout {
        std::size_t row, col;  // strides in bytes: multiples of the columns and of one
        std::size_t gap;       // bytes that are added to the stride of a row
        bool backwards;
    };
    for (const Layout& layout : {Layout{1, 1, 0, false}, Layout{1, 1, 3, false},
                                 Layout{2, 2, 0, false}, Layout{1, 1, 0, true}})
        for (std::size_t n = 1; n <= 18; ++n)
            for (const std::size_t d : {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, 65, 129, 300})
                for (const bool bias : {false, true}) {
                    const std::size_t stride = layout.row * n + layout.gap;
                    const std::size_t size =
                        d == 0 ? 0 : (d - 1) * stride + layout.col * (n - 1) + 1;
                    const std::vector<std::uint8_t> a = random_values<std::uint8_t>(size, 10);
                    bpls::ConstMatrix A = bpls::row_major(a.data(), d, n, stride);
                    A.col_stride = static_cast<std::ptrdiff_t>(layout.col);
                    if (layout.backwards && d > 0) {
                        A.data += (d - 1) * stride;
                        A.row_stride = -A.row_stride;
                    }
                    const auto value = [&](std::size_t k, std::size_t i) {
                        return i == n ? 1u : unsigned{*A.at(k, i)};
                    };
                    const std::size_t N = n + bias;
                    std::vector<double> G(N * N, NAN);
                    bpls::gram(A, std::nullopt, {.bias = bias}, G.data(), nullptr);
                    for (std::size_t i = 0; i < N; ++i)
                        for (std::size_t j = 0; j < N; ++j) {
                            unsigned exact = 0;
                            for (std::size_t k = 0; k < d; ++k) exact += value(k, i) * value(k, j);
                            CHECK(G[i * N + j] == exact);
                        }
                }
}

// An item has more rows than an int32 sum holds.
void sums_of_narrow_bytes_do_not_overflow() {
    const std::size_t d = 32 * 66'000;
    for (const std::size_t n : {5, 9}) {
        const std::vector<std::uint8_t> a(d * n, 255);
        std::vector<double> G(n * n);
        bpls::gram(bpls::row_major(a.data(), d, n), std::nullopt, {}, G.data(), nullptr);
        for (const double sum : G) CHECK(sum == 255.0 * 255.0 * static_cast<double>(d));
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

constexpr bpls::gram_detail::Arithmetic floats{.lanes = 16,
                                               .narrow_columns = 48,
                                               .value_bytes = 4,
                                               .sum_rows = std::numeric_limits<std::size_t>::max()};

void narrow_products_end_with_a_tile() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t columns) {
        return choose_way({200'000, columns, columns, true, InPlace::both}, floats);
    };
    CHECK(way(1) == Way::narrow);
    CHECK(way(48) == Way::narrow);
    CHECK(way(49) == Way::blocked);
}

void thin_products_read_the_wider_side_in_place() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t left, bool symmetric, InPlace in_place) {
        return choose_way({100'000, left, 200, symmetric, in_place}, floats);
    };
    CHECK(way(8, false, InPlace::both) == Way::thin);
    CHECK(way(8, false, InPlace::right) == Way::thin);
    CHECK(way(9, false, InPlace::both) == Way::blocked);
    CHECK(way(8, false, InPlace::none) == Way::blocked);
    CHECK(way(8, true, InPlace::both) == Way::blocked);
}

void products_of_cached_rows_read_both_sides_in_place() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t rows, std::size_t left, std::size_t right, InPlace in_place) {
        return choose_way({rows, left, right, false, in_place}, floats);
    };
    CHECK(way(512, 1024, 1024, InPlace::both) == Way::in_place);
    CHECK(way(513, 1024, 1024, InPlace::both) == Way::blocked);
    CHECK(way(512, 1024, 1024, InPlace::right) == Way::direct);
    CHECK(way(512, 9, 17, InPlace::both) == Way::in_place);
    CHECK(way(512, 9, 16, InPlace::both) == Way::narrow);
    CHECK(way(512, 8, 17, InPlace::both) == Way::narrow);
    CHECK(choose_way({500, 100, 100, true, InPlace::both}, floats) == Way::direct);
}

void products_in_place_take_the_side_on_the_left_that_needs_fewer_vectors() {
    using namespace bpls::gram_detail;
    const auto swaps = [](std::size_t rows, std::size_t left, std::size_t right, bool transposed) {
        return puts_wider_side_left({rows, left, right, false, InPlace::both}, transposed, 4, 16);
    };
    CHECK(swaps(900, 16, 36, false));   // 36 vectors of 16 columns instead of 16 by 3
    CHECK(!swaps(900, 15, 36, false));  // a tile has at least one vector
    CHECK(!swaps(900, 34, 382, true));  // 36 by 24 vectors; 384 by 3
    CHECK(swaps(33, 133, 1104, true));  // of few rows, moving the sums into columns takes longer
    CHECK(!swaps(33, 133, 1104, false));
}

void symmetric_products_of_few_rows_per_column_are_packed_at_once() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t rows, std::size_t columns) {
        return choose_way({rows, columns, columns, true, InPlace::none}, floats);
    };
    CHECK(way(1792, 2048) == Way::direct);  // 14 MiB
    CHECK(way(1793, 2048) == Way::blocked);
    CHECK(way(3000, 600) == Way::direct);
    CHECK(way(3001, 600) == Way::blocked);
    Arithmetic twice = floats;
    twice.copies = 2;
    CHECK(choose_way({896, 2048, 2048, true, InPlace::none}, twice) == Way::direct);
    CHECK(choose_way({897, 2048, 2048, true, InPlace::none}, twice) == Way::blocked);
    CHECK(way(2048, 256) == Way::direct);  // cached, and many columns
    CHECK(way(2049, 256) == Way::blocked);
    CHECK(way(1275, 255) == Way::direct);
    CHECK(way(1276, 255) == Way::blocked);
    CHECK(way(512, 64) == Way::direct);  // small
    CHECK(way(513, 64) == Way::blocked);
}

void other_products_are_packed_at_once_if_cached() {
    using namespace bpls::gram_detail;
    const auto way = [](std::size_t rows, const Arithmetic& arithmetic) {
        return choose_way({rows, 1024, 1024, false, InPlace::none}, arithmetic);
    };
    CHECK(way(512, floats) == Way::direct);
    CHECK(way(513, floats) == Way::blocked);
    CHECK(way(2048, {16, 16, 1, 2048}) == Way::direct);
    CHECK(way(2048, {16, 16, 1, 2047}) == Way::blocked);  // more rows than a sum holds
}

// Whole tiles and vectors, and such that overlap others; one item of rows and several; both orders of the sides.
template <class T>
void products_in_place_equal_plain_sums() {
    for (const std::size_t d : {0, 1, 96, 97, 500})
        for (const auto& [n, m] : {std::pair<std::size_t, std::size_t>{9, 17},
                                   {17, 9},
                                   {48, 64},
                                   {53, 70},
                                   {131, 49},
                                   {12, 200}}) {
            // Integers: all sums are exact.
            std::vector<T> a(d * n), b(d * m);
            for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(i * 7 % 11) - 5;
            for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(i * 5 % 13) - 6;
            std::vector<double> C(n * m, NAN);
            bpls::cross(bpls::row_major(a.data(), d, n), bpls::row_major(b.data(), d, m), {},
                        C.data());
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < m; ++j) {
                    double exact = 0;
                    for (std::size_t k = 0; k < d; ++k)
                        exact += double(a[k * n + i] * b[k * m + j]);
                    CHECK(C[i * m + j] == exact);
                }
        }
}

void a_product_without_columns_is_empty() {
    const std::vector<float> a = random_values<float>(5 * 100, 9);
    for (const std::size_t n : {3, 20, 100}) {
        std::vector<double> G(n * n);
        const bpls::ConstMatrix none = bpls::row_major(a.data(), 5, 0);
        bpls::cross(bpls::row_major(a.data(), 5, n), none, {}, nullptr);
        bpls::gram(bpls::row_major(a.data(), 5, n), none, {}, G.data(), nullptr);
        CHECK(G[0] > 0);
    }
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
        narrow_bytes_have_exact_sums();
        sums_of_narrow_bytes_do_not_overflow();
        blocks_of_columns_meet();
        rows_may_overlap();
        narrow_products_end_with_a_tile();
        thin_products_read_the_wider_side_in_place();
        products_of_cached_rows_read_both_sides_in_place();
        products_in_place_take_the_side_on_the_left_that_needs_fewer_vectors();
        products_in_place_equal_plain_sums<float>();
        products_in_place_equal_plain_sums<double>();
        symmetric_products_of_few_rows_per_column_are_packed_at_once();
        other_products_are_packed_at_once_if_cached();
        a_product_without_columns_is_empty();
        rows_that_differ_are_refused();
        no_columns_are_refused();
    });
}
