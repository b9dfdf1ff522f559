// linear against plain sums, in the type pairs it takes, and its plan; linear_bytes and take_rows to the bit.
#include "check.hpp"
#include "core/linear_plan.hpp"

namespace {

template <class A, class W, class T>
void equals_plain_sums(std::size_t d, std::size_t n, std::size_t m, bool bias, bool column_major) {
    const std::vector<A> a = random_values<A>(d * n, 1);
    const std::vector<W> w = random_values<W>((n + bias) * m, 2);
    bpls::ConstMatrix A_view = bpls::row_major(a.data(), d, n);
    if (column_major) {
        A_view.row_stride = sizeof(A);
        A_view.col_stride = static_cast<std::ptrdiff_t>(d * sizeof(A));
    }
    std::vector<T> out(d * m, T(NAN));
    bpls::linear(A_view, bpls::row_major(w.data(), n + bias, m),
                 {bias, bpls::Activation::identity, 2}, out.data());
    const double u = static_cast<double>(std::numeric_limits<T>::epsilon());
    for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < m; ++j) {
            double exact = bias ? static_cast<double>(w[n * m + j]) : 0;
            double magnitude = std::abs(exact);
            for (std::size_t k = 0; k < n; ++k) {
                const double x = static_cast<double>(column_major ? a[k * d + i] : a[i * n + k]);
                exact += x * static_cast<double>(w[k * m + j]);
                magnitude += std::abs(x * static_cast<double>(w[k * m + j]));
            }
            CHECK(close(static_cast<double>(out[i * m + j]), exact,
                        u * static_cast<double>(n + 2) * magnitude));
        }
}

template <class A, class W, class T>
void is_right_in_all_layouts() {
    for (const std::size_t d : {0, 1, 3, 70, 100})
        for (const std::size_t n : {1, 19, 300})
            for (const std::size_t m : {1, 3, 8, 50})
                for (const bool bias : {false, true})
                    for (const bool column_major : {false, true})
                        equals_plain_sums<A, W, T>(d, n, m, bias, column_major);
}

void activation_is_applied() {
    const std::vector<double> a = random_values<double>(5 * 3, 1),
                              w = random_values<double>(3 * 4, 2);
    std::vector<double> plain(20), activated(20);
    const auto A = bpls::row_major(a.data(), 5, 3), W = bpls::row_major(w.data(), 3, 4);
    bpls::linear(A, W, {}, plain.data());
    for (int i = 0; i < bpls::activation_count; ++i) {
        const auto activation = static_cast<bpls::Activation>(i);
        bpls::linear(A, W, {false, activation, 0}, activated.data());
        std::vector<double> expected(20);
        bpls::forward(activation, plain.data(), expected.data(), 5, 4);
        CHECK(activated == expected);
    }
}

// Columns of zeros are left out only where that changes nothing.
void zero_times_infinity_is_nan_in_every_row() {
    constexpr std::size_t d = 300, n = 64, m = 32;
    const std::vector<float> a(d * n, 0.0f);
    std::vector<float> w(n * m, 1.0f), out(d * m);
    w[5 * m] = INFINITY;
    CHECK(!bpls::linear(bpls::row_major(a.data(), d, n), bpls::row_major(w.data(), n, m), {},
                        out.data()));
    for (std::size_t i = 0; i < d; ++i) CHECK(std::isnan(out[i * m]) && out[i * m + 1] == 0);
}

void wrong_output_type_is_refused() {
    const double one = 1;
    float out;
    CHECK(throws<std::invalid_argument>(
        [&] { bpls::linear(bpls::row_major(&one, 1, 1), bpls::row_major(&one, 1, 1), {}, &out); }));
}

void an_unknown_element_type_is_refused() {
    const double one = 1;
    double out = 7;
    bpls::ConstMatrix A = bpls::row_major(&one, 1, 1);
    for (const int number : {-1, bpls::dtype_count}) {
        A.dtype = static_cast<bpls::DType>(number);
        CHECK(throws<std::invalid_argument>(
            [&] { bpls::linear(A, bpls::row_major(&one, 1, 1), {}, &out); }));
    }
    CHECK(out == 7);
}

