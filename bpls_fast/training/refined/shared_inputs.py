"""Inputs of all fits of a choice or a committee: components that are found once, and the rows in terms of them.

Two ways lead to components. Where a Gram matrix of the inputs is affordable, they are its leading directions. Where it
is not, as with more columns than rows, no n x n array is made: they are directions that the targets of the rows to
train on determine, and leading directions if the spectrum of the rows is not flat. Targets of held-out rows never
enter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import column_sums, cross, gram, linear, solve
from bpls_fast.kernels.backend import backend_of, empty, to_device_of, to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Samples, float_of
from bpls_fast.training.refined.chunks import sample
from bpls_fast.training.refined.components import Components, leading_components
from bpls_fast.training.refined.directions import (
    normalized,
    orthogonal_to,
    outstanding,
    side_by_side,
)
from bpls_fast.training.solvers import offset_limit

__all__ = ["FoldRows", "Reduced", "SharedInputs", "without"]

NARROW = 64
"""Up to so many columns, all of them enter."""

BLOCK_ROWS = 4096
"""Rows whose components are computed at a time, where they are a part of a larger array."""

LEAST_SHARE, LEAST_STANDARDIZED_SHARE = 1.0, 0.5
"""Leading directions have eigenvalues above this share of the mean of the Gram matrix's diagonal. In standardized
columns, a small eigenvalue is less a sign of noise."""

INVERSE_RIDGE = 0.1
"""The ridge, relative to the same mean, of a linear regression whose solution is among the directions."""

GRAM_PASSES = 6
"""A Gram matrix of the inputs is affordable if it costs no more than so many products of all rows with first layers."""

MANY_COLUMNS = 1024
"""Up to so many columns, a Gram matrix is always affordable."""

LARGEST_MEMORY = 1 << 28
"""The most bytes that the components of the rows may take."""

LEVELS = 2
"""Directions of the targets: AᵀT, AᵀAAᵀT and so on, so many."""

MOST_TARGETS = 32
"""The most columns of T that directions are found for; of more, random sums enter."""

PROBES, LEADING = 32, 128
"""Random vectors that tell a flat spectrum from others, and the number of leading directions of those others."""

FLAT = 0.5
"""A spectrum is flat if its effective rank is above this share of that of independent columns."""

PASS_COLUMNS = 128
"""The most columns of directions of targets that one pass over the rows finds."""

PARTS = 4
"""Parts of the rows, unless there are folds: directions of the targets for one part come from the others."""

LARGEST_UNIT = 1e15
"""The largest standard deviation of a column, and the inverse of the smallest, that float32 has room for."""


class Reduced(NamedTuple):
    """The components that a fit runs on.

    Attributes
    ----------
    components : Components
    metric : array
        The squares of the weights of all inputs, in units where these vary alike, are VᵀMV for weights V of the
        components and this M.
    mean_square : float
        The mean square of all inputs in these units, and of the ones of a bias.
    variances : array
        The squares of the units; 0 for an input that does not vary.
    """

    components: Components
    metric: NDArray[np.float64]
    mean_square: float
    variances: NDArray[np.float64]

    def network(self, net: Network) -> Network:
        """Return a network on components; its first layer is the closest to that of `net`."""
        M, first = self.components.M, net.weights[0]
        inputs, count = (size - net.bias for size in M.shape)
        V = np.zeros((count + net.bias, first.shape[1]))
        metric = self.metric[:count, :count]
        if metric.any():
            directions = M[:inputs, :count] * self.variances[:, np.newaxis]
            V[:count] = solve(metric, cross(directions, first[:inputs]), eps=1e-9)
        return self.components.inner(net, [V, *net.weights[1:]])


class Directions(NamedTuple):
    """Directions of the inputs, and all rows in terms of them."""

    B: NDArray[np.float64]
    rows: Array


class FoldRows(NamedTuple):
    """The rows that a fit trains on, those that are held out, and the components that both consist of, if any."""

    rows: Samples
    held: Samples
    reduced: Reduced | None


def without(samples: Samples, fold: NDArray[np.intp]) -> Samples:
    """Return the rows that are not in a fold, without a copy of them."""
    return samples._replace(rows=np.flatnonzero(_is_kept(len(samples.X), fold)))


def _is_kept(rows: int, fold: NDArray[np.intp]) -> NDArray[np.bool_]:
    kept = np.ones(rows, bool)
    kept[fold] = False
    return kept


class SharedInputs:
    """The inputs of several fits on parts of the same rows.

    Parameters
    ----------
    net : Network
        Its sizes and bias are those of all fits.
    samples : Samples
        All rows.
    context : FitContext
    parts : sequence of arrays, optional
        The folds of the rows: the numbers of the rows of each. By default they are PARTS random ones.
    standardize : bool
        Whether the fits treat the columns as if they were standardized.
    expected : sequence of arrays
        The folds that will be left out, empty where none is: what is found for all at once is found faster.
    can_reduce : bool
        Whether components are possible; else all inputs enter.
    many_sweeps : bool
        Whether the fits are so long that leading directions save time; else only directions of the targets are used.
    seed : int
    """

    def __init__(
        self,
        net: Network,
        samples: Samples,
        context: FitContext,
        parts: Sequence[NDArray[np.intp]] | None = None,
        *,
        standardize: bool,
        expected: Sequence[NDArray[np.intp]] = (),
        can_reduce: bool = True,
        many_sweeps: bool = True,
        seed: int = 0,
    ) -> None:
        self._net, self._samples, self._context = net, samples, context
        self._scale = net.scale_of(samples.X)
        self._random = np.random.default_rng(seed)
        self._leading: Array | None = None  # directions, in units where all inputs vary alike
        self._rows: Array | None = None  # in terms of these
        self._both: Array | None = (
            None  # the same rows, and those in terms of directions of the targets
        )
        self._gram: NDArray[np.float64] | None = None  # of the inputs in these units
        if parts is None:
            parts = np.array_split(np.random.default_rng(seed).permutation(len(samples.X)), PARTS)
        if len(parts) == 2:  # a fold's complement has parts, too
            parts = [part[first::2] for part in parts for first in range(2)]
        self._parts = parts
        self._found: dict[bytes, Directions] = {}  # of the targets, by the kept rows
        self._expected = [_is_kept(len(samples.X), fold) for fold in expected]
        self._share = LEAST_STANDARDIZED_SHARE if standardize else LEAST_SHARE
        self.by_targets = False
        """Whether components depend on the targets of the rows to train on."""
        inputs = net.layer_sizes[0]
        if not can_reduce or len(net.layer_sizes) == 2 or inputs <= NARROW:
            return
        with context.phase("gram"):
            few = sample(samples, self._random)
            if not self._find_units(few, standardize):
                return
            if self._gram_is_affordable(len(few.X)):
                found = self._leading_of(few, standardize) if many_sweeps else None
                del few  # a copy of some rows
                if found is not None:
                    self._use_leading(found, by_targets=standardize)
            elif not self._is_too_large(LEADING):
                self.by_targets = True
                self._sketch_leading()

    @property
    def reduces(self) -> bool:
        """Whether fits run on components."""
        return self.by_targets or self._leading is not None

    def without(self, fold: NDArray[np.intp]) -> FoldRows:
        """Return the rows that are not in a fold and those in it, until the next call."""
        samples, reduced = self._reduced(_is_kept(len(self._samples.X), fold))
        return FoldRows(without(samples, fold), samples.take(fold), reduced)

    def all_rows(self) -> tuple[Samples, Reduced | None]:
        """Return all rows, until the next call."""
        return self._reduced(np.ones(len(self._samples.X), bool))

    # ---- units

    def _find_units(self, few: Samples, standardize: bool) -> bool:
        """Find the centers and the units of all inputs; return whether rounding leaves something of each."""
        X, weight, total = few.X, few.sample_weight, few.total_weight()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self._scale / total * column_sums(X, None, weight)
            squares = self._scale**2 / total * column_sums(X, X, weight)
            variance = squares - np.square(mean)
        if not np.isfinite(variance).all():
            return False
        limit = offset_limit(X.dtype, weight is not None)
        varies = variance > squares / (1 + limit**2)
        bias = self._net.bias
        self._center = mean if bias else np.zeros_like(mean)
        if standardize:
            self._unit = np.sqrt(np.where(varies, variance if bias else squares, 0.0))
            left = varies.astype(np.float64)
        else:
            self._unit, left = np.ones_like(mean), squares
        units = self._unit[self._unit > 0]
        self._inverse = np.divide(1.0, self._unit, out=np.zeros_like(mean), where=self._unit > 0)[
            :, np.newaxis
        ]
        self._mean_square = float((left.sum() + bias) / (len(left) + bias))
        is_lost = not standardize and X.dtype != np.uint8 and bool(squares[~varies].any())
        is_small = bool((np.abs(np.log(units)) < np.log(LARGEST_UNIT)).all())
        return bool(varies.any()) and is_small and not is_lost

    def _gram_is_affordable(self, rows: int) -> bool:
        """Return whether a Gram matrix of the inputs and its inverse are little work beside that of the sweeps."""
        inputs, neurons = self._net.layer_sizes[:2]
        work = rows * inputs**2 / 2 + inputs**3
        passes = GRAM_PASSES * len(self._samples.X) * inputs * neurons
        return inputs <= MANY_COLUMNS or work <= passes

    def _is_too_large(self, count: int) -> bool:
        """Return whether this number of leading directions, and those of the targets, take too much memory."""
        X, parts = self._samples.X, len(self._parts)
        columns = count + LEVELS * self._few_targets.shape[1] * parts * (parts + 1) // 2
        size: int = len(X) * columns * np.dtype(float_of(X)).itemsize
        return size > LARGEST_MEMORY

    # ---- leading directions

    def _leading_of(self, few: Samples, by_targets: bool) -> Components | None:
        """Find the leading directions from a Gram matrix; keep it for directions of the targets."""
        if self._is_too_large(self._net.layer_sizes[0] // 2):
            return None
        X, weight = few.X, few.sample_weight
        G = to_numpy(gram(X, scale=self._scale, sample_weight=weight))
        G -= few.total_weight() * np.outer(self._center, self._center)
        G *= self._inverse
        G *= self._inverse.T
        least = self._share * self._mean_square * few.total_weight()
        most = len(G) // 2 - by_targets * LEVELS * self._few_targets.shape[1]
        found = leading_components(G, False, least, 1, most, self._random, X.dtype)
        self._gram = G if by_targets and found is not None else None
        return found

    def _use_leading(self, found: Components, by_targets: bool) -> None:
        """Compute the rows in terms of leading directions, next to room for those of the targets."""
        self._leading, self.by_targets = found.M, by_targets
        X, components, count = self._samples.X, self._components(found.M, found), found.M.shape[1]
        columns = count + by_targets * LEVELS * self._few_targets.shape[1]
        both: Array = empty((len(X), columns), float_of(X), backend_of(X))
        for first in range(0, len(X), BLOCK_ROWS):
            part = slice(first, first + BLOCK_ROWS)
            both[part, :count] = components.rows(X[part], self._scale)
        self._both, self._rows = both, both[:, :count]

    def _sketch_leading(self) -> None:
        """Find leading directions from products of the rows with random vectors, unless the spectrum is flat."""
        rows, inputs = self._samples.X.shape
        once = self._pull_back(self._signs(rows, PROBES))
        twice = to_numpy(self._project(once)).astype(np.float64)
        traces = [float(np.einsum("ij,ij->", Z, Z)) / PROBES for Z in (once, twice)]
        independent = rows * inputs / (rows + inputs)
        if not traces[0] ** 2 < FLAT * independent * traces[1]:
            return
        count = min(LEADING, max(1, rows // 2))
        once = self._pull_back(self._signs(rows, count)) / (rows * self._mean_square)
        twice = to_numpy(self._project(once)).astype(np.float64)
        flat = solve(gram(twice), twice.T, eps=rows, relative=False).T
        B = normalized(self._pull_back(flat))
        projected = self._project(B)
        total = traces[0]
        turned = outstanding(gram(B), to_numpy(gram(projected)), total, rows, inputs)
        if not turned.shape[1]:
            return
        self._leading = linear(B, turned)
        self._rows = linear(projected, turned.astype(projected.dtype))

    def _signs(self, rows: int, count: int) -> NDArray[np.float64]:
        return self._random.choice([-1.0, 1.0], (rows, count))

    # ---- directions of the targets

    def _reduced(self, kept: NDArray[np.bool_]) -> tuple[Samples, Reduced | None]:
        """Return all rows in terms of the components for rows to train on."""
        if not self.reduces:
            return self._samples, None
        with self._context.phase("start"):
            parts = [] if self._leading is None else [self._leading]
            rows = [] if self._rows is None else [self._rows]
            if self.by_targets:
                directions, projected = self._target_components(kept)
                parts.append(directions)
                rows.append(projected)
            B = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            components = self._components(B)
            count, bias = B.shape[1], self._net.bias
            metric = np.zeros((count + bias,) * 2)
            metric[:count, :count] = gram(B)
            metric[count:, count:] = 1.0
            variances = np.square(self._unit)
            reduced = Reduced(components, metric, self._mean_square, variances)
            X = rows[0] if len(rows) == 1 else self._joined(*rows)
        return self._samples._replace(X=X), reduced

    def _joined(self, leading: Array, of_targets: Array) -> Array:
        """Return both kinds of components side by side, in memory that the next call writes to."""
        count = leading.shape[1]
        if self._both is None or self._both.shape[1] != count + of_targets.shape[1]:
            self._both = side_by_side([leading, of_targets])
            self._rows = self._both[:, :count]
        else:
            self._both[:, count:] = of_targets
        return self._both

    def _target_components(self, kept: NDArray[np.bool_]) -> Directions:
        """Return directions of the targets of the kept rows, and all rows in terms of them.

        Beside leading directions, the components of a kept row are those of directions that its own target did not
        enter. Like those of new rows, they do not tell its target: else the network would learn nothing else. If there
        are no leading directions, there is nothing else to learn.
        """
        key = kept.tobytes()
        if key not in self._found or not self._found[key].B.size:
            self._find_target_directions([kept, *self._expected])
        found = self._found[key]
        if self._leading is None:
            return found
        projected = to_numpy(found.rows).copy()
        for part, others in self._cross_fits(kept):
            projected[part] = to_numpy(self._found[others.tobytes()].rows)[part]
        return found._replace(rows=to_device_of(found.rows, projected))

    def _cross_fits(
        self, kept: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
        """Iterate over the parts of the kept rows, each with the other kept rows."""
        for part in self._parts:
            own, others = part[kept[part]], kept.copy()
            others[own] = False
            if len(own) and others.any():
                yield own, others

    def _find_target_directions(self, masks: list[NDArray[np.bool_]]) -> None:
        """Find directions of the targets, and what cross-fitting needs, for several choices of the rows to keep."""
        wanted = {mask.tobytes(): mask for mask in masks}
        new = dict(wanted)
        if self._leading is not None:
            for mask in masks:
                new.update((others.tobytes(), others) for _, others in self._cross_fits(mask))
        keys, group = list(new), max(1, PASS_COLUMNS // self._few_targets.shape[1])
        for first in range(0, len(keys), group):
            some = keys[first : first + group]
            found = self._target_directions([new[key] for key in some])
            for key, directions in zip(some, found, strict=True):
                # Of the others only the rows are used.
                kept = directions.B if key in wanted else directions.B[:, :0]
                self._found[key] = directions._replace(B=kept.copy())

    def _target_directions(self, masks: list[NDArray[np.bool_]]) -> list[Directions]:
        """Return directions of the targets of kept rows, and all rows in terms of them.

        They are those of partial least squares: the span of AᵀT, AᵀAAᵀT … contains the ridge regressions of T. Where
        there is a Gram matrix, the second is a ridge regression itself.
        """
        shares = np.stack(masks).astype(np.float64)
        if self._samples.sample_weight is not None:
            shares *= to_numpy(self._samples.sample_weight)
        found: list[list[NDArray[np.float64]]] = [[] for _ in masks]
        rows: list[list[Array]] = [[] for _ in masks]
        leading = [] if self._leading is None else [self._leading]
        T, together = [self._few_targets] * len(masks), np.empty((0, 0))
        for level in range(LEVELS):
            if level and self._gram is not None:
                together = solve(self._gram, together, eps=INVERSE_RIDGE)
            else:
                D = [
                    share[:, np.newaxis] * (t - np.einsum("i,ij->j", share, t) / share.sum())
                    for share, t in zip(shares, T, strict=True)
                ]
                together = self._pull_back(np.concatenate(D, axis=1))
            together = normalized(together)
            for of_mask, B in zip(found, np.split(together, len(masks), axis=1), strict=True):
                others = leading + of_mask
                of_mask.append(orthogonal_to(np.concatenate(others, axis=1), B) if others else B)
            projected = self._project(np.concatenate([B[-1] for B in found], axis=1))
            columns = projected.shape[1] // len(masks)
            for number, of_mask in enumerate(rows):
                of_mask.append(projected[:, number * columns : (number + 1) * columns])
            T = [to_numpy(of_mask[-1]).astype(np.float64) for of_mask in rows]
        return [
            Directions(np.concatenate(B, axis=1), side_by_side(P))
            for B, P in zip(found, rows, strict=True)
        ]

    @cached_property
    def _few_targets(self) -> NDArray[np.float64]:
        """What is to be predicted for each row, in few columns."""
        samples = self._samples
        targets = to_numpy(samples.targets).astype(np.float64)
        count = targets.shape[1]
        if count > MOST_TARGETS:
            targets = linear(targets, self._signs(count, MOST_TARGETS))
        if samples.labels is None:
            return targets
        if 1 < count <= MOST_TARGETS:
            targets = targets[:, :-1]  # the last class is what the others are not
        return targets[samples.labels]

    # ---- products with the inputs in their units, A

    def _components(self, B: NDArray[np.float64], rounded: Components | None = None) -> Components:
        """Return the map from inputs to components of directions B, which may be rounded to integers."""
        bias, (inputs, count) = self._net.bias, B.shape
        M = np.zeros((inputs + bias, count + bias))
        np.multiply(B, self._inverse, out=M[:inputs, :count])
        if bias:
            M[inputs, :count] = -np.einsum("i,ij->j", self._center, M[:inputs, :count])
            M[inputs, count] = 1.0
        if rounded is None:
            return Components(M, bias)
        return Components(M, bias, rounded.integers, rounded.units)

    def _project(self, B: NDArray[np.float64]) -> Array:
        """Return A B."""
        return self._components(B).rows(self._samples.X, self._scale)

    def _pull_back(self, D: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return AᵀD."""
        X = self._samples.X
        narrow = to_device_of(X, D.astype(float_of(X)))
        C = to_numpy(cross(X, narrow, scale=self._scale))
        C -= np.outer(self._center, D.sum(axis=0))
        C *= self._inverse
        return C
