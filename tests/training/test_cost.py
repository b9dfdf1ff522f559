"""The cost of a sweep: what `sweep_cost` counts beside the kernels that a sweep calls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
import bpls_fast.kernels
import bpls_fast.network.network as network
import bpls_fast.training.bpls.backward_sweep as backward_sweep
import bpls_fast.training.solvers as solvers
from bpls_fast.training.bpls.backward_sweep import BackwardSweep
from bpls_fast.training.context import FitContext
from bpls_fast.training.report import PHASES
from tests.support.networks import networks


def cholesky_and_substitutions(n, m):
    """Count, one by one, the multiply-adds of a textbook factor of n by n and of two triangular solves."""
    count = 0
    for column in range(n):
        for _row in range(column, n):
            count += sum(1 for _k in range(column))  # L[row, k] * L[column, k]
    for _ in range(m):
        for row in range(n):
            count += sum(1 for _ in range(row))  # forward
            count += sum(1 for _ in range(row + 1, n))  # back
    return count


class Counter(FitContext):
    """Counts the multiply-adds of every kernel that is called, from the shapes of its arguments, by phase."""

    def __init__(self, monkeypatch):
        super().__init__("count", 1e-6)
        self.count = dict.fromkeys(PHASES, 0)
        self.current = "forward"
        for module in (backward_sweep, solvers, network):
            for name in ("gram", "linear", "residual", "solve", "target"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, self.counting(name))

    def counting(self, name):
        kernel, of_shapes = getattr(bpls_fast.kernels, name), getattr(self, name)

        def call(*arrays, **options):
            result = kernel(*arrays, **options)
            shapes = [array.shape for array in arrays]
            self.count[self.current] += of_shapes(*shapes, bias=options.get("bias", False))
            return result

        return call

    def phase(self, name):
        self.current = name
        return super().phase(name)

    @staticmethod
    def gram(A, B=(0, 0), *, bias):
        d, n = A[0], A[1] + bias
        upper_triangle = sum(n - row for row in range(n))
        return d * upper_triangle + d * n * B[1]

    @staticmethod
    def linear(A, W, *, bias):
        assert W[0] == A[1] + bias
        return A[0] * W[0] * W[1]

    @staticmethod
    def residual(A, W, B, *, bias):
        return Counter.linear(A, W, bias=bias)

    @staticmethod
    def target(R, M, N, *, bias):
        assert (R[0], M[1]) == N
        return Counter.linear(R, M, bias=bias)

    @staticmethod
    def solve(G, C, *, bias):
        return cholesky_and_substitutions(*C)


@given(
    net=networks(names=["identity", "sigmoid", "tanh", "softplus"]),
    d=st.integers(1, 12),
    resolve=st.booleans(),
    refinements=st.integers(0, 2),
)
def test_cost_is_what_a_sweep_counts(net, d, resolve, refinements):
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        counter = Counter(monkeypatch)
        A = net.layer_inputs(rng.normal(size=(d, net.layer_sizes[0])))
        sweep = BackwardSweep(
            net, counter, resolve=resolve, margin=0.01, tikhonov_steps=refinements
        )
        sweep(A, rng.normal(size=(d, net.layer_sizes[-1])))
    cost = net.cost(d, resolve=resolve, refinements=refinements)
    assert cost._asdict() == counter.count
    assert cost.total == sum(counter.count.values())


def test_the_cost_of_nothing_is_that_of_the_solves_alone():
    cost = bf.Network([3, 2]).cost(0)
    assert cost == (0, 0, cholesky_and_substitutions(4, 2), 0)


@pytest.mark.parametrize(("name", "value"), [("d", -1), ("d", 2.0), ("refinements", -1)])
def test_cost_names_a_wrong_argument(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        bf.Network([3, 2]).cost(**{"d": 1, name: value})
