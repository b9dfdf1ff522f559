// KernelFunction and on_host: which calls run on the CPU without a closer look, and the shortest way for them.
#include <pybind11/numpy.h>
#include <structmember.h>

#include <algorithm>
#include <cstddef>

#include "fast_call.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

PyObject *auto_name = nullptr, *cpu_name = nullptr;  // interned, as constants in Python code are
PyTypeObject* array_type = nullptr;

// Whether a value is surely not on a device: of one of Python's own types, a NumPy array, or a tuple of such values.
bool is_on_host(PyObject* value) noexcept {
    if (value == Py_None || Py_TYPE(value) == array_type) return true;
    if (PyTuple_CheckExact(value)) {
        PyObject* const* first = PySequence_Fast_ITEMS(value);
        return std::all_of(first, first + PyTuple_GET_SIZE(value), is_on_host);
    }
    return PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
           PyUnicode_CheckExact(value);
}

// Whether a call surely runs on the CPU, by its backend and its other arguments.
bool runs_on_host(PyObject* backend, PyObject* const* first, PyObject* const* last) noexcept {
    return backend == cpu_name || (backend == auto_name && std::all_of(first, last, is_on_host));
}

PyObject* on_host(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
    return PyBool_FromLong(count > 0 &&
                           runs_on_host(arguments[0], arguments + 1, arguments + count));
}

// A Python function and the function of this module that does its work on the CPU. A call whose arguments are all on the
// host goes there directly, with the defaults filled in and without `backend`, the last parameter but one. Every other call,
// also one that lacks an argument or has one too many, goes to the Python function.
struct KernelFunction {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* attributes;
    PyObject* function;
    PyObject* core;
    PyObject* names;        // of all parameters, interned
    PyObject* defaults;     // of the last parameters
    Py_ssize_t positional;  // so many parameters may be passed without their names
};

constexpr Py_ssize_t most_parameters = 16;

// Fills the slots, one for each parameter; false if the arguments do not fit.
bool fill(const KernelFunction& of, PyObject* const* arguments, Py_ssize_t given,
          PyObject* keywords, PyObject** slots) noexcept {
    if (given > of.positional) return false;
    const Py_ssize_t count = PyTuple_GET_SIZE(of.names);
    const Py_ssize_t required = count - PyTuple_GET_SIZE(of.defaults);
    std::copy_n(arguments, given, slots);
    std::fill(slots + given, slots + count, nullptr);
    PyObject* const* names = PySequence_Fast_ITEMS(of.names);
    const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; ++i) {
        // By identity: a name that is not interned takes the longer way.
        const auto place = std::find(names, names + count, PyTuple_GET_ITEM(keywords, i)) - names;
        if (place == count || slots[place]) return false;
        slots[place] = arguments[given + i];
    }
    for (Py_ssize_t i = given; i < count; ++i) {
        if (slots[i]) continue;
        if (i < required) return false;
        slots[i] = PyTuple_GET_ITEM(of.defaults, i - required);
    }
    return true;
}

PyObject* call(PyObject* self, PyObject* const* arguments, std::size_t flags, PyObject* keywords) {
    const auto& of = *reinterpret_cast<KernelFunction*>(self);
    const Py_ssize_t count = PyTuple_GET_SIZE(of.names), backend = count - 2;
    PyObject* slots[most_parameters];
    if (fill(of, arguments, PyVectorcall_NARGS(static_cast<size_t>(flags)), keywords, slots) &&
        runs_on_host(slots[backend], slots, slots + backend)) {
        slots[backend] = slots[backend + 1];
        return fast_function(of.core)(nullptr, slots, count - 1);
    }
    return PyObject_Vectorcall(of.function, arguments, flags, keywords);
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject*) {
    PyObject *function, *core, *names, *defaults;
    Py_ssize_t positional;
    if (!PyArg_ParseTuple(arguments, "OO!O!O!n", &function, &PyCFunction_Type, &core, &PyTuple_Type,
                          &names, &PyTuple_Type, &defaults, &positional))
        return nullptr;
    const Py_ssize_t count = PyTuple_GET_SIZE(names);
    if (count < 2 || count > most_parameters || positional < 0 || positional > count ||
        PyTuple_GET_SIZE(defaults) > count || !fast_function(core)) {
        PyErr_SetString(PyExc_ValueError, "the parameters do not fit a kernel");
        return nullptr;
    }
    auto* made = PyObject_GC_New(KernelFunction, type);
    if (!made) return nullptr;
    made->vectorcall = call;
    made->attributes = nullptr;
    made->function = Py_NewRef(function);
    made->core = Py_NewRef(core);
    made->names = Py_NewRef(names);
    made->defaults = Py_NewRef(defaults);
    made->positional = positional;
    PyObject_GC_Track(made);
    return reinterpret_cast<PyObject*>(made);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    const auto& of = *reinterpret_cast<KernelFunction*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(of.attributes);
    Py_VISIT(of.function);
    Py_VISIT(of.core);
    Py_VISIT(of.defaults);
    return 0;
}

int clear(PyObject* self) {
    Py_CLEAR(reinterpret_cast<KernelFunction*>(self)->attributes);
    return 0;
}

void destroy(PyObject* self) {
    auto* of = reinterpret_cast<KernelFunction*>(self);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (PyObject* owned : {of->attributes, of->function, of->core, of->names, of->defaults})
        Py_XDECREF(owned);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

// A function is also a method of the class whose attribute it is; inspect and pydoc know a routine by this.
PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* qualified_name(PyObject* self, PyObject*) {
    return PyObject_GetAttrString(self, "__qualname__");
}

PyObject* represent(PyObject* self) {
    PyObject* name = qualified_name(self, nullptr);
    if (!name) return nullptr;
    PyObject* text = PyUnicode_FromFormat("<kernel function %U>", name);
    Py_DECREF(name);
    return text;
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(KernelFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(KernelFunction, attributes), READONLY, nullptr},
    {}};
PyMethodDef methods[] = {{"__reduce__", qualified_name, METH_NOARGS, nullptr}, {}};
PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

PyType_Slot slots_of_type[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                               {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                               {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                               {Py_tp_clear, reinterpret_cast<void*>(clear)},
                               {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                               {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                               {Py_tp_repr, reinterpret_cast<void*>(represent)},
                               {Py_tp_members, members},
                               {Py_tp_methods, methods},
                               {Py_tp_getset, properties},
                               {0, nullptr}};
PyType_Spec type_spec = {"bpls_fast._core.KernelFunction", sizeof(KernelFunction), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                             Py_TPFLAGS_METHOD_DESCRIPTOR,
                         slots_of_type};

PyMethodDef on_host_method =
    fast_method("on_host", on_host, "on_host(backend, /, *arrays)\n--\n\n");

}  // namespace

void register_dispatch(py::module_& module) {
    auto_name = PyUnicode_InternFromString("auto");
    cpu_name = PyUnicode_InternFromString("cpu");
    array_type = py::detail::npy_api::get().PyArray_Type_;
    PyObject* type = PyType_FromSpec(&type_spec);
    if (!auto_name || !cpu_name || !type) throw py::error_already_set();
    module.attr("KernelFunction") = py::reinterpret_steal<py::object>(type);
    define(module, on_host_method);
}

}  // namespace bpls::python
