"""NaN, infinity and overflow are refused by one type of error, which is a ValueError, wherever values are checked."""

import pickle

import numpy as np
import pytest

import bpls_fast as bf

BAD = [np.nan, np.inf, -np.inf]
A = np.arange(12.0).reshape(6, 2)
B = np.ones((6, 1))
G = np.diag([2.0, 3.0])
C = np.ones((2, 1))


def spoilt(array, value, dtype=np.float64):
    """Return a copy with one value replaced."""
    copy = array.astype(dtype)
    copy[-1, -1] = value
    return copy


CALLS = {
    "gram, A": lambda bad: bf.gram(spoilt(A, bad)),
    "gram, float32 A": lambda bad: bf.gram(spoilt(A, bad, np.float32)),
    "gram, B": lambda bad: bf.gram(A, spoilt(B, bad)),
    "gram, sample_weight": lambda bad: bf.gram(A, sample_weight=spoilt(B, bad)[:, 0]),
    "gram, scale": lambda bad: bf.gram(A, scale=bad),
    "gram, scales": lambda bad: bf.gram(A, scale=np.array([1.0, bad])),
    "cross": lambda bad: bf.cross(A, spoilt(B, bad)),
    "solve, G": lambda bad: bf.solve(spoilt(G, bad), C),
    "solve, C": lambda bad: bf.solve(G, spoilt(C, bad)),
    "solve_layer, A": lambda bad: bf.solve_layer(spoilt(A, bad), B),
    "solve_layer, B": lambda bad: bf.solve_layer(A, spoilt(B, bad)),
    "solve_batched, G": lambda bad: bf.solve_batched(spoilt(G, bad)[None], C[None]),
    "solve_batched, C": lambda bad: bf.solve_batched(G[None], spoilt(C, bad)[None]),
    "linear, A": lambda bad: bf.linear(spoilt(A, bad), np.ones((2, 3))),
    "linear, W": lambda bad: bf.linear(A, spoilt(np.ones((2, 3)), bad)),
    "tangent": lambda bad: bf.tangent(spoilt(A, bad), np.ones((2, 1)), B),
    "Network.weights": lambda bad: bf.Network([2, 1], bias=False).with_weights([spoilt(C, bad)]),
    "Network.forward": lambda bad: bf.Network([2, 1]).forward(spoilt(A, bad)),
    "fit_injective, X": lambda bad: bf.fit_injective(bf.Network([2, 1]), spoilt(A, bad), B),
    "fit_refined, Y": lambda bad: bf.fit_refined(bf.Network([2, 3, 1]), A, spoilt(B, bad)),
}


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nan_and_infinity_are_refused_by_their_own_error(call, value) -> None:
    with pytest.raises(bf.NonFiniteError):
        call(value)


OVERFLOWS = {
    "gram": lambda: bf.gram(np.full((3, 2), 1e200)),
    "gram, float32": lambda: bf.gram(np.full((3, 2), 1e30, np.float32)),
    "gram, B": lambda: bf.gram(A, np.full((6, 1), 1e308)),
    "gram, scale": lambda: bf.gram(A, scale=1e200),
    "cross": lambda: bf.cross(np.full((3, 2), 1e200), np.full((3, 1), 1e200)),
    "solve": lambda: bf.solve(np.diag([1e-200, 1e-200]), np.full((2, 1), 1e200)),
    "solve_layer": lambda: bf.solve_layer(np.full((3, 2), 1e200), np.ones((3, 1))),
}


@pytest.mark.parametrize("call", OVERFLOWS.values(), ids=OVERFLOWS)
def test_an_overflow_of_finite_values_is_refused_by_the_same_error(call) -> None:
    with pytest.raises(bf.NonFiniteError, match="overflow"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: bf.gram(A, B[:3]),
        lambda: bf.gram(A, sample_weight=-np.ones(6)),
        lambda: bf.solve(G, C, eps=np.nan),
        lambda: bf.linear(A, np.ones((2, 3)), activation="nothing"),
    ],
)
def test_other_refusals_are_plain_value_errors(call) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        call()
    assert not isinstance(caught.value, bf.NonFiniteError)


def test_the_error_is_a_value_error_of_the_package_that_can_be_pickled() -> None:
    assert issubclass(bf.NonFiniteError, ValueError)
    assert bf.NonFiniteError.__module__ == "bpls_fast"
    with pytest.raises(bf.NonFiniteError) as caught:
        bf.gram(spoilt(A, np.nan))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is bf.NonFiniteError
    assert str(again) == str(caught.value) == "A contains NaN at [5, 1]; expected finite values"
