"""`out` and `check_finite` of every kernel: where results go, what is refused; a failed call writes nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast import kernels
from tests.support.reference import same_bits

Arguments = dict[str, Any]
RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: type = np.float64) -> Any:
    return RNG.normal(size=shape).astype(dtype)


def positive(n: int) -> Any:
    A = normal(2 * n, n)
    return A.T @ A


A, B, WEIGHT = normal(40, 6, dtype=np.float32), normal(40, 3, dtype=np.float32), np.ones(40)
W, N = normal(6, 3, dtype=np.float32), np.full((40, 3), 0.5, np.float32)
G, C = positive(6), normal(6, 3)
MANY_G, MANY_C = np.stack([positive(6), positive(6)]), normal(2, 6, 3)
LARGE_G, LARGE_C = np.stack([positive(70)] * 2), normal(2, 70, 3)
PIXELS, INTEGERS = np.ones((40, 6), np.uint8), np.ones((6, 3), np.int8)
TANH, SOFTMAX = bf.activations["tanh"], bf.activations["softmax"]

CALLS: dict[str, tuple[Callable[..., Any], Arguments]] = {
    "gram": (bf.gram, {"A": A, "sample_weight": WEIGHT}),
    "gram with bias": (bf.gram, {"A": A, "bias": True, "center": True}),
    "cross": (bf.cross, {"A": A, "D": B, "sample_weight": WEIGHT}),
    "solve": (bf.solve, {"G": G, "C": C}),
    "solve_layer": (bf.solve_layer, {"A": A, "B": B, "sample_weight": WEIGHT}),
    "solve_batched": (bf.solve_batched, {"G": MANY_G, "C": MANY_C}),
    "solve_batched, large": (bf.solve_batched, {"G": LARGE_G, "C": LARGE_C}),
    "linear": (bf.linear, {"A": A, "W": W}),
    "tangent": (bf.tangent, {"A": A, "W": W, "N": N}),
    "residual": (kernels.residual, {"A": A, "W": W, "B": B}),
    "target": (kernels.target, {"R": A, "M": W, "N": N, "activation": "tanh", "margin": 0.01}),
}
WITHOUT_CHECK: dict[str, tuple[Callable[..., Any], Arguments]] = {
    "linear_bytes": (
        kernels.linear_bytes,
        {"A": PIXELS, "W": INTEGERS, "scale": np.ones(3, np.float32)},
    ),
    "forward": (TANH.forward, {"z": B}),
    "forward of softmax": (SOFTMAX.forward, {"z": B}),
    "inverse": (TANH.inverse, {"n": N}),
    "derivative": (TANH.derivative, {"z": B}),
    "jacobian": (TANH.jacobian, {"v": B, "n": N}),
}
ALL = CALLS | WITHOUT_CHECK
MAY_BE_OUT = {"tangent": "N", "inverse": "n", "forward": "z", "derivative": "z", "jacobian": "v n"}
NAMED = {"R": "A", "M": "W"}  # what `target` calls its arguments as a layer
RESULTS = {name: call(**arguments) for name, (call, arguments) in ALL.items()}

each_call = pytest.mark.parametrize("name", ALL)
each_checked_call = pytest.mark.parametrize("name", CALLS)


def new_out(name: str) -> Any:
    return np.full_like(RESULTS[name], -7.0)


def arrays_of(name: str) -> dict[str, Any]:
    return {key: x for key, x in ALL[name][1].items() if isinstance(x, np.ndarray)}


@each_call
def test_out_is_returned_and_has_the_bits_of_the_result(name: str) -> None:
    call, arguments = ALL[name]
    out = new_out(name)
    assert call(**arguments, out=out) is out
    assert same_bits(out, RESULTS[name])


@each_checked_call
def test_without_the_check_finite_values_give_the_same_bits(name: str) -> None:
    call, arguments = CALLS[name]
    out = new_out(name)
    assert same_bits(call(**arguments, check_finite=False), RESULTS[name])
    assert call(**arguments, check_finite=False, out=out) is out
    assert same_bits(out, RESULTS[name])


def test_a_pair_takes_both_results_of_gram() -> None:
    expected = bf.gram(A, B, bias=True)
    for check_finite in (True, False):
        out = tuple(np.full_like(result, -7.0) for result in expected)
        found = bf.gram(A, B, bias=True, out=out, check_finite=check_finite)
        assert found[0] is out[0]
        assert found[1] is out[1]
        assert all(map(same_bits, out, expected))


# ---- what is refused


def unaligned(like: Any) -> Any:
    return np.zeros(like.nbytes + 1, np.uint8)[1:].view(like.dtype).reshape(like.shape)


def read_only(like: Any) -> Any:
    out = np.zeros_like(like)
    out.flags.writeable = False
    return out


BAD_OUTS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "a row less": (lambda x: np.zeros_like(x)[:-1].copy(), ValueError, "has shape"),
    "a column more": (
        lambda x: np.zeros((*x.shape[:-1], x.shape[-1] + 1), x.dtype),
        ValueError,
        "has shape",
    ),
    "flat": (lambda x: np.zeros(x.size, x.dtype), ValueError, "has shape"),
    "of another float": (
        lambda x: np.zeros(x.shape, np.float32 if x.dtype == np.float64 else np.float64),
        TypeError,
        "has dtype float",
    ),
    "of integers": (lambda x: np.zeros(x.shape, np.int64), TypeError, "has dtype int64"),
    "of swapped bytes": (
        lambda x: np.zeros(x.shape, x.dtype.newbyteorder("S")),
        TypeError,
        "has dtype",
    ),
    "in Fortran order": (lambda x: np.zeros_like(x, order="F"), ValueError, "is not C-contiguous"),
    "strided": (
        lambda x: np.zeros((*x.shape, 2), x.dtype)[..., 0],
        ValueError,
        "is not C-contiguous",
    ),
    "read-only": (read_only, ValueError, "is read-only"),
    "not aligned": (unaligned, ValueError, "is not aligned"),
    "a list": (lambda x: x.tolist(), TypeError, "is a list"),
    "a number": (lambda x: 3, TypeError, "is a int"),
}


@each_call
@pytest.mark.parametrize("what", BAD_OUTS)
def test_another_array_than_that_of_the_result_is_refused(name: str, what: str) -> None:
    call, arguments = ALL[name]
    make, exception, message = BAD_OUTS[what]
    out = make(RESULTS[name])
    before = np.array(out)
    with pytest.raises(exception, match=rf"^out {message}.*; expected "):
        call(**arguments, out=out)
    assert same_bits(np.array(out), before)


@pytest.mark.parametrize(
    ("out", "exception", "message"),
    [
        (np.zeros((6, 6)), TypeError, "out is a ndarray; expected None or a tuple of two arrays"),
        ([np.zeros((6, 6)), np.zeros((6, 3))], TypeError, "out is a list"),
        ((np.zeros((6, 6)),), TypeError, "out is a tuple"),
        ((np.zeros((6, 6)), np.zeros((6, 2))), ValueError, r"out\[1\] has shape \(6, 2\)"),
        ((np.zeros((6, 5)), np.zeros((6, 3))), ValueError, r"out\[0\] has shape \(6, 5\)"),
    ],
    ids=["an array", "a list", "one array", "a wrong C", "a wrong G"],
)
def test_another_pair_than_that_of_the_results_is_refused(
    out: Any, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message):
        bf.gram(A, B, out=out)


def test_a_pair_that_overlaps_itself_is_refused() -> None:
    memory = np.zeros(40)
    out = (memory[:36].reshape(6, 6), memory[22:].reshape(6, 3))
    with pytest.raises(ValueError, match=r"out\[1\] may overlap out\[0\]"):
        bf.gram(A, B, out=out)


OVERLAPS = [(name, argument) for name in ALL for argument in arrays_of(name)]


@pytest.mark.parametrize(("name", "argument"), OVERLAPS)
def test_an_out_that_overlaps_an_argument_is_refused(name: str, argument: str) -> None:
    call, arguments = ALL[name]
    given, like = arguments[argument], RESULTS[name]
    memory = np.zeros(given.nbytes + like.nbytes + 64, np.uint8)
    # `out` begins in the last eight bytes of the argument, where it is aligned.
    start = -(-given.nbytes // 8) * 8 - 8
    moved = memory[: given.nbytes].view(given.dtype).reshape(given.shape)
    moved[...] = given
    out = memory[start : start + like.nbytes].view(like.dtype).reshape(like.shape)
    if not np.may_share_memory(moved, out):
        pytest.skip("the argument is shorter than the alignment")
    before = memory.copy()
    message = rf"^out may overlap {NAMED.get(argument, argument)} in memory; expected "
    with pytest.raises(ValueError, match=message):
        call(**arguments | {argument: moved}, out=out)
    assert same_bits(memory, before)


@pytest.mark.parametrize("name", MAY_BE_OUT)
def test_an_argument_that_is_read_element_by_element_may_be_out(name: str) -> None:
    call, arguments = ALL[name]
    for argument in MAY_BE_OUT[name].split():
        out = arguments[argument].copy()
        assert call(**arguments | {argument: out}, out=out) is out
        assert same_bits(out, RESULTS[name])


@pytest.mark.parametrize("name", list(bf.activations))
def test_every_activation_works_in_place(name: str) -> None:
    act, z = bf.activations[name], normal(9, 5)
    for call in (act.forward, act.inverse, act.derivative):
        expected, out = call(z), z.copy()
        assert call(out, out=out) is out
        assert same_bits(out, expected)
    strided = normal(9, 10)
    expected = act.forward(strided[:, ::2])
    out = strided.reshape(-1)[:45].reshape(9, 5)  # begins where the argument does
    assert same_bits(act.forward(strided[:, ::2], out=out), expected)


# ---- a call that fails writes nothing


@pytest.mark.parametrize(
    ("name", "argument"),
    [(n, a) for n, a in OVERLAPS if n in CALLS and (a != "N" and (n, a) != ("residual", "B"))],
)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_value_that_is_not_finite_leaves_out_alone(
    name: str, argument: str, value: float
) -> None:
    call, arguments = CALLS[name]
    bad = arguments[argument].copy()
    bad.reshape(-1)[-1] = value
    out = new_out(name)
    message = rf"^{NAMED.get(argument, argument)} contains (NaN|infinity) at "
    with pytest.raises(bf.NonFiniteError, match=message):
        call(**arguments | {argument: bad}, out=out)
    assert same_bits(out, new_out(name))


def test_targets_that_are_not_finite_leave_both_of_a_pair_alone() -> None:
    bad = B.copy()
    bad[-1, -1] = np.nan
    out = (np.full((6, 6), -7.0), np.full((6, 3), -7.0))
    with pytest.raises(bf.NonFiniteError, match=r"^B contains NaN at \[39, 2\]"):
        bf.gram(A, bad, out=out)
    assert all((array == -7.0).all() for array in out)


@pytest.mark.parametrize("name", ["gram", "cross", "solve_layer"])
def test_an_overflow_leaves_out_alone(name: str) -> None:
    call, arguments = CALLS[name]
    huge = {key: np.full_like(arguments[key], 1e30) for key in ("A", "B", "D") if key in arguments}
    out = new_out(name)
    with pytest.raises(bf.NonFiniteError, match="overflow"):
        call(**arguments | huge, out=out)
    assert same_bits(out, new_out(name))


@pytest.mark.parametrize("name", ["solve", "solve_batched", "solve_batched, large"])
def test_a_solution_that_overflows_leaves_out_alone(name: str) -> None:
    call, arguments = CALLS[name]
    out = new_out(name)
    with pytest.raises(bf.NonFiniteError, match="C is too large for G"):
        call(G=arguments["G"] * 1e-300, C=arguments["C"] * 1e300, out=out)
    assert same_bits(out, new_out(name))


@pytest.mark.parametrize("name", ["solve", "solve_batched", "solve_batched, large"])
def test_a_singular_system_leaves_out_alone(name: str) -> None:
    call, arguments = CALLS[name]
    singular = arguments["G"].copy()
    singular[..., -1, :] = singular[..., :, -1] = 0.0
    if singular.ndim == 3:
        singular[0] = arguments["G"][0]  # only the last system is singular
    out = new_out(name)
    with pytest.raises(np.linalg.LinAlgError, match="pivot"):
        call(**arguments | {"G": singular}, eps=0.0, out=out)
    assert same_bits(out, new_out(name))


# ---- check_finite


@each_checked_call
@pytest.mark.parametrize("value", ["no", 1, None])
def test_another_check_finite_than_a_bool_is_refused(name: str, value: Any) -> None:
    call, arguments = CALLS[name]
    with pytest.raises(TypeError, match=r"^check_finite is a .*; expected True or False"):
        call(**arguments, check_finite=value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("name", "argument"), [(n, a) for n, a in OVERLAPS if n in CALLS and a != "N"]
)
def test_without_the_check_values_that_are_not_finite_propagate(
    name: str, argument: str, value: float
) -> None:
    call, arguments = CALLS[name]
    bad = arguments[argument].copy()
    bad.reshape(-1)[-1] = value
    try:
        result = call(**arguments | {argument: bad}, check_finite=False)
    except np.linalg.LinAlgError:
        assert argument in ("G", "A", "sample_weight")  # a pivot is not finite
    else:
        clipped = name == "target"  # into the range of the activation
        assert clipped or not np.isfinite(result).all()


def test_without_the_check_the_lower_triangle_is_not_read() -> None:
    for name in ("solve", "solve_batched", "solve_batched, large"):
        call, arguments = CALLS[name]
        upper = np.triu(arguments["G"])
        assert same_bits(call(upper, arguments["C"], check_finite=False), RESULTS[name])
        with pytest.raises(ValueError, match="G is not symmetric"):
            call(upper, arguments["C"])


def test_without_the_check_weights_may_be_negative() -> None:
    weight = -WEIGHT
    found = bf.gram(A, sample_weight=weight, check_finite=False)
    np.testing.assert_allclose(found, -bf.gram(A), rtol=1e-5, atol=1e-5)
