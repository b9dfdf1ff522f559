// gram and cross.
#include <cmath>

#include "arguments.hpp"
#include "fast_call.hpp"
#include "gil.hpp"
#include "output.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// What the argument `out` of gram holds: an array, or, with B, a pair.
struct GramOut {
    const char *G_name = "out", *C_name = "out[1]";
    py::handle G, C = py::none();

    GramOut(py::handle out, bool pair) : G(out) {
        if (!pair || out.is_none()) return;
        if (!PyTuple_Check(out.ptr()) || PyTuple_GET_SIZE(out.ptr()) != 2)
            throw py::type_error("out is a " + type_name(out) +
                                 "; expected None or a tuple of two arrays, (G, C)");
        G_name = "out[0]";
        G = PyTuple_GET_ITEM(out.ptr(), 0);
        C = PyTuple_GET_ITEM(out.ptr(), 1);
    }
};

void check_apart(const Output& out, const py::array& A, const char* B_name, const py::array* B,
                 const GramWeights& weights) {
    out.check_apart("A", A);
    if (B) out.check_apart(B_name, *B);
    if (weights.array) out.check_apart("sample_weight", *weights.array);
}

bool finite_diagonal(const double* G, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; ++i)
        if (!std::isfinite(G[i * (n + 1)])) return false;
    return true;
}

py::object gram_(py::handle A_, py::handle B_, py::handle bias_, py::handle scale_,
                 py::handle center_, py::handle sample_weight, py::handle out_,
                 py::handle check_finite_, py::handle n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    const bool bias = as_flag("bias", bias_);
    const bool center = as_flag("center", center_);
    const bool checks = as_flag("check_finite", check_finite_);
    const std::size_t n = A.cols + (bias ? 1 : 0);
    check_size("A", n, n);
    std::optional<py::array> B_array;
    std::optional<ConstMatrix> B;
    if (!B_.is_none()) {
        B_array = as_array("B", B_);
        B = as_matrix("B", *B_array);
        check_rows("B", *B, A.rows, "one per row of A");
        check_size("B", n, B->cols);
    }
    const GramScale scale(scale_, A.cols);
    const GramWeights weights(sample_weight, A.rows, checks);
    const GramOptions options{bias, weights.column, as_threads(n_threads), scale.factors, center};

    const GramOut out(out_, B.has_value());
    const auto side = static_cast<py::ssize_t>(n);
    const py::ssize_t G_shape[] = {side, side};
    WholeOutput G(out.G_name, out.G, G_shape, checks);
    check_apart(G, A_array, "B", B ? &*B_array : nullptr, weights);
    std::optional<WholeOutput> C;
    if (B) {
        const py::ssize_t C_shape[] = {side, B_array->shape(1)};
        C.emplace(out.C_name, out.C, C_shape, checks);
        check_apart(*C, A_array, "B", &*B_array, weights);
        C->check_apart(out.G_name, G.array());
    }
    {
        const WithoutGil released(A.rows, n, n + (B ? B->cols : 0));
        gram(A, B, options, G.data(), C ? C->data() : nullptr);
        // A non-finite value of A makes the diagonal non-finite, so the data need no separate pass.
        if (checks && !finite_diagonal(G.data(), n))
            raise_not_finite("A", A, nullptr, nullptr, options);
        if (checks && C && !all_finite(C->data(), C->size()))
            raise_not_finite("A", A, "B", &*B, options);
        G.finish();
        if (C) C->finish();
    }
    if (C) return py::make_tuple(G.array(), C->array());
    return G.array();
}

py::object cross_(py::handle A_, py::handle D_, py::handle bias_, py::handle scale_,
                  py::handle sample_weight, py::handle out, py::handle check_finite_,
                  py::handle n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    const bool bias = as_flag("bias", bias_);
    const bool checks = as_flag("check_finite", check_finite_);
    const py::array D_array = as_array("D", D_);
    const ConstMatrix D = as_matrix("D", D_array);
    const std::size_t n = A.cols + (bias ? 1 : 0);
    check_rows("D", D, A.rows, "one per row of A");
    check_size("A", n, D.cols);
    const GramScale scale(scale_, A.cols);
    const GramWeights weights(sample_weight, A.rows, checks);
    const GramOptions options{bias, weights.column, as_threads(n_threads), scale.factors};

    const py::ssize_t shape[] = {static_cast<py::ssize_t>(n), D_array.shape(1)};
    WholeOutput C("out", out, shape, checks);
    check_apart(C, A_array, "D", &D_array, weights);
    {
        const WithoutGil released(A.rows, n, D.cols);
        cross(A, D, options, C.data());
        if (checks && !all_finite(C.data(), C.size())) raise_not_finite("A", A, "D", &D, options);
        C.finish();
    }
    return C.array();
}

}  // namespace

void register_gram(py::module_& module) {
    define<gram_>(module, "gram",
                  "gram(A, B, bias, scale, center, sample_weight, out, check_finite, n_threads, "
                  "/)\n--\n\n");
    define<cross_>(module, "cross",
                   "cross(A, D, bias, scale, sample_weight, out, check_finite, n_threads, "
                   "/)\n--\n\n");
}

}  // namespace bpls::python
