// gram and cross.
#include "arguments.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

py::array_t<double> new_matrix(std::size_t rows, std::size_t cols) {
    return py::array_t<double>({static_cast<py::ssize_t>(rows), static_cast<py::ssize_t>(cols)});
}

py::object gram_(const py::object& A_, const py::object& B_, const py::object& bias_,
                 const py::object& scale_, const py::object& center_,
                 const py::object& sample_weight, const py::object& n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    const bool bias = as_flag("bias", bias_);
    const bool center = as_flag("center", center_);
    const std::size_t n = A.cols + (bias ? 1 : 0);
    check_size("A", n, n);
    // An empty array would cost as much as a small product.
    std::optional<py::array> B_array;
    std::optional<ConstMatrix> B;
    if (!B_.is_none()) {
        B_array = as_array("B", B_);
        B = as_matrix("B", *B_array);
        check_rows("B", *B, A.rows, "one per row of A");
        check_size("B", n, B->cols);
    }
    const GramScale scale(scale_, A.cols);
    const GramWeights weights(sample_weight, A.rows);
    const GramOptions options{bias, weights.column, as_threads(n_threads), scale.factors, center};

    py::array_t<double> G = new_matrix(n, n);
    std::optional<py::array_t<double>> C;
    if (B) C = new_matrix(n, B->cols);
    double* G_data = G.mutable_data();
    double* C_data = C ? C->mutable_data() : nullptr;
    {
        const py::gil_scoped_release release;
        gram(A, B, options, G_data, C_data);
    }
    // A non-finite value of A makes the diagonal non-finite, so the data need no separate pass.
    if (!all_finite(G_data, n, n + 1)) raise_not_finite("A", A, nullptr, nullptr, options);
    if (!B) return G;
    if (!all_finite(C_data, n * B->cols)) raise_not_finite("A", A, "B", &*B, options);
    return py::make_tuple(G, *C);
}

py::array_t<double> cross_(const py::object& A_, const py::object& D_, const py::object& bias_,
                           const py::object& scale_, const py::object& sample_weight,
                           const py::object& n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    const bool bias = as_flag("bias", bias_);
    const py::array D_array = as_array("D", D_);
    const ConstMatrix D = as_matrix("D", D_array);
    const std::size_t n = A.cols + (bias ? 1 : 0);
    check_rows("D", D, A.rows, "one per row of A");
    check_size("A", n, D.cols);
    const GramScale scale(scale_, A.cols);
    const GramWeights weights(sample_weight, A.rows);
    const GramOptions options{bias, weights.column, as_threads(n_threads), scale.factors};

    py::array_t<double> C = new_matrix(n, D.cols);
    double* C_data = C.mutable_data();
    {
        const py::gil_scoped_release release;
        cross(A, D, options, C_data);
    }
    if (!all_finite(C_data, n * D.cols)) raise_not_finite("A", A, "D", &D, options);
    return C;
}

}  // namespace

void register_gram(py::module_& module) {
    module.def("gram", &gram_);
    module.def("cross", &cross_);
}

}  // namespace bpls::python
