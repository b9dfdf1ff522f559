// Functions of the module that Python calls with an array of positional arguments: no tuple, no conversion by signature.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

namespace bpls::python {

namespace py = pybind11;

// Calls call(), which returns an object. Python's exceptions, pybind11's and the library's become the error of the interpreter.
template <class F>
PyObject* translated(F&& call) noexcept {
    try {
        return call().release().ptr();
    } catch (py::error_already_set& error) {
        error.restore();
    } catch (...) {
        py::detail::try_translate_exceptions();
    }
    return nullptr;
}

using FastFunction = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

// The method of a function that is called in this way.
inline PyMethodDef fast_method(const char* name, FastFunction function, const char* doc) noexcept {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
            METH_FASTCALL, doc};
}

// Returns the function of an object of Python that was made of such a method, null for any other method.
inline FastFunction fast_function(PyObject* object) noexcept {
    if (PyCFunction_GET_FLAGS(object) != METH_FASTCALL) return nullptr;
    return reinterpret_cast<FastFunction>(
        reinterpret_cast<void (*)()>(PyCFunction_GET_FUNCTION(object)));
}

template <auto function>
struct FastCall;

// Of a function that takes its arguments as borrowed handles.
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct FastCall<function> {
    static PyObject* call(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
        return translated([&] {
            if (count != static_cast<Py_ssize_t>(sizeof...(Arguments)))
                throw py::type_error("expected " + std::to_string(sizeof...(Arguments)) +
                                     " arguments, not " + std::to_string(count));
            return call_with(arguments, std::index_sequence_for<Arguments...>());
        });
    }

 private:
    template <std::size_t... i>
    static py::object call_with(PyObject* const* arguments, std::index_sequence<i...>) {
        return function(py::handle(arguments[i])...);
    }
};

// Adds a function of the C API to the module. The method and what its members point to must never go away. Its doc begins with
// the signature that inspect reads: "name(arguments, /)\n--\n\n".
inline void define(py::module_& module, PyMethodDef& method) {
    const py::object of = module.attr("__name__");
    PyObject* made = PyCFunction_NewEx(&method, nullptr, of.ptr());
    if (!made) throw py::error_already_set();
    module.attr(method.ml_name) = py::reinterpret_steal<py::object>(made);
}

template <auto function>
void define(py::module_& module, const char* name, const char* signature) {
    static PyMethodDef method = fast_method(name, FastCall<function>::call, signature);
    define(module, method);
}

}  // namespace bpls::python
