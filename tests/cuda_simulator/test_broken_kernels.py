"""Kernels that are broken on purpose: the scheduler, or the comparison with NumPy, must see it."""

import inspect

import numpy as np
import pytest
from cuda_scheduler import BarrierError, RaceError

from bpls_fast.cuda import elements, layers, products, runtime, systems

A = np.random.default_rng(0).normal(size=(9, 6))


def broken(module, old, new, count=1):
    """Give the names of a copy of a module in which some text is another."""
    source = inspect.getsource(module)
    assert old in source
    names = {"__name__": "broken"}
    exec(compile(source.replace(old, new, count), "broken.py", "exec"), names)
    return names


def gram(names):
    tile = products.Tile(4, 2, 2)
    partial, total = np.zeros((1, 6, 6)), np.zeros((6, 6))
    kernel = names["floats_kernel"](tile, np.float64, False)
    kernel[(2, 2, 1), tile.threads](A, A, A, partial, 0, len(A), 0, 0, 1)
    names["add_up_kernel"]()[(2, 2), (4, 4)](partial, total, 1)
    np.testing.assert_allclose(total, A.T @ A)


def layer(names):
    tile = products.Tile(4, 2, 2)
    out = np.zeros((9, 9))
    kernel = names["layer_kernel"](tile, np.float64, "forward", "identity")
    kernel[(3, 3), tile.threads](A, A.T.copy(), out, out, 0, 0.0, 0.0)
    np.testing.assert_allclose(out, A @ A.T)


def softmax(names):
    out = np.zeros_like(A)
    names["softmax_kernel"]("forward", np.float64, (2, 2))[5, (2, 2)](A, A, 0.0, out)
    e = np.exp(A)
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True))


def factor(names):
    G = A.T @ A + np.eye(6)
    S, failed = np.tril(G), np.full(1, -1)
    names["diagonal_kernel"](8)[1, 8](S, G.diagonal().copy(), 0.0, 0, 6, failed)
    np.testing.assert_allclose(np.tril(S), np.linalg.cholesky(G))


SYNC = "            cuda.syncthreads()\n"
AT_START = "        cuda.syncthreads()\n"


@pytest.mark.parametrize(
    ("run", "module"), [(gram, products), (layer, layers), (softmax, elements), (factor, systems)]
)
def test_the_kernels_as_they_are_pass(run, module):
    run(vars(module))


@pytest.mark.parametrize(
    ("run", "module", "old", "new", "error"),
    [
        # a barrier is missing before, or after, shared memory is read
        (gram, products, SYNC, "", RaceError),
        (
            gram,
            products,
            SYNC + "        for i in range(per):",
            "        for i in range(per):",
            RaceError,
        ),
        (layer, layers, SYNC, "", RaceError),
        (softmax, elements, AT_START, "", RaceError),
        (factor, systems, SYNC, "", RaceError),
        # a barrier that not all threads reach, or not the same one
        (
            gram,
            products,
            SYNC,
            f"            if thread < 2:\n    {SYNC}",
            (BarrierError, RaceError),
        ),
        (
            layer,
            layers,
            SYNC,
            f"            if thread % 2:\n    {SYNC}            else:\n    {SYNC}",
            BarrierError,
        ),
        # off by one
        (gram, products, "if p + c < A.shape[1]:", "if p + c <= A.shape[1]:", IndexError),
        (gram, products, "row + s < end", "row + s <= end", IndexError),
        (gram, products, "row + s < end", "row + s < end - 1", AssertionError),
        (gram, products, "A[row + s, p + c]", "A[row + s, p + c - 1]", IndexError),
        (layer, layers, "if row < out.shape[0]:\n", "if row <= out.shape[0]:\n", IndexError),
        (layer, layers, "k + s < A.shape[1] and q", "k + s < A.shape[1] - 1 and q", AssertionError),
        (
            softmax,
            elements,
            "z.shape[1], lanes):\n                e =",
            "z.shape[1] - 1, lanes):\n                e =",
            AssertionError,
        ),
        (
            factor,
            systems,
            "for k in range(j):\n                    value -= block",
            "for k in range(j - 1):\n                    value -= block",
            AssertionError,
        ),
        # memory that nobody wrote
        (gram, products, "sums[i, j] = zero", "pass", AssertionError),
    ],
)
def test_a_broken_kernel_is_seen(run, module, old, new, error):
    with pytest.raises(error):
        run(broken(module, old, new))


def test_a_block_has_no_more_threads_and_shared_memory_than_a_real_one():
    def idle(out):
        runtime.cuda.syncthreads()

    with pytest.raises(ValueError, match="at most 1024"):
        runtime.kernel(idle)[1, 2048](np.zeros(1))
    tile = products.Tile(128, 64, 64)
    with pytest.raises(MemoryError, match="shared memory"):
        products.floats_kernel(tile, np.float64, False)[1, 4](
            A, A, A, np.zeros((1, 6, 6)), 0, 9, 0, 0, 1
        )
