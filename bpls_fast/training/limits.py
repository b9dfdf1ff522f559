"""Robust limits of columns: values far outside the bulk of a column are moved to its limits.

Distances are measured from the median, in spreads: the distance of the quartile on the same side. A value is far
outside if it is more than ten spreads away; of a normal column these are 6.7 standard deviations. The limits lie there,
or further out where the tail is not heavy, or where the targets follow the far values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import clip_rows
from bpls_fast.kernels.backend import on_device
from bpls_fast.training.data import Array

__all__ = ["column_limits", "inside_limits", "wider_limits"]

SPREADS = 10.0
"""The least distance of a limit from the median, in spreads."""

HEAVY = 3.0
"""The largest root mean square of distances, in spreads, that a heavy tail may lead to: 1.5 of a normal column, 1.6 of
an exponential one, 2.4 of a lognormal one; of Pareto's (index 1) 2.8 with limits at ten spreads."""

RARE = 0.1
"""Values other than the median count for that mean as at least this share of the rows: rare events have no tail."""

LEVELS = (1.0, 3.0, 10.0, 30.0, np.inf)
"""Distances of limits that are tried where a tail is heavy, relative to the least."""

FOLLOWED = 0.02
"""How much more of the targets' variance a column must explain at another level than at the first."""

ROUNDS = 5
"""How often columns are looked at for that, at most."""

MOST_ROWS, FEWEST_ROWS, MOST_VALUES = 2_000, 500, 2_000_000
"""The first look at all columns takes at most so many rows, fewer of wide tables, and about so many values."""

ROWS_OF_TAILS = 20_000
"""The second look, at columns with values outside the limits, takes at most so many rows, fewer of many columns."""

MOST_TAILS = 2_000
"""Of more columns with values outside, none is looked at again: their limits lie at ten spreads."""

BLOCK_VALUES = 1 << 18
"""Values that are sorted at a time."""

SAME = 0.01
"""The share of values equal to the median from which on they are left out of the quartiles."""


