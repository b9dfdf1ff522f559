// Round trips and derivatives of the activations. The Python tests go over the whole float range.
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

void clipping_keeps_inverses_finite() {
    const std::vector<float> n = {-INFINITY, -2, -1, 0, 1, 2};
    std::vector<float> z(n.size());
    for (const auto activation : {bpls::Activation::sigmoid, bpls::Activation::tanh,
                                  bpls::Activation::softplus, bpls::Activation::softmax}) {
        bpls::inverse(activation, n.data(), z.data(), 1, n.size(), 1e-30f);
        for (const float value : z) CHECK(std::isfinite(value));
    }
}

}  // namespace

int main() {
    return run_tests([] {
        for (int i = 0; i < bpls::activation_count; ++i) {
            const auto activation = static_cast<bpls::Activation>(i);
            inverse_undoes_forward<float>(activation);
            inverse_undoes_forward<double>(activation);
            derivative_is_the_slope(activation);
        }
        clipping_keeps_inverses_finite();
    });
}
