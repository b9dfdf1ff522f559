// linear against plain sums, in the type pairs it takes; linear_bytes and take_rows to the bit.
#include "check.hpp"

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
    for (const std::size_t d : {0, 1, 3, 70})
        for (const std::size_t n : {1, 300})
            for (const std::size_t m : {1, 50})
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
    constexpr std::size_t d = 100, n = 64, m = 32;
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

}  // namespace

int main() {
    return run_tests([] {
        is_right_in_all_layouts<std::uint8_t, float, float>();
        is_right_in_all_layouts<std::uint8_t, double, double>();
        is_right_in_all_layouts<float, float, float>();
        is_right_in_all_layouts<float, double, double>();
        is_right_in_all_layouts<double, float, double>();
        is_right_in_all_layouts<double, double, double>();
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