void no_columns_of_weights_give_nothing() {
    const float one = 1;
    float out = 7;
    CHECK(bpls::linear(bpls::row_major(&one, 1, 1), bpls::row_major(&one, 1, 0), {}, &out));
    CHECK(out == 7);
}

// Sums of integers, in every remainder of rows, columns and depth.
// Rows lie `apart` bytes apart; where they are `black` most columns are zero in all or half of them.
void bytes_times_integers_are_exact(std::size_t apart, bool black) {
    for (const std::size_t d : {1u, 7u, 48u, 53u})
        for (const std::size_t n : {1u, 2u, 3u, 4u, 784u, 785u})
            for (const std::size_t m : {1u, 15u, 16u, 33u, 49u}) {
                const std::size_t stride = n + apart;
                auto a = random_values<std::uint8_t>(d * stride, 1);
                for (std::size_t i = 0; black && i < d; ++i)
                    for (std::size_t k = 0; k < n; ++k)
                        if (k % 9 > 1 || (k < 100 && i < d / 2)) a[i * stride + k] = 0;
                const auto bytes = random_values<std::uint8_t>(n * m, 2);
                const std::vector<std::int8_t> w(bytes.begin(), bytes.end());
                const auto scale = random_values<float>(m, 3);
                std::vector<float> out(d * m);
                bpls::linear_bytes(bpls::row_major(a.data(), d, n, stride), w.data(), scale, 2,
                                   out.data());
                bool same = true;
                for (std::size_t i = 0; i < d; ++i)
                    for (std::size_t j = 0; j < m; ++j) {
                        int sum = 0;
                        for (std::size_t k = 0; k < n; ++k) sum += a[i * stride + k] * w[k * m + j];
                        same &= out[i * m + j] == static_cast<float>(sum) * scale[j];
                    }
                CHECK(same);
            }
}

void other_bytes_are_refused() {
    const std::vector<std::uint8_t> a(bpls::most_byte_columns + 1);
    const std::vector<std::int8_t> w(bpls::most_byte_columns + 1);
    const float scale = 1;
    float out;
    const auto call = [&](const bpls::ConstMatrix& A) {
        bpls::linear_bytes(A, w.data(), {&scale, 1}, 1, &out);
    };
    bpls::ConstMatrix apart = bpls::row_major(a.data(), 1, 2);
    apart.col_stride = 2;
    CHECK(throws<std::invalid_argument>([&] { call(apart); }));
    CHECK(throws<std::invalid_argument>(
        [&] { call(bpls::row_major(a.data(), 1, bpls::most_byte_columns + 1)); }));
    CHECK(throws<std::invalid_argument>([&] { call(bpls::row_major(&scale, 1, 1)); }));
}

void rows_are_gathered() {
    const std::size_t d = 1000, n = 33, stride = 40;
    const auto x = random_values<double>(d * stride, 1);
    std::vector<std::int64_t> rows(3000);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i * 7 % d);
    std::vector<double> out(rows.size() * n);
    const bpls::ConstMatrix X = bpls::row_major(x.data(), d, n, stride);
    auto* bytes = reinterpret_cast<unsigned char*>(out.data());
    bpls::take_rows(X, rows, 2, bytes);
    bool same = true;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < n; ++j)
            same &= out[i * n + j] == x[static_cast<std::size_t>(rows[i]) * stride + j];
    CHECK(same);
    for (const std::int64_t wrong : {std::int64_t(-1), static_cast<std::int64_t>(d)}) {
        rows[5] = wrong;
        CHECK(throws<std::invalid_argument>([&] { bpls::take_rows(X, rows, 2, bytes); }));
    }
}

// ---- the plan, at its borders

constexpr bpls::LinearMachine avx512_floats{4, 16, 8, 1};

bpls::LinearWay way(std::size_t rows, std::size_t depth, std::size_t width, std::size_t lanes = 16,
                    bool in_place = true) {
    bpls::LinearMachine machine = avx512_floats;
    machine.lanes = lanes;
    return bpls::plan_linear({rows, depth, width}, machine, in_place).way;
}

