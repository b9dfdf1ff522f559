"""`out` and `check_finite` of the GPU's kernels: as those of the CPU, with arrays on the device or on the host."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast import kernels as surface
from bpls_fast.cuda import kernels
from bpls_fast.cuda.array import asarray

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(7, 4)).astype(np.float32), RNG.normal(size=(7, 3)).astype(np.float32)
W, N = RNG.normal(size=(4, 3)).astype(np.float32), np.full((7, 3), 0.5, np.float32)
G, C = bf.gram(A.astype(np.float64), B)
TANH, SOFTMAX = "tanh", "softmax"

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "gram": (bf.gram, (A,), {}),
    "gram, centred": (bf.gram, (A,), {"center": True, "scale": 0.5, "bias": True}),
    "cross": (bf.cross, (A, B), {"scale": np.arange(1.0, 5.0)}),
    "solve": (bf.solve, (G, C), {}),
    "solve_layer": (bf.solve_layer, (A, B), {"bias": True}),
    "solve_batched": (bf.solve_batched, (G[None], C[None]), {}),
    "linear": (bf.linear, (A, W), {"activation": TANH}),
    "tangent": (bf.tangent, (A, W, N), {"activation": TANH}),
    "residual": (surface.residual, (A, W, B), {}),
    "target": (surface.target, (A, W, N), {"activation": TANH, "margin": 0.01}),
    "forward": (bf.activations[TANH].forward, (B,), {}),
    "inverse": (bf.activations[TANH].inverse, (N,), {}),
    "derivative": (bf.activations[TANH].derivative, (B,), {}),
    "jacobian": (bf.activations[TANH].jacobian, (B, N), {}),
    "forward of softmax": (bf.activations[SOFTMAX].forward, (B,), {}),
    "derivative of softmax": (bf.activations[SOFTMAX].derivative, (B,), {}),
    "jacobian of softmax": (bf.activations[SOFTMAX].jacobian, (B, N), {}),
}
CHECKED = [name for name in CALLS if list(CALLS).index(name) < list(CALLS).index("forward")]

each_call = pytest.mark.parametrize("name", CALLS)


def on_device(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(asarray, arrays))


@each_call
def test_results_are_written_to_arrays_on_the_device_and_on_the_host(name: str) -> None:
    call, arrays, options = CALLS[name]
    cpu = call(*arrays, **options)
    expected = np.asarray(call(*on_device(arrays), **options))
    np.testing.assert_allclose(expected, cpu, rtol=1e-3, atol=1e-4)
    host = np.full_like(cpu, np.nan)
    assert call(*on_device(arrays), **options, out=host) is host
    np.testing.assert_array_equal(host, expected)
    for given in (arrays, on_device(arrays)):  # a device array alone decides where a call runs
        device = asarray(np.full_like(cpu, np.nan))
        assert call(*given, **options, out=device) is device
        np.testing.assert_array_equal(np.asarray(device), expected)


@pytest.mark.parametrize("name", CHECKED)
def test_without_the_check_finite_values_give_the_same_bits(name: str) -> None:
    call, arrays, options = CALLS[name]
    expected = np.asarray(call(*on_device(arrays), **options))
    found = np.asarray(call(*on_device(arrays), **options, check_finite=False))
    np.testing.assert_array_equal(found, expected)


def test_both_results_of_gram_go_to_a_pair() -> None:
    expected = bf.gram(A, B, backend="cuda")
    for to in (np.array, asarray):
        out = tuple(to(np.full_like(result, np.nan)) for result in expected)
        found = bf.gram(asarray(A), B, out=out)
        for array, given, result in zip(found, out, expected, strict=True):
            assert array is given
            np.testing.assert_array_equal(np.asarray(given), result)
    for wrong in (np.zeros((4, 4)), [np.zeros((4, 4)), np.zeros((4, 3))]):
        with pytest.raises(TypeError, match="expected None or a tuple of two arrays"):
            kernels.gram(A, B, out=wrong)
    G_out = asarray(np.zeros((4, 4)))
    with pytest.raises(ValueError, match=r"out\[1\] has shape"):
        kernels.gram(A, B, out=(G_out, asarray(np.zeros((4, 2)))))
    memory = asarray(np.zeros(28))
    pair = (memory[:16].reshape(4, 4), memory[15:27].reshape(4, 3))
    with pytest.raises(ValueError, match=r"out\[1\] may overlap out\[0\]"):
        kernels.gram(A, B, out=pair)


@each_call
def test_another_array_than_that_of_the_result_is_refused(name: str) -> None:
    call, arrays, options = CALLS[name]
    like = call(*arrays, **options)
    other = np.float32 if like.dtype == np.float64 else np.float64
    read_only = np.zeros_like(like)
    read_only.flags.writeable = False
    strided = np.zeros((*like.shape[:-1], 2 * like.shape[-1]), like.dtype)
    for out, error, message in (
        (asarray(np.zeros_like(like)[..., :1].copy()), ValueError, "out has shape"),
        (np.zeros_like(like)[..., :1].copy(), ValueError, "out has shape"),
        (asarray(like.astype(other)), TypeError, "out has dtype"),
        (like.astype(other), TypeError, "out has dtype"),
        (strided[..., ::2], ValueError, "out is not C-contiguous"),
        (read_only, ValueError, "out is read-only"),
        (like.tolist(), TypeError, "out is a list"),
    ):
        with pytest.raises(error, match=f"^{message}"):
            call(*on_device(arrays), **options, out=out)


@pytest.mark.parametrize("name", ["gram", "cross", "solve_layer", "linear", "residual"])
def test_an_out_that_overlaps_an_argument_is_refused(name: str) -> None:
    call, arrays, options = CALLS[name]
    like = np.asarray(call(*on_device(arrays), **options))
    memory = asarray(np.zeros(100, like.dtype))
    out = memory[: like.size].reshape(*like.shape)
    first = memory[: arrays[0].size].reshape(*arrays[0].shape)
    rest = on_device(tuple(array.astype(like.dtype) for array in arrays[1:]))
    with pytest.raises(ValueError, match="out may overlap A in memory"):
        call(first, *rest, **options, out=out)


@pytest.mark.parametrize("name", ["forward", "inverse", "derivative", "forward of softmax"])
def test_activations_work_in_place(name: str) -> None:
    call, (values,), _ = CALLS[name]
    expected, given = np.asarray(call(asarray(values))), asarray(values)
    assert call(given, out=given) is given
    np.testing.assert_array_equal(np.asarray(given), expected)


@pytest.mark.parametrize("name", CHECKED)
def test_values_that_are_not_finite_are_refused_or_propagate(name: str) -> None:
    call, arrays, options = CALLS[name]
    bad = arrays[0].copy()
    bad.reshape(-1)[-1] = np.nan
    out = asarray(np.full_like(call(*arrays, **options), -7.0))
    with pytest.raises(bf.NonFiniteError, match="contains NaN"):
        call(asarray(bad), *arrays[1:], **options, out=out)
    assert (np.asarray(out) == -7.0).all()
    try:
        found = call(asarray(bad), *arrays[1:], **options, check_finite=False)
    except np.linalg.LinAlgError:
        assert name.startswith("solve")  # a pivot is not finite
    else:
        assert name == "target" or np.isnan(np.asarray(found)).any()


def test_a_residual_and_a_target_must_not_overwrite_what_they_read() -> None:
    for to in (np.array, asarray):
        given = to(N)
        with pytest.raises(ValueError, match="out may overlap B"):
            surface.residual(to(A), W, given, out=given)
        with pytest.raises(ValueError, match="out may overlap N"):
            surface.target(to(A), W, given, activation=TANH, margin=0.01, out=given)
