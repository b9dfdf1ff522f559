// PackedNetwork: prediction with the least overhead that Python allows. Returns None for unsupported input (other types and
// layouts, rows of another length or with values that are not finite); the caller then uses the general path, which has all
// conversions and error messages.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <optional>

#include "arguments.hpp"
#include "fast_call.hpp"
#include "output.hpp"
#include "register.hpp"
#include "timing.hpp"

namespace bpls::python {
namespace {

// An array, and its element type if kernels read it.
struct Rows {
    std::optional<py::array> array;
    std::optional<DType> dtype;

    explicit Rows(py::handle x) {
        if (!py::isinstance<py::array>(x)) return;
        array = py::reinterpret_borrow<py::array>(x);
        dtype = find_dtype(*array);
    }
};

template <class In>
using Kept = std::optional<Predictor<In>>;

class PackedNetwork {
 public:
    PackedNetwork(const std::vector<py::array_t<double>>& weights, bool bias,
                  const std::vector<std::string>& activations, std::optional<double> input_scale,
                  py::object labels, const std::optional<py::array_t<double>>& input_limits)
        : network_(made(weights, bias, activations, input_scale, input_limits)),
          labels_(std::move(labels)) {}

    // The label of one row's largest output, or, where there are no labels, the outputs.
    py::object predict_one(py::handle x) {
        const Rows row(x);
        if (!row.dtype || row.array->ndim() != 1 ||
            row.array->shape(0) != static_cast<py::ssize_t>(network_.inputs()) ||
            row.array->strides(0) != row.array->itemsize())
            return py::none();
        return visit_dtype(*row.dtype, [&]<class In>() { return one<In>(*row.array); });
    }

    // The outputs of many rows, before or after the last activation.
    py::object forward(const py::object& X, bool activated, const py::object& n_threads) {
        const int threads = as_threads(n_threads);
        const Rows rows(X);
        if (!rows.dtype || rows.array->ndim() != 2 ||
            rows.array->shape(1) != static_cast<py::ssize_t>(network_.inputs()))
            return py::none();
        return visit_dtype(*rows.dtype,
                           [&]<class In>() { return many<In>(*rows.array, activated, threads); });
    }

    // Seconds per row of predict() itself, over `repeats` calls in a row, and of decide().
    std::pair<double, double> time(const py::array& x, int repeats) {
        const Rows row(x);
        if (predict_one(x).is_none()) throw py::value_error("x is not a row of this network");
        return visit_dtype(*row.dtype, [&]<class In>() { return timed<In>(*row.array, repeats); });
    }

 private:
    static Network made(const std::vector<py::array_t<double>>& weights, bool bias,
                        const std::vector<std::string>& activations,
                        std::optional<double> input_scale,
                        const std::optional<py::array_t<double>>& input_limits) {
        if (activations.size() != weights.size())
            throw py::value_error("activations are not one for each of the weights");
        std::vector<Layer> layers;
        for (std::size_t l = 0; l < weights.size(); ++l)
            layers.push_back(
                {as_matrix("weights", weights[l]), as_activation(py::str(activations[l]))});
        InputLimits limits;
        if (input_limits) {
            if (input_limits->ndim() != 2 || input_limits->shape(0) != 2)
                throw py::value_error("input_limits are not two rows");
            for (py::ssize_t j = 0; j < input_limits->shape(1); ++j) {
                limits.lower.push_back(input_limits->at(0, j));
                limits.upper.push_back(input_limits->at(1, j));
            }
        }
        return Network(layers, bias, input_scale, {}, std::move(limits));
    }

    // Created on first use; null if the weights are too large for its type.
    template <class In>
    Predictor<In>* predictor() {
        auto& kept = std::get<Kept<In>>(predictors_);
        if (!kept) try {
                kept.emplace(network_);
            } catch (const std::invalid_argument&) {
                return nullptr;
            }
        return &*kept;
    }

    // A row takes about a microsecond: the GIL is kept, so no other call uses the scratch memory.
    template <class In>
    py::object one(const py::array& x) {
        auto* of = predictor<In>();
        const auto* from = static_cast<const In*>(x.data());
        if (!of || reinterpret_cast<std::uintptr_t>(from) % alignof(In) != 0) return py::none();
        if (!labels_.is_none()) {
            const std::ptrdiff_t place = of->decide(from);
            if (place < 0) return py::none();
            return py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(labels_.ptr(), place));
        }
        using Out = typename Predictor<In>::Out;
        const auto outputs = static_cast<py::ssize_t>(of->outputs());
        py::array out = new_array(dtype_of<Out>(), {&outputs, 1});
        if (!of->predict(from, static_cast<Out*>(out.mutable_data()))) return py::none();
        return out;
    }

    template <class In>
    py::object many(const py::array& X, bool activated, int threads) {
        using Out = typename Predictor<In>::Out;
        const Predictor<In>* of = predictor<In>();
        if (!of) return py::none();
        const ConstMatrix rows = as_matrix("X", X);
        check_size("X", rows.rows, of->outputs());
        const py::ssize_t shape[] = {X.shape(0), static_cast<py::ssize_t>(of->outputs())};
        py::array out = new_array(dtype_of<Out>(), shape);
        auto* to = static_cast<Out*>(out.mutable_data());
        bool finite;
        {
            const py::gil_scoped_release release;
            finite = of->predict(rows, to, threads, activated);
        }
        return finite ? py::object(out) : py::none();
    }

    template <class In>
    std::pair<double, double> timed(const py::array& x, int repeats) {
        Predictor<In>& of = *predictor<In>();
        const auto* from = static_cast<const In*>(x.data());
        std::vector<typename Predictor<In>::Out> out(of.outputs());
        const double predicted = seconds_per_call(repeats, [&] { of.predict(from, out.data()); });
        return {predicted, seconds_per_call(repeats, [&] { of.decide(from); })};
    }

    Network network_;
    py::object labels_;  // a tuple, or None
    EachElement<std::tuple, Kept> predictors_;
};

// Called by Python with x itself, not with a tuple of arguments.
PyObject* predict_one(PyObject* self, PyObject* x) noexcept {
    return translated([&] { return py::cast<PackedNetwork&>(py::handle(self)).predict_one(x); });
}

PyMethodDef predict_one_method = {"predict_one", predict_one, METH_O,
                                  "predict_one($self, x, /)\n--\n\nThe label or the outputs of one "
                                  "row; None if the general path is needed."};

}  // namespace

void register_predictor(py::module_& module) {
    py::class_<PackedNetwork> type(module, "PackedNetwork");
    type.def(
        py::init<const std::vector<py::array_t<double>>&, bool, const std::vector<std::string>&,
                 std::optional<double>, py::object, const std::optional<py::array_t<double>>&>());
    type.def("forward", &PackedNetwork::forward);
    type.def("time", &PackedNetwork::time);
    type.attr("predict_one") = py::reinterpret_steal<py::object>(
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &predict_one_method));
}

}  // namespace bpls::python
