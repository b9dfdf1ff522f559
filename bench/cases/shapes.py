"""Shapes drawn at random, log-uniform, and the cases of their kernels.

A draw with more than MOST_VALUES values or MOST_OPERATIONS operations is drawn anew, so that a call of any contender
takes some hundred milliseconds at most and every copy fits in memory.
"""

import dataclasses
import math
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .. import SMALL
from ..measure.case import Case
from .layers import linear_case
from .products import cross_case, gram_case
from .solve import solve_case

ROWS = (32, 500) if SMALL else (32, 200_000)
COLS = (4, 60) if SMALL else (4, 1500)
OUTPUTS = (1, 300)
"""Columns of the right side, or outputs of a layer."""
MOST_VALUES = 5e7
MOST_OPERATIONS = 4e10
ROUNDS = 15

DTYPES = {
    "gram": ("float32", "float64", "uint8"),
    "linear": ("float32",),
    "cross": ("float32",),
    "solve": ("float64",),
}
"""The kernels, and the types that are drawn unless others are asked for."""

Draw = Callable[[tuple[int, int]], int]


def log_uniform(random: np.random.Generator, bounds: tuple[int, int]) -> int:
    """Return an integer between the bounds whose logarithm is uniform."""
    low, high = bounds
    return min(high, math.floor(math.exp(random.uniform(math.log(low), math.log(high + 1)))))


def draw_case(kernel: str, dtype: str, draw: Draw) -> tuple[Case, int]:
    """Return a case, not yet its arrays, and the number of values of its largest array."""
    if kernel == "solve":
        n, sides = draw(COLS), draw(OUTPUTS)
        return solve_case(n, sides, rounds=ROUNDS), n * max(n, sides)
    rows, cols = draw(ROWS), draw(COLS)
    if kernel == "gram":
        return gram_case(dtype, rows, cols, rounds=ROUNDS), rows * cols
    outputs = draw(OUTPUTS)
    if kernel == "linear":
        case = linear_case(dtype, "relu", rows, outputs, cols=cols, of_images=False)
    else:
        case = cross_case(dtype, rows, outputs, cols=cols, of_images=False)
    return case, rows * max(cols, outputs)


def drawn_cases(kernel: str, dtype: str, seed: int) -> Iterator[Case]:
    """Yield cases without end: the same for a seed, whatever else is drawn."""
    random = np.random.default_rng([seed, zlib.crc32(f"{kernel} {dtype}".encode())])
    while True:
        case, values = draw_case(kernel, dtype, lambda bounds: log_uniform(random, bounds))
        if values <= MOST_VALUES and case.operations <= MOST_OPERATIONS:
            # The competitors are the same for all types.
            yield dataclasses.replace(case, of_bytes={})


def deal(streams: Sequence[Iterator[Case]], draws: int) -> Iterator[tuple[int, Case]]:
    """Yield so many cases, from each stream in turn, with the number of their stream."""
    for draw in range(draws):
        stream = draw % len(streams)
        yield stream, next(streams[stream])
