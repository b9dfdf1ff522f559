"""The blocks and tiles of a real GPU: no bank of shared memory is asked twice at once, sectors are read whole."""

import numpy as np
import pytest

from bpls_fast.cuda.device import elements, layers, products, systems
from bpls_fast.cuda.device.products import Tile
from bpls_fast.cuda.runtime import cuda, kernel
from tests.cuda.traffic import watched

BLOCK = systems.Block(32, 8)


def traffic(launched, grid, block, *arguments):
    with watched() as seen:
        launched[grid, block](*arguments)
    return seen


def ones(*shape, dtype=np.float64):
    return np.ones(shape, dtype)


def gram(dtype):
    tile, A = Tile(64, 8, 16), ones(16, 64, dtype=dtype)
    if dtype == np.uint8:
        tile, partial = Tile(64, 8, 8), ones(1, 64, 64, dtype=np.uint32)
        return traffic(products.bytes_kernel(tile), (1, 1, 1), tile.threads, A, partial, 0, 16, 0)
    tile = tile if dtype == np.float32 else Tile(32, 4, 16)
    made = products.floats_kernel(tile, dtype, False)
    grid, partial = (64 // tile.side,) * 2, ones(1, 64, 64, dtype=dtype)
    return traffic(made, (*grid, 1), tile.threads, A, A, A, partial, 0, 16, 0, 0, 1)


def layer(dtype, name):
    tile = Tile(64, 8, 8) if dtype == np.float32 else Tile(32, 4, 8)
    A, W, out = (
        ones(tile.side, 8, dtype=dtype),
        ones(8, 32, dtype=dtype),
        ones(tile.side, 32, dtype=dtype),
    )
    made = layers.layer_kernel(tile, dtype, "forward", name)
    return traffic(made, (1, 1), tile.threads, A, W, out, out, 0, dtype(0), dtype(0))


def rows(made, dtype, width):
    """Run a kernel of rows, z and v to out."""
    lanes = min(32, width)
    z = ones(16, width, dtype=dtype)
    return traffic(made(lanes, 256 // lanes), 1, (lanes, 256 // lanes), z, z, dtype(0), z.copy())


def panel():
    S, inverses = np.eye(64, 32)[np.newaxis] + 0.1, ones(1, 32, 32)
    arguments = (S, ones(1, 32), 0.0, 0, inverses, np.full(1, -1))
    return traffic(systems.panel_kernel(BLOCK), (1, 1), BLOCK.threads, *arguments)


CASES = {
    **{
        f"gram {np.dtype(t).name}": (lambda t=t: gram(t))
        for t in (np.uint8, np.float32, np.float64)
    },
    "layer float32": lambda: layer(np.float32, "identity"),
    "layer float64": lambda: layer(np.float64, "identity"),
    "add up": lambda: traffic(
        products.add_up_kernel(),
        (2, 8),
        (32, 8),
        ones(3, 64, 64, dtype=np.float32),
        ones(64, 64),
        1,
    ),
    "mirror": lambda: traffic(products.mirror_kernel((32, 8)), (2, 2), (32, 8), ones(64, 64)),
    "softmax of 16": lambda: rows(
        lambda *block: elements.softmax_kernel("forward", np.float32, block), np.float32, 16
    ),
    "softmax of 64": lambda: rows(
        lambda *block: elements.softmax_kernel("forward", np.float32, block), np.float32, 64
    ),
    "panel": panel,
    "update": lambda: traffic(systems.update_kernel(32, 4), (1, 1, 1), 64, ones(1, 96, 64), 0),
    "back": lambda: traffic(
        systems.back_kernel(BLOCK), (1, 1), BLOCK.threads, ones(1, 72, 64), ones(1, 64, 32)
    ),
    "small": lambda: traffic(
        systems.small_kernel(BLOCK),
        (1, 1),
        BLOCK.threads,
        np.eye(64, 32)[np.newaxis] + 0.1,
        ones(1, 32),
        0.0,
        np.full(1, -1),
    ),
    "assemble": lambda: traffic(
        systems.assemble_kernel(BLOCK),
        (1, 2, 1),
        BLOCK.threads,
        ones(1, 32, 32),
        ones(1, 32, 32),
        ones(1),
        ones(1, 64, 32),
        ones(1, 32),
    ),
    "solution": lambda: traffic(
        systems.solution_kernel(BLOCK), (1, 1, 1), BLOCK.threads, ones(1, 64, 32), ones(1, 32, 32)
    ),
    "column sums of 32": lambda: traffic(
        elements.column_sums_kernel("products", False, (32, 8)),
        (1, 1),
        (32, 8),
        ones(24, 32),
        ones(24, 32),
        ones(1),
        ones(1, 1, 32),
    ),
    "column sums of 1": lambda: traffic(
        elements.column_sums_kernel("values", False, (1, 256)),
        (1, 1),
        (1, 256),
        ones(512, 1),
        ones(512, 1),
        ones(1),
        ones(1, 1, 1),
    ),
    "tanh": lambda: traffic(
        elements.activation_kernel("forward", "tanh", np.float32),
        (1, 1),
        (1, 256),
        *[ones(256, 1, dtype=np.float32)] * 2,
        np.float32(0),
        ones(256, 1, dtype=np.float32),
    ),
    "take": lambda: traffic(
        elements.take_kernel(), (2, 1), (32, 8), ones(9, 32), np.arange(9)[::-1].copy(), ones(9, 32)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_memory_is_asked_as_it_answers_best(name):
    seen = CASES[name]()
    assert set(seen.conflicts().values()) <= {1}
    assert seen.efficiency(written=False) > 0.9  # the edge of a triangle cuts sectors
    assert seen.efficiency(written=True) > 0.8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_threads_of_a_row_of_softmax_meet_in_a_bank_at_two_lines_only(dtype):
    conflicts = sorted(layer(dtype, "softmax").conflicts().values())
    assert conflicts[-1] == 8
    assert set(conflicts[:-2]) == {1}


def test_conflicts_and_scattered_rows_are_counted():
    def transpose(A, out):
        tile = cuda.shared.array((32, 32), np.float32)
        tile[cuda.threadIdx.x, 0] = A[cuda.threadIdx.x, 0]
        cuda.syncthreads()
        out[cuda.threadIdx.x] = tile[0, 0]

    A, out = ones(32, 32, dtype=np.float32), ones(32, dtype=np.float32)
    seen = traffic(kernel(transpose), 1, 32, A, out)
    assert max(seen.conflicts().values()) == 32
    assert seen.efficiency(written=False) == 1 / 8
    assert seen.efficiency(written=True) == 1
