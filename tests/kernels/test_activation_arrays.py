"""Activations of arrays of every layout, shape, type and number of threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.activation_formulas import (
    Array,
    each_dtype,
    each_elementwise,
    each_method,
    each_name,
    exact,
    ulps,
    ulps_apart,
)

# Layouts, shapes, types, threads.


def packed(x: Array) -> Array:
    """Make x a field of a packed record: its strides are no multiple of its item size."""
    records = np.zeros(x.shape, np.dtype([("pad", np.uint8), ("x", x.dtype)]))
    records["x"] = x
    return records["x"]


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "fortran": np.asfortranarray,
    "transposed": lambda x: x.transpose(2, 0, 1),
    "every second": lambda x: x[:, ::2, ::3],
    "reversed": lambda x: x[::-1, :, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:, :1, :], x.shape),
    "broadcast along the last axis": lambda x: np.broadcast_to(x[:, :, :1], x.shape),
    "packed records": packed,
    "read-only": read_only,
}


@each_dtype
@each_name
@each_method
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides_give_the_answer_of_the_contiguous_array(
    name: str, dtype: type, method: str, layout: str
) -> None:
    base = np.random.default_rng(1).uniform(0.05, 0.9, (5, 7, 11)).astype(dtype)
    x = LAYOUTS[layout](base)
    before = x.copy()
    function = getattr(bf.activations[name], method)
    result = function(x)
    assert result.shape == x.shape
    assert result.dtype == x.dtype
    assert result.flags.c_contiguous
    assert not np.shares_memory(result, x)
    np.testing.assert_array_equal(x, before)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(
        result, function(np.ascontiguousarray(x)), rtol=32 * eps, atol=32 * eps
    )


@each_dtype
@each_elementwise
@each_method
def test_a_zero_dimensional_array_gives_a_zero_dimensional_array(
    name: str, dtype: type, method: str
) -> None:
    x = np.array(0.25, dtype)
    for argument in (x, dtype(0.25)):
        result = getattr(bf.activations[name], method)(argument)
        assert isinstance(result, np.ndarray)
        assert result.shape == ()
        assert result.dtype == dtype
        assert ulps_apart(result, exact(name, method, x)) <= ulps(method, x.dtype)


@each_method
def test_softmax_of_a_zero_dimensional_array_is_a_value_error(method: str) -> None:
    with pytest.raises(ValueError, match="n" if method == "inverse" else "z"):
        getattr(bf.activations["softmax"], method)(np.array(0.25))


@each_dtype
@each_name
@each_method
@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (2, 0, 5)])
def test_an_empty_array_gives_an_empty_array(
    name: str, dtype: type, method: str, shape: tuple[int, ...]
) -> None:
    result = getattr(bf.activations[name], method)(np.empty(shape, dtype))
    assert result.shape == shape
    assert result.dtype == dtype


@each_name
@each_method
@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8", "bool", "complex128", "O", "U3"])
def test_another_dtype_is_a_type_error_naming_the_argument(
    name: str, method: str, dtype: str
) -> None:
    argument = "n" if method == "inverse" else "z"
    with pytest.raises(TypeError, match=rf"\b{argument}\b"):
        getattr(bf.activations[name], method)(np.ones((2, 3)).astype(dtype))


@each_name
@each_method
@pytest.mark.parametrize(
    ("n_threads", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)]
)
def test_a_wrong_n_threads_is_an_error_naming_it(
    name: str, method: str, n_threads: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="n_threads"):
        getattr(bf.activations[name], method)(np.full(3, 0.5), n_threads=n_threads)


@each_dtype
@each_name
@each_method
def test_the_number_of_threads_changes_no_bit(name: str, dtype: type, method: str) -> None:
    x = np.random.default_rng(2).normal(size=(30_011, 10)).astype(dtype)
    function = getattr(bf.activations[name], method)
    one = function(x, n_threads=1)
    for n_threads in (None, 2, 3, 7):
        assert function(x, n_threads=n_threads).tobytes() == one.tobytes()
