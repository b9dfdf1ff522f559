// Accuracy against the C library, round trips and derivatives of the activations. The Python tests look at more points.
#include <algorithm>
#include <limits>

#include "check.hpp"

namespace {

constexpr std::size_t rows = 40, cols = 7;

template <class T>
void inverse_undoes_forward(bpls::Activation activation) {
    std::vector<T> z = random_values<T>(rows * cols, 1);
    for (T& x : z) x *= T(8);
    if (activation == bpls::Activation::relu)
        for (T& x : z) x = std::abs(x);
    if (activation == bpls::Activation::softmax)
        for (std::size_t i = 0; i < rows; ++i) {
            T mean = 0;
            for (std::size_t j = 0; j < cols; ++j) mean += z[i * cols + j] / T(cols);
            for (std::size_t j = 0; j < cols; ++j) z[i * cols + j] -= mean;
        }
    std::vector<T> n(z.size()), back(z.size());
    const T eps = std::numeric_limits<T>::epsilon();
    bpls::forward(activation, z.data(), n.data(), rows, cols);
    bpls::inverse(activation, n.data(), back.data(), rows, cols, eps);
    // e⁴ is the worst condition number of a round trip for |z| <= 4; atanh doubles the exponent.
    for (std::size_t i = 0; i < z.size(); ++i)
        CHECK(close(static_cast<double>(back[i]), static_cast<double>(z[i]),
                    8 * std::exp(8.0) * static_cast<double>(eps)));
}

void derivative_is_the_slope(bpls::Activation activation) {
    const std::vector<double> z = random_values<double>(rows * cols, 2);
    std::vector<double> slope(z.size()), up(z.size()), down(z.size());
    bpls::derivative(activation, z.data(), slope.data(), rows, cols);
    const double h = 1e-5;
    for (std::size_t j = 0; j < cols; ++j) {
        std::vector<double> above = z, below = z;
        for (std::size_t i = 0; i < rows; ++i) {
            above[i * cols + j] += h;
            below[i * cols + j] -= h;
        }
        bpls::forward(activation, above.data(), up.data(), rows, cols);
        bpls::forward(activation, below.data(), down.data(), rows, cols);
        for (std::size_t i = 0; i < rows; ++i) {
            const std::size_t at = i * cols + j;
            if (std::abs(z[at]) < h) continue;  // a kink may lie between the two points
            CHECK(close(slope[at], (up[at] - down[at]) / (2 * h), 1e-6));
        }
    }
}

// ---- accuracy

using Wide = double;  // long double is no wider everywhere, and emulators are not exact in it

Wide sigmoid(Wide z) {
    const Wide e = std::exp(-std::abs(z));
    return (z < 0 ? e : 1) / (1 + e);
}
Wide softplus(Wide z) { return std::max<Wide>(z, 0) + std::log1p(std::exp(-std::abs(z))); }

Wide exact_forward(bpls::Activation activation, Wide z) {
    switch (activation) {
        case bpls::Activation::sigmoid:
            return sigmoid(z);
        case bpls::Activation::tanh:
            return std::tanh(z);
        case bpls::Activation::relu:
            return std::max<Wide>(z, 0);
        case bpls::Activation::leaky_relu:
            return z > 0 ? z : z / 100;
        case bpls::Activation::elu:
            return z > 0 ? z : std::expm1(z);
        case bpls::Activation::softplus:
            return softplus(z);
        case bpls::Activation::softminus:
            return -softplus(-z);
        default:
            return z;
    }
}

Wide exact_derivative(bpls::Activation activation, Wide z) {
    switch (activation) {
        case bpls::Activation::sigmoid:
            return sigmoid(z) * sigmoid(-z);
        case bpls::Activation::tanh:
            return 4 * sigmoid(2 * z) * sigmoid(-2 * z);
        case bpls::Activation::relu:
            return z > 0 ? 1 : 0;
        case bpls::Activation::leaky_relu:
            return z > 0 ? 1 : Wide(1) / 100;
        case bpls::Activation::elu:
            return z > 0 ? 1 : std::exp(z);
        case bpls::Activation::softplus:
            return sigmoid(z);
        case bpls::Activation::softminus:
            return sigmoid(-z);
        default:
            return 1;
    }
}

// n lies inside of the range, at least a margin from its open ends.
Wide exact_inverse(bpls::Activation activation, Wide n) {
    const auto undo_softplus = [](Wide x) { return x + std::log(-std::expm1(-x)); };
    switch (activation) {
        case bpls::Activation::sigmoid:
            return n < 0.25 ? std::log(n) - std::log1p(-n) : 2 * std::atanh(2 * n - 1);
        case bpls::Activation::tanh:
            return std::atanh(n);
        case bpls::Activation::leaky_relu:
            return n > 0 ? n : n * 100;
        case bpls::Activation::elu:
            return n > 0 ? n : std::log1p(n);
        case bpls::Activation::softplus:
            return undo_softplus(n);
        case bpls::Activation::softminus:
            return -undo_softplus(-n);
        default:
            return n;
    }
}

// |result - exact| in units of the last place of `scale`.
template <class T>
Wide ulps(T result, Wide exact, Wide scale) {
    using limits = std::numeric_limits<T>;
    const T size = std::max(std::abs(static_cast<T>(scale)), limits::min());
    return std::abs(result - exact) / std::ldexp(Wide(limits::epsilon()), std::ilogb(size));
}

// z of every size: powers of two of both signs and points between them, and a fine grid where the functions bend.
template <class T>
std::vector<T> points() {
    using limits = std::numeric_limits<T>;
    std::vector<T> z;
    for (int exponent = limits::min_exponent - limits::digits; exponent < limits::max_exponent;
         exponent += sizeof(T) == sizeof(float) ? 1 : 8)
        for (const double mantissa : {1.0, 1.3, -1.1, -1.7})
            z.push_back(std::ldexp(static_cast<T>(mantissa), exponent));
    for (const double width : {2.0, 20.0, 800.0})
        for (const T x : random_values<T>(1500, 3)) z.push_back(x * static_cast<T>(width));
    return z;
}

// The bounds that bpls_fast/activations.py states; in double the formulas above are themselves a few ULP off.
template <class T>
void values_are_within_their_ulps(bpls::Activation activation) {
    const bool wider = sizeof(Wide) > sizeof(T);
    const Wide bound = wider ? 3 : 7, inverse_bound = wider ? 4 : 8;
    const T eps = std::numeric_limits<T>::epsilon();
    const std::vector<T> z = points<T>();
    std::vector<T> n(z.size()), slope(z.size()), back(z.size());
    bpls::forward(activation, z.data(), n.data(), 1, z.size());
    bpls::derivative(activation, z.data(), slope.data(), 1, z.size());
    bpls::inverse(activation, n.data(), back.data(), 1, n.size(), eps);
    for (std::size_t i = 0; i < z.size(); ++i) {
        const Wide forward = exact_forward(activation, z[i]);
        CHECK(ulps(n[i], forward, forward) <= bound);
        const Wide derivative = exact_derivative(activation, z[i]);
        CHECK(ulps(slope[i], derivative, derivative) <= bound);
        const bool open_zero = activation == bpls::Activation::sigmoid ||
                               activation == bpls::Activation::softplus ||
                               activation == bpls::Activation::softminus;
        const bool ends_at_one = activation == bpls::Activation::sigmoid ||
                                 activation == bpls::Activation::tanh ||
                                 (activation == bpls::Activation::elu && n[i] < 0);
        if ((open_zero && std::abs(n[i]) < eps) || (ends_at_one && std::abs(n[i]) > 1 - eps))
            continue;  // clipped
        const Wide inverse = exact_inverse(activation, n[i]);
        CHECK(ulps(back[i], inverse, std::max(std::abs(inverse), std::abs(Wide(n[i])))) <=
              inverse_bound);
    }
}

// A row of every length up to a few vectors: the sums and the last, unfilled vector.
template <class T>
void softmax_is_the_formula_at_every_length() {
    const T eps = std::numeric_limits<T>::epsilon();
    for (std::size_t count = 1; count <= 150; ++count) {
        std::vector<T> z = random_values<T>(count, static_cast<unsigned>(count)), n(count),
                       slope(count), back(count);
        for (T& x : z) x *= T(8);
        bpls::forward(bpls::Activation::softmax, z.data(), n.data(), 1, count);
        bpls::derivative(bpls::Activation::softmax, z.data(), slope.data(), 1, count);
        bpls::inverse(bpls::Activation::softmax, n.data(), back.data(), 1, count, eps);
        const Wide top = *std::max_element(z.begin(), z.end());
        Wide sum = 0, mean = 0;
        for (const T x : z) sum += std::exp(x - top);
        for (const T x : n) mean += std::log(Wide(x)) / Wide(count);
        for (std::size_t i = 0; i < count; ++i) {
            // z - top, at most 8, is rounded; then a few roundings of exp, sum and product.
            const Wide exact = std::exp(z[i] - top) / sum;
            CHECK(std::abs(n[i] - exact) <= 16 * eps * exact);
            CHECK(std::abs(slope[i] - exact * (1 - exact)) <= 32 * eps * exact);
            CHECK(std::abs(back[i] - (std::log(Wide(n[i])) - mean)) <= 32 * eps);
        }
    }
}

// In an array of any length, from any place on, and in place: the bits are those of the value alone.
template <class T>
void a_value_does_not_depend_on_its_place(bpls::Activation activation) {
    const std::vector<T> z = random_values<T>(67, 4);
    std::vector<T> alone(z.size());
    for (std::size_t i = 0; i < z.size(); ++i) bpls::forward(activation, &z[i], &alone[i], 1, 1);
    for (std::size_t first = 0; first < z.size(); ++first) {
        std::vector<T> n(z.begin() + static_cast<std::ptrdiff_t>(first), z.end());
        bpls::forward(activation, n.data(), n.data(), 1, n.size());
        CHECK(std::equal(n.begin(), n.end(), alone.begin() + static_cast<std::ptrdiff_t>(first)));
    }
}

void clipping_keeps_inverses_finite() {
    const std::vector<float> n = {-INFINITY, -2, -1, 0, 1, 2};
    std::vector<float> z(n.size());
    for (const auto activation : {bpls::Activation::sigmoid, bpls::Activation::tanh,
                                  bpls::Activation::softplus, bpls::Activation::softmax}) {
        bpls::inverse(activation, n.data(), z.data(), 1, n.size(), 1e-30f);
        for (const float value : z) CHECK(std::isfinite(value));
    }
}

void the_list_says_where_the_values_lie(const bpls::ActivationInfo& info) {
    CHECK(bpls::find_activation(info.name) == &info);
    CHECK(std::string_view(bpls::name_of(info.activation)) == info.name);
    std::vector<double> z = random_values<double>(64, 3), n(z.size());
    for (double& value : z) value = std::clamp(8 * value, info.domain.low, info.domain.high);
    bpls::forward(info.activation, z.data(), n.data(), 1, z.size());
    for (const double value : n) CHECK(info.range.low <= value && value <= info.range.high);
}

}  // namespace

int main() {
    return run_tests([] {
        for (const bpls::ActivationInfo& info : bpls::activation_list) {
            const bpls::Activation activation = info.activation;
            the_list_says_where_the_values_lie(info);
            inverse_undoes_forward<float>(activation);
            inverse_undoes_forward<double>(activation);
            derivative_is_the_slope(activation);
            if (!info.elementwise) continue;
            values_are_within_their_ulps<float>(activation);
            values_are_within_their_ulps<double>(activation);
            a_value_does_not_depend_on_its_place<float>(activation);
            a_value_does_not_depend_on_its_place<double>(activation);
        }
        softmax_is_the_formula_at_every_length<float>();
        softmax_is_the_formula_at_every_length<double>();
        clipping_keeps_inverses_finite();
        CHECK(bpls::find_activation("nothing") == nullptr);
    });
}
