// Fits y = 2x + 1 with one layer solve.
#include <bpls/bpls.hpp>
#include <cmath>
#include <cstdio>

int main() {
    const double x[] = {0, 1, 2, 3}, y[] = {1, 3, 5, 7};
    double W[2];
    bpls::solve_layer(bpls::row_major(x, 4, 1), bpls::row_major(y, 4, 1), {.bias = true},
                      {.eps = 0}, W);
    std::printf("bpls_fast %s: y = %gx + %g\n", bpls::version(), W[0], W[1]);
    return std::abs(W[0] - 2) < 1e-12 && std::abs(W[1] - 1) < 1e-12 ? 0 : 1;
}