def column_limits(
    X: Array, y: Array, sample_weight: Array | None = None, *, labels: bool = False
) -> NDArray[np.float64]:
    """Return the lower and the upper limit of every column of floats.

    The spread on each side is the median distance of the values there, without those equal to the median of the column:
    columns of zeros and some other values, such as dummies and rare events, have the spread of these. If there is no
    value on one side, it gets the spread of the other. A constant column has infinite limits.

    Parameters
    ----------
    X : (d, n) array of float32 or float64
    y : (d,) or (d, outputs) array
        Targets, or labels.
    sample_weight : (d,) array, optional
        Weights count as repetitions.
    labels : bool
        Whether y holds labels.

    Returns
    -------
    (2, n) array
        Of large tables, limits are found on a part of the rows. Columns with values outside them are looked at again,
        on more rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.training.limits import column_limits
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [1e9, 1.0]])
    >>> column_limits(X, np.array([0.0, 0.1, 0.2, 0.3, 0.2]))
    array([[ -8., -inf],
           [ 12.,  inf]])
    """
    if sample_weight is not None and not sample_weight.all():
        kept = np.flatnonzero(sample_weight)
        X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
    looked_at = min(MOST_ROWS, max(FEWEST_ROWS, MOST_VALUES // X.shape[1]))
    first = slice(None, None, -(-len(X) // looked_at))
    bulk = _bulk(X[first], None if sample_weight is None else sample_weight[first])
    ends = np.array([X.min(axis=0), X.max(axis=0)], np.float64)
    # Columns that are constant on the rows looked at hold rare events, which have no tail.
    with np.errstate(over="ignore"):
        rare = np.where(bulk.below == 0, np.abs(ends - bulk.median).max(axis=0), 0.0)
    limits = bulk._replace(below=bulk.below + rare, above=bulk.above + rare).limits()
    columns = np.flatnonzero((ends[0] < limits[0]) | (ends[1] > limits[1]))
    if 0 < len(columns) <= MOST_TAILS:
        enough = min(ROWS_OF_TAILS, max(MOST_ROWS, MOST_VALUES // len(columns)))
        rows = slice(None, None, -(-len(X) // enough))
        weight = None if sample_weight is None else sample_weight[rows]
        response = _Response(y[rows], weight, labels)
        limits[:, columns] = _tail_limits(X[rows], columns, ends[:, columns], weight, response)
    return limits


def inside_limits(X: Array, limits: NDArray[np.float64] | None) -> Array:
    """Return X if all its values are inside the limits, else a copy with all of them inside."""
    if limits is None or not len(X):
        return X
    lower, upper = limits
    if not on_device(X) and (X.min(axis=0) >= lower).all() and (X.max(axis=0) <= upper).all():
        return X
    clipped: Array = clip_rows(X, limits)
    return clipped


def wider_limits(limits: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the narrowest limits that hold all values inside one or the other; those of constants are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.training.limits import wider_limits
    >>> wider_limits(np.array([[0.0], [1.0]]), np.array([[0.5], [2.0]]))
    array([[0.],
           [2.]])
    """
    wider = np.array([np.minimum(limits[0], others[0]), np.maximum(limits[1], others[1])])
    return np.where(np.isinf(limits), others, np.where(np.isinf(others), limits, wider))


class _Bulk(NamedTuple):
    """The median of every column and the spreads below and above it; all are 0 where a column is constant."""

    median: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]

    def limits(self) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            lower = self.median - SPREADS * self.below
            upper = self.median + SPREADS * self.above
        constant = self.below == 0
        return np.array([np.where(constant, -np.inf, lower), np.where(constant, np.inf, upper)])


class _Response:
    """What is to be predicted: how much of its variance a column explains."""

    def __init__(self, y: Array, weight: Array | None, labels: bool) -> None:
        self.weight = np.ones(len(y)) if weight is None else weight.astype(np.float64)
        self.total, self.labels = self.weight.sum(), labels
        if labels:
            classes, index = np.unique(y, return_inverse=True)
            self.index, outputs = index.reshape(-1), len(classes)
            self.of_classes = np.bincount(self.index, self.weight)
        else:
            Y = y.reshape(len(y), -1).astype(np.float64)
            largest = np.abs(Y).max()
            Y = Y / (largest if largest > 0 else 1.0)
            Y -= np.einsum("i,ij->j", self.weight, Y) / self.total
            self.numbers, outputs = Y, Y.shape[1]
            self.variation = float(np.einsum("i,ij,ij->", self.weight, Y, Y))
        self.noise = 10 * outputs / len(y)

    def explained(self, x: NDArray[np.float64]) -> float:
        """Return the share of the variance that a linear function explains; of a column by labels, their means."""
        weighted = self.weight * x
        mean = weighted.sum() / self.total
        x, weighted = x - mean, weighted - mean * self.weight
        squares = (weighted * x).sum()
        if self.labels:
            sums = np.bincount(self.index, weighted)
            return float((np.square(sums) / self.of_classes).sum() / squares)
        # einsum, not @: the threads that BLAS starts for a product keep spinning and slow down our own.
        products = np.einsum("i,ij->j", weighted, self.numbers)
        return float(np.square(products).sum() / squares / self.variation)

    def subtract(self, Z: NDArray[np.float64]) -> None:
        """Subtract from numbers what a linear function of some columns explains."""
        Z = Z / np.abs(Z).max(axis=0)
        Z -= np.einsum("i,ij->j", self.weight, Z) / self.total
        root = np.sqrt(self.weight)[:, np.newaxis]
        coefficients = np.linalg.lstsq(root * Z, root * self.numbers, rcond=None)[0]
        self.numbers = self.numbers - Z @ coefficients
        self.variation = float(np.einsum("i,ij,ij->", self.weight, self.numbers, self.numbers))


def _bulk(X: Array, weight: Array | None) -> _Bulk:
    """Return medians and spreads from all rows."""
    rows, columns = X.shape
    found = np.empty((3, columns))
    width = max(1, BLOCK_VALUES // rows)
    for begin in range(0, columns, width):
        block = slice(begin, begin + width)
        found[:, block] = _block_bulk(np.ascontiguousarray(X[:, block].T), weight)
    return _Bulk(*found)


def _block_bulk(X: Array, weight: Array | None) -> NDArray[np.float64]:
    """Return median and spreads of the rows of X, which are columns of a table."""
    low, median, high = _quantiles(X, weight, (0.25, 0.5, 0.75))
    with np.errstate(over="ignore"):
        below, above = median - low, high - median
        same = np.count_nonzero(median[:, np.newaxis].astype(X.dtype) == X, axis=1)
        for column in np.flatnonzero(same > max(1.0, SAME * X.shape[1])):
            distances = X[column].astype(np.float64) - median[column]
            below[column] = _median_distance(-distances, weight)
            above[column] = _median_distance(distances, weight)
    return np.array([median, np.where(below > 0, below, above), np.where(above > 0, above, below)])


def _median_distance(distances: NDArray[np.float64], weight: Array | None) -> float:
    """Return the median of the distances above 0, or 0 if there are none."""
    positive = distances > 0
    if not positive.any():
        return 0.0
    few = None if weight is None else weight[positive]
    return float(_quantiles(distances[np.newaxis, positive], few, (0.5,))[0, 0])


def _quantiles(X: Array, weight: Array | None, shares: tuple[float, ...]) -> NDArray[np.float64]:
    """Return quantiles of the rows of X, each a value of its row: the first that has the share at or below it."""
    count = X.shape[1]
    if weight is None:
        places = [max(0, int(np.ceil(share * count)) - 1) for share in shares]
        return np.asarray(np.partition(X, places, axis=1)[:, places].T, np.float64)
    order = np.argsort(X, axis=1, kind="stable")
    sums = np.cumsum(weight[order], axis=1, dtype=np.float64)
    total = sums[:, -1:]
    found = [
        np.take_along_axis(order, (sums < share * total).sum(axis=1)[:, np.newaxis], axis=1)
        for share in shares
    ]
    values = np.take_along_axis(X, np.concatenate(found, axis=1), axis=1)
    return np.asarray(values.T, np.float64)


def _tail_limits(
    X: Array,
    columns: NDArray[np.intp],
    ends: NDArray[np.float64],
    weight: Array | None,
    response: _Response,
) -> NDArray[np.float64]:
    """Return the limits of some columns with values outside those of their bulk, and with these ends."""
    levels = np.empty((len(LEVELS), *ends.shape))
    width = max(1, BLOCK_VALUES // len(X))
    for begin in range(0, len(columns), width):
        block = X[:, columns[begin : begin + width]]
        bulk = _bulk(block, weight)
        for number, (median, below, above) in enumerate(zip(*bulk, strict=True)):
            place = begin + number
            if not below:
                levels[:, :, place] = -np.inf, np.inf
                continue
            x = block[:, number].astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                distance = np.where(x < median, (median - x) / below, (x - median) / above)
                far = _longest_tail(distance, response.weight) * np.array(LEVELS)
                lower = min(ends[0, place], median - SPREADS * below)
                upper = max(ends[1, place], median + SPREADS * above)
                levels[:, 0, place] = np.maximum(lower, median - far * below)
                levels[:, 1, place] = np.minimum(upper, median + far * above)
    chosen = _chosen_levels(X, columns, levels, response)
    return np.asarray(levels[chosen, :, np.arange(len(columns))].T)


def _chosen_levels(
    X: Array, columns: NDArray[np.intp], levels: NDArray[np.float64], response: _Response
) -> NDArray[np.intp]:
    """Return the level of limits for each column: the first, or the one that explains more of the response.

    Next to a column of giants, no other explains much of numbers: those that are found are fitted, and the others are
    looked at again with what is left.
    """
    chosen = np.zeros(len(columns), np.intp)
    least = max(FOLLOWED, response.noise)

    def limited(place: int, level: int) -> NDArray[np.float64]:
        clipped: NDArray[np.float64] = X[:, columns[place]].astype(np.float64)
        return np.clip(clipped, *levels[level, :, place], out=clipped)

    for _ in range(ROUNDS):
        new = []
        for place in np.flatnonzero(chosen == 0).tolist():
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                found = [response.explained(limited(place, level)) for level in range(len(levels))]
            best = int(np.argmax(np.nan_to_num(found)))
            if found[best] > found[0] + least:
                chosen[place] = best
                new.append(place)
        if not new or response.labels:
            break
        followed = np.flatnonzero(chosen).tolist()
        response.subtract(np.column_stack([limited(place, chosen[place]) for place in followed]))
    return chosen


def _longest_tail(distance: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Return the largest c with a root mean square of min(distance, c) of at most HEAVY, but at least SPREADS."""
    others = max(weight[distance > 0].sum(), RARE * weight.sum())
    beyond = distance > SPREADS
    inner = (weight[~beyond] * np.square(distance[~beyond])).sum()
    far, weights = distance[beyond], weight[beyond]
    order = np.argsort(far)
    far, weights = far[order], weights[order]
    # Of the values that are not beyond far[i], and the weight of the others.
    squares = inner + np.cumsum(np.r_[0.0, weights * np.square(far)])
    rest = weights.sum() - np.cumsum(np.r_[0.0, weights])
    most = HEAVY**2 * others
    last = int(np.searchsorted(squares[1:] + rest[1:] * np.square(far), most, side="right"))
    if last == len(far):
        return np.inf
    return float(np.sqrt(max((most - squares[last]) / rest[last], SPREADS**2)))
