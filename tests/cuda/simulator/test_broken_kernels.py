"""Kernels that are broken on purpose: the scheduler, or the comparison with NumPy, must see it."""

import inspect

import numpy as np
import pytest

from bpls_fast.cuda import runtime
from bpls_fast.cuda.device import elements, layers, products, systems
from bpls_fast.cuda.runtime import cuda
from tests.cuda.scheduler import BarrierError, RaceError

A = np.random.default_rng(0).normal(size=(9, 6))


def broken(module, old, new, count=1):
    """Return the names of a copy of a module in which some text is replaced."""
    source = inspect.getsource(module)
    if old not in source:
        raise LookupError(f"{module.__name__} has no text {old!r}")
    names = {"__name__": "broken"}
    exec(compile(source.replace(old, new, count), "broken.py", "exec"), names)
    return names


def gram(names):
    tile = products.Tile(4, 2, 2)
    partial, total = np.zeros((1, 6, 6)), np.zeros((6, 6))
    kernel = names["floats_kernel"](tile, np.float64, False)
    kernel[(2, 2, 1), tile.threads](A, A, A, partial, 0, len(A), 0, 0, 1)
    names["add_up_kernel"]()[(2, 2), (4, 4)](partial, total, 1)
    names["mirror_kernel"]((4, 2))[(2, 2), (4, 2)](total)
    np.testing.assert_allclose(total, A.T @ A)


def layer(names):
    tile = products.Tile(4, 2, 2)
    out = np.zeros((9, 9))
    kernel = names["layer_kernel"](tile, np.float64, "forward", "identity")
    kernel[(3, 3), tile.threads](A, A.T.copy(), out, out, 0, 0.0, 0.0)
    np.testing.assert_allclose(out, A @ A.T)


def rows(names):
    """Run a layer that ends with softmax; its rows fit the tile."""
    tile = products.Tile(4, 2, 2)
    out = np.zeros((9, 3))
    kernel = names["layer_kernel"](tile, np.float64, "forward", "softmax")
    kernel[(3, 1), tile.threads](A, A[:6, :3].copy(), out, out, 0, 0.0, 0.0)
    e = np.exp(A @ A[:6, :3])
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True))


def softmax(names):
    out = np.zeros_like(A)
    names["softmax_kernel"]("forward", np.float64, (2, 2))[5, (2, 2)](A, A, 0.0, out)
    e = np.exp(A)
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True))


def factor(names):
    """Factor in blocks of four columns, and solve for the columns of A as rows below."""
    G = A.T @ A + np.eye(6)
    S, block, failed = np.vstack([G, A])[np.newaxis], systems.Block(4, 2), np.full(1, -1)
    inverses, diagonal = np.zeros((1, 8, 4)), G.diagonal()[np.newaxis].copy()
    for first, below in ((0, 3), (4, 3)):
        panel = names["panel_kernel"](block)
        panel[(1, below), block.threads](S, diagonal, 0.0, first, inverses, failed)
        if first == 0:
            names["update_kernel"](4, 2)[(1, below, 1), 4](S, first)
    names["back_kernel"](block)[(1, 5), block.threads](S, inverses)
    np.testing.assert_allclose(S[0, 6:], np.linalg.solve(G, A.T).T)
    assert failed[0] == -1


def small(names):
    G = A[:4].T[:3] @ A[:4, :3] + np.eye(3)
    S, block, failed = np.vstack([G, A[:, :3]])[np.newaxis], systems.Block(4, 2), np.full(1, -1)
    diagonal = G.diagonal()[np.newaxis].copy()
    names["small_kernel"](block)[(1, 3), block.threads](S, diagonal, 0.0, failed)
    np.testing.assert_allclose(S[0, 3:], np.linalg.solve(G, A[:, :3].T).T)


SYNC = "            cuda.syncthreads()\n"
AT_START = "        cuda.syncthreads()\n"


@pytest.mark.parametrize(
    ("run", "module"),
    [
        (gram, products),
        (layer, layers),
        (rows, layers),
        (softmax, elements),
        (factor, systems),
        (small, systems),
    ],
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
        (
            rows,
            layers,
            SYNC + "            for i in range(per):\n                row, total",
            "            for i in range(per):\n                row, total",
            RaceError,
        ),
        (softmax, elements, AT_START, "", RaceError),
        (factor, systems, SYNC, "", RaceError),
        (factor, systems, AT_START, "", RaceError),
        (small, systems, SYNC, "", RaceError),
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
        (gram, products, "top + s < end", "top + s <= end", IndexError),
        (gram, products, "top + s < end", "top + s < end - 1", AssertionError),
        (gram, products, "A[top + s, p + c]", "A[top + s, p + c - 1]", IndexError),
        (
            layer,
            layers,
            "if row < out.shape[0]:\n",
            "if row <= out.shape[0]:\n",
            IndexError,
        ),
        (
            rows,
            layers,
            "for t in range(across):\n                    total",
            "for t in range(across - 1):\n                    total",
            AssertionError,
        ),
        (layer, layers, "k + s < A.shape[1] and q", "k + s < A.shape[1] - 1 and q", AssertionError),
        (
            softmax,
            elements,
            "z.shape[1], lanes):\n                total += real(math.exp",
            "z.shape[1] - 1, lanes):\n                total += real(math.exp",
            AssertionError,
        ),
        (factor, systems, "if r > j:", "if r >= j:", (RaceError, AssertionError)),
        (
            factor,
            systems,
            "range(q + size, n, size)",
            "range(q + size, n - size, size)",
            AssertionError,
        ),
        (
            small,
            systems,
            "part = (inverse[j, x] if x <= j",
            "part = (inverse[j, x] if x < j",
            AssertionError,
        ),
        (
            small,
            systems,
            "r < count and x < count:",
            "r <= count and x < count:",
            (AssertionError, RaceError),
        ),
        # memory that nobody wrote
        (gram, products, "sums[i, j] = zero", "pass", AssertionError),
    ],
)
def test_a_broken_kernel_is_seen(run, module, old, new, error):
    names = broken(module, old, new)
    with pytest.raises(error):
        run(names)


def test_races_on_the_memory_of_the_device_are_seen():
    def same_place(out):
        out[0] = cuda.threadIdx.x + cuda.blockIdx.x

    def neighbours(out):
        out[cuda.threadIdx.x] = cuda.threadIdx.x
        out[4 + cuda.threadIdx.x] = out[cuda.threadIdx.x ^ 1]

    def other_blocks(out):
        out[4 + cuda.blockIdx.x] = out[4 + (cuda.blockIdx.x ^ 1)]

    def waiting(out):
        out[cuda.threadIdx.x] = cuda.threadIdx.x
        cuda.syncthreads()
        out[4 + cuda.threadIdx.x] = out[cuda.threadIdx.x ^ 1]

    for function, grid, block in (
        (same_place, 1, 2),
        (same_place, 2, 1),
        (neighbours, 1, 2),
        (other_blocks, 2, 1),
    ):
        with pytest.raises(RaceError):
            runtime.kernel(function)[grid, block](np.zeros(8))
    out = np.zeros(8)
    runtime.kernel(waiting)[1, 2](out)
    assert out.tolist() == [0, 1, 0, 0, 1, 0, 0, 0]


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
