"""Calls of kernel functions: they look like Python's functions, and the short way to the core gives the same answers.

A call with NumPy's arrays does not run the Python function; one with a sequence or a subclass does.
"""

import copy
import gc
import inspect
import pickle
import pydoc
import sys
import tracemalloc
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast import _core
from bpls_fast.kernels.function import kernel
from tests.support.reference import same_bits

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(9, 4)).astype(np.float32), RNG.normal(size=(9, 2)).astype(np.float32)
W, N = RNG.normal(size=(4, 2)).astype(np.float32), np.full((9, 2), 0.5, np.float32)
G, C = bf.gram(A, B)
TANH = bf.activations["tanh"]

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "gram": (bf.gram, (A,)),
    "cross": (bf.cross, (A, B)),
    "solve": (bf.solve, (G, C)),
    "solve_layer": (bf.solve_layer, (A, B)),
    "solve_batched": (bf.solve_batched, (G[None], C[None])),
    "linear": (bf.linear, (A, W)),
    "tangent": (bf.tangent, (A, W, N)),
}
ACTIVATION_CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "forward": (TANH.forward, (N,)),
    "inverse": (TANH.inverse, (N,)),
    "derivative": (TANH.derivative, (N,)),
    "jacobian": (TANH.jacobian, (B, N)),
}
ALL = CALLS | ACTIVATION_CALLS

each_function = pytest.mark.parametrize("name", CALLS)
each_call = pytest.mark.parametrize("name", ALL)


class Subclass(np.ndarray):
    """An array that is not exactly NumPy's, so that calls with it run the Python function."""


# ---- as functions of Python


@each_function
def test_a_kernel_has_the_name_signature_and_docstring_of_its_function(name: str) -> None:
    function: Any = getattr(bf, name)
    assert function.__name__ == function.__qualname__ == name
    assert function.__module__.startswith("bpls_fast.kernels.")
    assert callable(function)
    assert inspect.isroutine(function)
    assert repr(function) == f"<kernel function {name}>"
    parameters = inspect.signature(function).parameters
    assert list(parameters)[-4:] == ["out", "check_finite", "backend", "n_threads"]
    assert parameters["check_finite"].default is True
    assert parameters["backend"].default == "auto"
    assert all(
        parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        for option in ("out", "check_finite", "backend", "n_threads")
    )
    text = pydoc.plain(pydoc.render_doc(function))
    assert f"{name}(" in text
    assert "check_finite: 'bool' = True" in text or "check_finite: bool = True" in text
    assert "Parameters" in text


@each_function
def test_the_core_takes_the_parameters_in_their_order_without_the_backend(name: str) -> None:
    given = [key for key in inspect.signature(getattr(bf, name)).parameters if key != "backend"]
    assert list(inspect.signature(getattr(_core, name)).parameters) == given


@each_function
def test_a_kernel_can_be_pickled_and_copied_by_its_name(name: str) -> None:
    function = getattr(bf, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function


def test_a_kernel_is_a_method_where_it_is_an_attribute_of_a_class() -> None:
    class Rows:
        gram = bf.gram
        __array__ = A.__array__

    assert Rows.gram is bf.gram
    assert isinstance(Rows().gram, types.MethodType)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, r"missing 2 required positional arguments: 'A' and 'W'"),
        ((A,), {}, r"missing 1 required positional argument: 'W'"),
        ((A, W, W), {}, r"takes 2 positional arguments but 3"),
        ((A, W), {"A": A}, r"multiple values for argument 'A'"),
        ((A, W), {"weights": W}, r"unexpected keyword argument 'weights'"),
    ],
    ids=["nothing", "one", "too many", "twice", "unknown"],
)
def test_arguments_that_do_not_fit_are_the_type_errors_of_python(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=rf"^linear\(\) .*{message}"):
        bf.linear(*arguments, **options)


def test_the_core_says_how_many_arguments_it_takes() -> None:
    with pytest.raises(TypeError, match="expected 7 arguments, not 1"):
        _core.linear(A)  # type: ignore[call-arg]


# ---- both ways give the same


@each_function
def test_sequences_and_subclasses_take_the_longer_way_to_the_same_bits(name: str) -> None:
    function, arrays = CALLS[name]
    expected = function(*arrays)
    assert same_bits(function(*(array.view(Subclass) for array in arrays)), expected)
    assert same_bits(function(*arrays, backend="cpu"), expected)
    assert same_bits(function(*arrays, backend="".join(["c", "pu"])), expected)
    lists = [array.astype(np.float64).tolist() for array in arrays]
    wide = [array.astype(np.float64) for array in arrays]
    assert same_bits(function(*lists), function(*wide))


