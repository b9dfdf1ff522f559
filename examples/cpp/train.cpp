// train data.csv: Algorithm 1 on the library's kernels, one hidden layer of tanh and a linear output. The last column is
// the target. Prints the error, then the weights of each layer; the last row of a layer is its bias.
#include <bpls/bpls.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <random>

#include "matrix.hpp"

namespace {

constexpr std::size_t neurons = 12;
constexpr double margin = 1e-2;  // keeps the targets inside the range of tanh

Matrix random_weights(std::size_t rows, std::size_t cols, std::mt19937& random) {
    Matrix W = zeros(rows, cols);
    for (double& w : W.values) {
        const double high = random() >> 5, low = random() >> 6;
        w = -1 + 2 * ((high * 67108864 + low) / 9007199254740992);  // 53 bits, from -1 to 1
    }
    return W;
}

Matrix linear(const Matrix& A, const Matrix& W, bool bias, bpls::Activation activation = {}) {
    Matrix out = zeros(A.rows, W.cols);
    bpls::linear(view(A), view(W), {bias, activation}, out.values.data());
    return out;
}

Matrix minus(Matrix a, const Matrix& b) {
    for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] -= b.values[i];
    return a;
}

// Return the weights W that minimize |A W - B|. Two steps of iterative refinement remove the effect of the ridge.
Matrix solve(const Matrix& A, const Matrix& B) {
    Matrix G = zeros(A.cols + 1, A.cols + 1), C = zeros(A.cols + 1, B.cols), W = C;
    bpls::gram(view(A), view(B), {.bias = true}, G.values.data(), C.values.data());
    bpls::solve(view(G), view(C), {}, W.values.data());
    for (int step = 0; step < 2; ++step) {
        const Matrix residual = minus(C, linear(G, W, false));
        Matrix change = W;
        bpls::solve(view(G), view(residual), {}, change.values.data());
        for (std::size_t i = 0; i < W.values.size(); ++i) W.values[i] += change.values[i];
    }
    return W;
}

// Return the target of the layer below: A plus the smallest change for which the weights W give B.
Matrix pull_back(const Matrix& A, const Matrix& B, const Matrix& W) {
    Matrix transposed = zeros(W.cols, W.rows - 1), inverse = transposed, G = zeros(W.cols, W.cols);
    const auto inner = bpls::row_major(W.values.data(), W.rows - 1, W.cols);  // without the bias
    for (std::size_t i = 0; i < inner.rows; ++i)
        for (std::size_t j = 0; j < W.cols; ++j) transposed.at(j, i) = W.at(i, j);
    bpls::gram(inner, std::nullopt, {}, G.values.data(), nullptr);
    bpls::solve(view(G), view(transposed), {.eps = 1e-13}, inverse.values.data());
    const Matrix change = linear(minus(B, linear(A, W, true)), inverse, false);
    Matrix target = A;
    for (std::size_t i = 0; i < target.values.size(); ++i) target.values[i] += change.values[i];
    return target;
}

void run(const char* path) {
    const Matrix table = read_csv(path);
    Matrix X = zeros(table.rows, table.cols - 1), Y = zeros(table.rows, 1);
    for (std::size_t i = 0; i < table.rows; ++i)
        for (std::size_t j = 0; j < table.cols; ++j)
            (j < X.cols ? X.at(i, j) : Y.at(i, 0)) = table.at(i, j);

    std::mt19937 random(5);
    const Matrix start = random_weights(X.cols + 1, neurons, random);
    const Matrix A = linear(X, start, true, bpls::Activation::tanh);
    const Matrix output = solve(A, Y);
    Matrix target = pull_back(A, Y, output);
    bpls::inverse(bpls::Activation::tanh, target.values.data(), target.values.data(), target.rows,
                  target.cols, margin);
    const Matrix hidden = solve(X, target);

    const Matrix found = linear(linear(X, hidden, true, bpls::Activation::tanh), output, true);
    double squares = 0;
    for (const double error : minus(found, Y).values) squares += error * error;
    std::printf("error %.6f\n", std::sqrt(squares / static_cast<double>(Y.rows)));
    for (const Matrix* W : {&hidden, &output})
        for (std::size_t i = 0; i < W->values.size(); ++i)
            std::printf("%.17g%c", W->values[i], (i + 1) % W->cols == 0 ? '\n' : ',');
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "usage: train data.csv\n"), 2;
    try {
        run(arguments[1]);
    } catch (const std::exception& error) {
        return std::fprintf(stderr, "%s\n", error.what()), 1;
    }
}
