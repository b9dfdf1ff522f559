"""The rows of each sweep: chunks in random order, validation rows, and a sample for what needs no more.

Early chunks are small, because any rows give a useful direction; they double after some sweeps. Sizes count the rows as
if each were repeated according to its weight; a chunk has the different rows that one of repeated rows would have.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels.backend import backend_of, empty
from bpls_fast.network import Network
from bpls_fast.network.arguments import is_number
from bpls_fast.training.data import Array, ArrayRows, Batch, Samples

__all__ = [
    "DOUBLINGS",
    "TRIAL_SHARE",
    "Chunks",
    "chunk_sizes",
    "different_rows",
    "first_chunk",
    "hold_out",
    "sample",
]

FIRST_CHUNK, SWEEPS_OF_A_SIZE, DOUBLINGS = 2500, 12, {"squared": 1, "cross_entropy": 0}
"""Rows of the first chunks, sweeps until chunks double, and how often they do under each loss."""

ROWS_PER_NEURON = {"squared": 25, "cross_entropy": 0}
"""Rows of a first chunk for each neuron of the last hidden layer, at least: they determine an output layer that is
solved."""

TRIAL_SHARE = 4
"""The rows of a chunk for each trial row."""

SAMPLE_ROWS = 5_000
"""The most rows that the start is scaled on, and that the Gram matrix of the inputs is computed from."""


class Chunks:
    """Cuts rows into chunks, in random order, and copies each into memory that the next one reuses.

    Parameters
    ----------
    samples : Samples
    sizes : iterator of int
        The size of every chunk.
    random : numpy.random.Generator
    count : int, optional
        The number of rows with repetitions, which sizes are parts of. By default no row is repeated.

    Attributes
    ----------
    size : int
        The size of the next chunk.
    """

    def __init__(
        self,
        samples: Samples,
        sizes: Iterator[int],
        random: np.random.Generator,
        count: int | None = None,
    ) -> None:
        self._samples, self._sizes, self._random = samples, sizes, random
        self._count = samples.row_count if count is None else count
        self._source, self._targets = ArrayRows(samples.X), ArrayRows(samples.targets)
        self._order: NDArray[np.intp] = np.empty(0, np.intp)
        self._room = 0
        self._X: Array
        self._T: Array
        self.size = next(sizes)

    def release(self) -> None:
        """Free the memory that chunks are copied into; the latest chunk is not valid any more."""
        self._room = 0
        self._X = self._T = np.empty((0, 0))

    def next(self) -> Batch:
        """Return the next chunk; it is valid until the one after it."""
        size = different_rows(self.size, self._samples.row_count, self._count)
        self.size = next(self._sizes)
        if len(self._order) < size:
            self._order = self._random.permutation(self._samples.row_count)
        chosen, self._order = self._order[:size], self._order[size:]
        chosen = self._samples.numbers_of(chosen)
        trial = -(-size // TRIAL_SHARE)
        # Both parts are random samples; sorted, each is read faster.
        chosen = np.concatenate([np.sort(chosen[:trial]), np.sort(chosen[trial:])])
        if self._room < size:
            backend = backend_of(self._samples.X)
            self._X, self._T = (
                empty((size, source.columns), source.dtype, backend)
                for source in (self._source, self._targets)
            )
            self._room = size
        X = self._source.take(chosen, self._X[:size])
        labels, sample_weight = self._samples.labels, self._samples.sample_weight
        labels = None if labels is None else labels[chosen]
        T = self._targets.take(chosen if labels is None else labels, self._T[:size])
        sample_weight = None if sample_weight is None else sample_weight[chosen]
        return Batch(X, T, sample_weight, trial, labels)


def different_rows(size: int, rows: int, count: int) -> int:
    """Return how many different rows to expect in a chunk, if `rows` rows are repeated so that they are `count`."""
    if count == rows:
        return size
    left_out: float = (1 - size / count) ** (count / rows)
    return max(1, round(rows * (1 - left_out)))


def first_chunk(net: Network, loss: str) -> int:
    """Return the number of rows that the first sweeps of a loss see."""
    return max(FIRST_CHUNK, ROWS_PER_NEURON[loss] * net.layer_sizes[-2])


def chunk_sizes(
    count: int, first: int, doublings: int, chunk_rows: int | None
) -> Iterator[int] | None:
    """Return the number of rows of every sweep, or None if every sweep sees all rows."""
    if chunk_rows is not None:
        return repeat(chunk_rows) if chunk_rows < count else None
    if count <= 2 * first:
        return None
    sizes = [min(first << doubling, count // 2) for doubling in range(doublings + 1)]
    return chain(*([size] * SWEEPS_OF_A_SIZE for size in sizes[:-1]), repeat(sizes[-1]))


def sample(samples: Samples, random: np.random.Generator) -> Samples:
    """Return a random sample of the rows, or all of them where they are few."""
    count = samples.row_count
    if count <= SAMPLE_ROWS:
        return samples.take(slice(None))
    return samples.take(np.sort(random.choice(count, SAMPLE_ROWS, replace=False, shuffle=False)))


def hold_out(
    samples: Samples, fraction: float, random: np.random.Generator
) -> tuple[Samples, Samples | None]:
    """Return the rows to train on, and the validation rows if the fraction is not 0."""
    if not is_number(fraction) or not 0 <= fraction < 1:
        raise ValueError(f"validation_fraction is {fraction!r}; expected a number >= 0 and below 1")
    if fraction == 0:
        return samples, None
    held = max(1, round(fraction * len(samples.X)))
    if held >= len(samples.X):
        raise ValueError(
            f"validation_fraction is {fraction!r}, which leaves no row to train with of n_samples = {len(samples.X)}"
        )
    order = random.permutation(len(samples.X))
    return samples.take(np.sort(order[held:])), samples.take(np.sort(order[:held]))