@each_function
def test_arguments_may_be_passed_by_name_in_any_order(name: str) -> None:
    function, arrays = CALLS[name]
    named = dict(zip(inspect.signature(function).parameters, arrays, strict=False))
    expected = function(*arrays)
    assert same_bits(function(**dict(reversed(named.items()))), expected)
    spelled = {"".join(list(key)): value for key, value in named.items()}  # keys not interned
    assert same_bits(function(**spelled, **{"n_" + "threads": 1}), expected)


def test_a_kernel_runs_the_python_function_only_if_it_must() -> None:
    ran: list[str] = []

    @kernel(_core.forward)
    def forward(
        activation: str, z: Any, out: Any = None, backend: str = "auto", n: Any = None
    ) -> Any:
        ran.append(backend)
        return None

    assert forward("tanh", N) is not None
    assert forward("tanh", N, backend="cpu") is not None
    assert ran == []
    assert forward("tanh", N.tolist()) is None
    assert forward("tanh", N, backend="cuda") is None
    assert forward("tanh", N, (N, N.tolist())) is None
    assert ran == ["auto", "cuda", "auto"]


@pytest.mark.parametrize(
    ("core", "names", "defaults", "positional"),
    [
        (_core.gram, ("A",), (), 1),
        (_core.gram, ("A", "backend", "n"), (1, 2, 3, 4), 1),
        (_core.gram, ("A", "backend", "n"), (), 4),
        (_core.gram, tuple("abcdefghijklmnopq"), (), 1),
        (_core.config, ("A", "backend", "n"), (), 1),
    ],
    ids=["one", "more defaults", "more positional", "too many", "no such function"],
)
def test_a_kernel_that_cannot_be_called_is_refused(
    core: Any, names: tuple[str, ...], defaults: tuple[Any, ...], positional: int
) -> None:
    with pytest.raises(ValueError, match="parameters do not fit"):
        _core.KernelFunction(print, core, names, defaults, positional)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("auto", A, None), True),
        (("auto", (A, A), 1, 1.5, True, "tanh"), True),
        (("cpu", [1.0]), True),
        (("auto", [1.0]), False),
        (("auto", (A, [1.0])), False),
        (("auto", A.view(Subclass)), False),
        (("cuda", A), False),
        (("gpu", A), False),
        ((), False),
    ],
)
def test_what_is_surely_on_the_host(arguments: tuple[Any, ...], expected: bool) -> None:
    assert _core.on_host(*arguments) is expected


# ---- references, memory, threads


def options_of(name: str) -> list[dict[str, Any]]:
    function, arrays = ALL[name]
    out = function(*arrays)
    bad: dict[str, Any] = {"n_threads": 0}
    checks: list[dict[str, Any]] = [{"check_finite": False}] if name in CALLS else []
    return [{}, {"n_threads": 1}, {"out": out}, *checks, bad, {"out": 3}]


@each_call
def test_calls_keep_no_references_and_no_memory(name: str) -> None:
    function, arrays = ALL[name]
    ways = options_of(name)
    watched = [*arrays, *(x for way in ways for x in way.values()), None, True, "auto"]

    def call_all() -> None:
        for way in ways:
            for _ in range(100):
                try:
                    function(*arrays, **way)
                except (TypeError, ValueError):
                    continue

    call_all()
    gc.collect()
    counts = [sys.getrefcount(x) for x in watched]
    tracemalloc.start()
    try:
        call_all()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            call_all()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 500 * len(
        ways
    )  # an object that leaks in each call would be 2500 objects per way
    after = [sys.getrefcount(x) for x in watched]
    assert max(abs(a - b) for a, b in zip(after, counts, strict=True)) < 100


def test_a_kernel_that_is_deleted_frees_its_function() -> None:
    def forward(
        activation: str, z: Any, out: Any = None, backend: str = "auto", n: Any = None
    ) -> Any:
        return z

    before = sys.getrefcount(forward)
    for _ in range(50):
        wrapped: Any = kernel(_core.forward)(forward)
        wrapped.itself = wrapped  # only the garbage collector can free it
    del wrapped
    gc.collect()
    assert sys.getrefcount(forward) == before


def test_threads_that_call_at_once_get_the_answers_of_one() -> None:
    expected = {name: function(*arrays).tobytes() for name, (function, arrays) in ALL.items()}

    def wrong(thread: int) -> list[str]:
        outs = {name: np.empty_like(function(*arrays)) for name, (function, arrays) in ALL.items()}
        names = list(ALL)[thread:] + list(ALL)[:thread]
        return [
            name
            for _ in range(200)
            for name in names
            if ALL[name][0](*ALL[name][1], out=outs[name]).tobytes() != expected[name]
        ]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(wrong, range(4))) == [[]] * 4