void few_outputs_are_dot_products() {
    using enum bpls::LinearWay;
    CHECK(way(1, 1, 1) == dots && way(200'000, 1, 2) == dots);
    CHECK(way(50, 7, 3) == in_place && way(50, 8, 3) == dots);
    CHECK(way(50, 47, 8) == in_place && way(50, 48, 8) == dots);
    CHECK(way(50, 1500, 9) == in_place);
    // At most half a vector.
    CHECK(way(50, 1500, 4, 8) == dots && way(50, 1500, 5, 8) == in_place);
    CHECK(way(50, 1500, 1, 2) == dots && way(50, 1500, 2, 2) == in_place);
}

void many_rows_read_packed_weights() {
    using enum bpls::LinearWay;
    CHECK(way(95, 100, 50) == in_place && way(96, 100, 50) == panels);
    CHECK(way(1, 100, 50, 16, false) == panels);
}

void zeros_are_searched_for_where_that_can_pay() {
    const auto searches = [](std::size_t rows, std::size_t depth, std::size_t width) {
        return bpls::plan_linear({rows, depth, width}, avx512_floats, true).searches;
    };
    CHECK(searches(256, 64, 32));
    CHECK(!searches(255, 64, 32) && !searches(256, 63, 32) && !searches(256, 64, 31));
}

void strips_fit_the_caches_and_suffice_for_the_threads() {
    const auto strip = [](std::size_t rows, std::size_t depth, std::size_t width,
                          std::size_t threads) {
        bpls::LinearMachine machine = avx512_floats;
        machine.threads = threads;
        return bpls::plan_linear({rows, depth, width}, machine, true).strip_rows;
    };
    CHECK(strip(200'000, 784, 60, 1) == 48);       // at least, for weights in the second cache
    CHECK(strip(200'000, 4, 500, 1) == 16);        // the same in the first
    CHECK(strip(200'000, 24, 1, 1) == 1024);       // 96 KiB of A
    CHECK(strip(200'000, 1, 4, 1) == 24576 / 16);  // 24 KiB of sums
    CHECK(strip(1, 0, 1, 1) > 0);
    CHECK(strip(64, 784, 60, 2) == 16 && strip(32, 784, 60, 2) == 8);
    for (const std::size_t rows : {1u, 7u, 100u, 5000u})
        CHECK(strip(rows, 33, 18, 3) % avx512_floats.tile_rows == 0);
}

void cost_counts_whole_vectors() {
    CHECK(bpls::cost_of({10, 100, 9}, 16) == 10 * 100 * 16);
    CHECK(bpls::cost_of({10, 100, 17}, 16) == 10 * 100 * 32);
    CHECK(bpls::cost_of({10, 100, 1}, 16) == 10 * 100 * 2);
    CHECK(bpls::cost_of({10, 100, 5}, 16) == 10 * 100 * 5);
}

}  // namespace

int main() {
    return run_tests([] {
        is_right_in_all_layouts<std::uint8_t, float, float>();
        is_right_in_all_layouts<std::uint8_t, double, double>();
        is_right_in_all_layouts<float, float, float>();
        is_right_in_all_layouts<float, double, double>();
        is_right_in_all_layouts<double, float, double>();
        is_right_in_all_layouts<double, double, double>();
        few_outputs_are_dot_products();
        many_rows_read_packed_weights();
        zeros_are_searched_for_where_that_can_pay();
        strips_fit_the_caches_and_suffice_for_the_threads();
        cost_counts_whole_vectors();
        activation_is_applied();
        zero_times_infinity_is_nan_in_every_row();
        wrong_output_type_is_refused();
        an_unknown_element_type_is_refused();
        no_columns_of_weights_give_nothing();
        for (const std::size_t apart : {0u, 3u, 4u})
            for (const bool black : {false, true}) bytes_times_integers_are_exact(apart, black);
        other_bytes_are_refused();
        rows_are_gathered();
    });
}
