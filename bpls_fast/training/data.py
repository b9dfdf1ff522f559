"""Rows of data: where they come from (`RowSource`), a training set (`Samples`), and what one sweep sees (`Batch`).

Everything here has been checked: see `checks.py`. `weights` always belong to a network, `sample_weight` to rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import column_sums, take_rows
from bpls_fast.kernels.backend import empty, to_backend, to_numpy

__all__ = [
    "MOST_REPETITIONS",
    "Array",
    "ArrayRows",
    "Batch",
    "RowSource",
    "Samples",
    "Weights",
    "float_of",
    "read_all",
]

Array = NDArray[Any]
Weights = list[NDArray[np.float64]]

BLOCK_ROWS = 65_536
"""Rows of a block, where a source is read from its first row to its last."""


MOST_REPETITIONS = 10
"""As how many rows a row counts at most, on average, in the length of a fit."""


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be read in any order and more than once, wherever they are kept.

    A class with these members is a source; nothing has to be registered.
    """

    @property
    def count(self) -> int:
        """The number of rows."""

    @property
    def columns(self) -> int:
        """The number of columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values: uint8, float32 or float64."""

    def take(self, chosen: NDArray[np.intp], out: Array) -> Array:
        """Copy the chosen rows into `out` and return it."""

    def blocks(self, block_rows: int = BLOCK_ROWS) -> Iterator[Array]:
        """Iterate over consecutive blocks of rows; the last one may be shorter."""


@dataclass(frozen=True)
class ArrayRows:
    """The rows of a matrix in memory, on the CPU or on the GPU, as a `RowSource`.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.training.data import ArrayRows
    >>> source = ArrayRows(np.arange(6.0).reshape(3, 2))
    >>> source.take(np.array([2, 0]), np.empty((2, 2)))
    array([[4., 5.],
           [0., 1.]])
    >>> [len(block) for block in source.blocks(2)]
    [2, 1]
    """

    X: Array

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.X)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.X.dtype

    def take(self, chosen: NDArray[np.intp], out: Array) -> Array:
        """Copy the chosen rows into `out` and return it."""
        rows: Array = take_rows(self.X, chosen, out)
        return rows

    def blocks(self, block_rows: int = BLOCK_ROWS) -> Iterator[Array]:
        """Iterate over consecutive blocks of rows, without copies."""
        for first in range(0, len(self.X), block_rows):
            yield self.X[first : first + block_rows]


def read_all(source: RowSource) -> Array:
    """Read all rows of a source into one matrix."""
    if isinstance(source, ArrayRows):
        return source.X
    X: Array = empty((source.count, source.columns), source.dtype, "cpu")
    first = 0
    for block in source.blocks():
        X[first : first + len(block)] = block
        first += len(block)
    return X


def float_of(X: Array | RowSource) -> type[np.floating[Any]]:
    """Return the type that rows of this type are computed in."""
    return np.float64 if X.dtype == np.float64 else np.float32


class Samples(NamedTuple):
    """A training set.

    With labels, `targets` has one row for each class and `labels` selects it; without, `targets` has one row for each
    row of X. Targets are what the outputs should be before their activation. With `rows`, only these rows of the arrays
    belong to the set, so that parts of the data need no copy of it.
    """

    X: Array
    targets: Array
    labels: NDArray[np.intp] | None
    sample_weight: Array | None
    repetition: float = 1.0  # rows that a weight of 1 stands for, on average
    rows: NDArray[np.intp] | None = None

    @property
    def row_count(self) -> int:
        """The number of rows of the set."""
        return len(self.X) if self.rows is None else len(self.rows)

    def numbers_of(self, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the numbers in the arrays of the chosen rows of the set."""
        return chosen if self.rows is None else self.rows[chosen]

    def total_weight(self) -> float:
        """Return the number of rows, or the sum of their weights."""
        if self.sample_weight is None:
            return self.row_count
        weights = self.sample_weight if self.rows is None else self.sample_weight[self.rows]
        return float(weights.sum(dtype=np.float64))

    def repetitions(self) -> float:
        """Return the number of rows if weights count as repetitions, but never less than there are."""
        return max(self.row_count, self.repetition * self.total_weight())

    def planned_rows(self) -> int:
        """Return the number of rows that chunks and sweeps are planned for: repetitions, up to MOST_REPETITIONS."""
        return round(min(self.repetitions(), MOST_REPETITIONS * self.row_count))

    def mean_square(self) -> float:
        """Return the mean of |T|²: over the classes, or weighted over the rows."""
        if self.labels is not None:
            return float(column_sums(self.targets, self.targets).sum()) / len(self.targets)
        T, weight = self.targets, self.sample_weight
        if self.rows is not None:
            T, weight = T[self.rows], None if weight is None else weight[self.rows]
        return float(column_sums(T, T, weight).sum()) / self.total_weight()

    def take(self, chosen: NDArray[np.intp] | slice) -> Samples:
        """Return the chosen rows as a training set."""
        if self.rows is not None:
            return self._replace(rows=None).take(self.rows[chosen])
        sample_weight = None if self.sample_weight is None else self.sample_weight[chosen]
        targets, labels = self.targets, self.labels
        if labels is None:
            targets = targets[chosen]
        else:
            labels = labels[chosen]
        return Samples(self.X[chosen], targets, labels, sample_weight, self.repetition)

    def to_backend(self, backend: str) -> Samples:
        """Return the rows where a fit on this backend needs them; labels stay on the host."""
        X, targets, weight = to_backend(backend, self.X, self.targets, self.sample_weight)
        return self._replace(X=X, targets=targets, sample_weight=weight)

    def followed_by(self, later: Samples, most: int) -> Samples:
        """Return these rows and later ones, at most the latest `most` of them."""
        X = np.concatenate([self.X, later.X])[-most:]
        sample_weight = self.sample_weight
        if sample_weight is not None or later.sample_weight is not None:
            both = [
                np.ones(len(part.X), float_of(X))
                if part.sample_weight is None
                else part.sample_weight
                for part in (self, later)
            ]
            sample_weight = np.concatenate(both)[-most:]
        if self.labels is None or later.labels is None:
            targets = np.concatenate([self.targets, later.targets])[-most:]
            return Samples(X, targets, None, sample_weight)
        labels = np.concatenate([self.labels, later.labels])[-most:]
        return Samples(X, self.targets, labels, sample_weight)

    def as_batch(self) -> Batch:
        """Return all rows as one batch, every row a trial row."""
        if self.rows is not None:
            return self.take(slice(None)).as_batch()
        T = self.targets if self.labels is None else self.targets[self.labels]
        return Batch(self.X, T, self.sample_weight, len(self.X), self.labels)

    def score(self, outputs: Array) -> float:
        """Return the accuracy of the outputs, or R² averaged over the outputs, both weighted."""
        outputs = to_numpy(outputs)
        weight = None if self.sample_weight is None else to_numpy(self.sample_weight)
        if self.labels is not None:
            return float(np.average(outputs.argmax(axis=1) == self.labels, weights=weight))
        T = to_numpy(self.targets).astype(np.float64)
        mean = np.average(T, axis=0, weights=weight)
        spread = np.average((T - mean) ** 2, axis=0, weights=weight)
        error = np.average((T - outputs) ** 2, axis=0, weights=weight)
        return float(np.mean(1 - error / np.where(spread > 0, spread, 1)))


class Batch(NamedTuple):
    """The rows that one sweep sees, and their targets T.

    Step lengths are found and tried on the first `trial` rows, the trial rows, which should be a fair sample of all.
    """

    X: Array
    T: Array
    sample_weight: Array | None
    trial: int
    labels: NDArray[np.intp] | None = None  # the output of each row's label

    def take(self, chosen: NDArray[np.intp]) -> Batch:
        """Return the chosen rows as a batch, every row a trial row."""
        sample_weight = None if self.sample_weight is None else self.sample_weight[chosen]
        labels = None if self.labels is None else self.labels[chosen]
        return Batch(self.X[chosen], self.T[chosen], sample_weight, len(chosen), labels)

    def trial_rows(self, most: int | None = None) -> Batch:
        """Return the trial rows, at most the first `most` of them."""
        count = self.trial if most is None else min(self.trial, most)
        sample_weight = None if self.sample_weight is None else self.sample_weight[:count]
        labels = None if self.labels is None else self.labels[:count]
        return Batch(self.X[:count], self.T[:count], sample_weight, count, labels)

    def total_weight(self) -> float:
        """Return the number of rows, or the sum of their weights."""
        return _total_weight(self.X, self.sample_weight)

    def squares(self) -> float:
        """Return |T|², weighted."""
        if self.sample_weight is None and isinstance(self.T, np.ndarray):
            return float(np.square(self.T, dtype=np.float64).sum())  # faster than by columns
        return float(column_sums(self.T, self.T, self.sample_weight).sum())


def _total_weight(X: Array, sample_weight: Array | None) -> float:
    return len(X) if sample_weight is None else float(sample_weight.sum(dtype=np.float64))
