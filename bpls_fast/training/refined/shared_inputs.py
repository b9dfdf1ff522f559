"""Inputs of all fits of a choice or a committee: components that are found once, and the rows in terms of them.

Two ways lead to components. Where a Gram matrix of the inputs is affordable, they are its leading directions. Where it
is not, as with more columns than rows, no n x n array is made: they are directions that the targets of the rows to
train on determine, and leading directions if the spectrum of the rows is not flat. Targets of held-out rows never
enter.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from bpls_fast.training.solvers import offset_limit

__all__ = ["FoldRows", "Reduced", "SharedInputs", "without"]

NARROW = 64
"""Up to so many columns, all of them enter."""

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

PARTS = 4
"""Parts of the rows, unless there are folds: directions of the targets for one part come from the others."""

LARGEST_UNIT = 1e15
"""The largest standard deviation of a column, and the inverse of the smallest, that float32 has room for."""

LEAST_SIZE = 1e-3
"""What is left of a direction beside others, as a share of it, that is not rounding."""


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
        can_reduce: bool = True,
        many_sweeps: bool = True,
        seed: int = 0,
    ) -> None:
        self._net, self._samples, self._context = net, samples, context
        self._scale = net.scale_of(samples.X)
        self._random = np.random.default_rng(seed)
        self._leading: Array | None = None  # directions, in units where all inputs vary alike
        self._rows: Array | None = None  # in terms of these
        self._gram: NDArray[np.float64] | None = None  # of the inputs in these units
        if parts is None:
            parts = np.array_split(np.random.default_rng(seed).permutation(len(samples.X)), PARTS)
        if len(parts) == 2:  # a fold's complement has parts, too
            parts = [part[first::2] for part in parts for first in range(2)]
        self._parts = parts
        self._cross_fitted: dict[bytes, Array] = {}
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
                if many_sweeps:
                    self._find_leading(few, by_targets=standardize)
            elif not self._is_too_large(LEADING):
                self.by_targets = True
                self._sketch_leading()

    @property
    def reduces(self) -> bool:
        """Whether fits run on components."""
        return self.by_targets or self._leading is not None

    def without(self, fold: NDArray[np.intp]) -> FoldRows:
        """Return the rows that are not in a fold and those in it."""
        samples, reduced = self._reduced(_is_kept(len(self._samples.X), fold))
        return FoldRows(without(samples, fold), samples.take(fold), reduced)

    def all_rows(self) -> tuple[Samples, Reduced | None]:
        """Return all rows."""
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

    def _find_leading(self, few: Samples, by_targets: bool) -> None:
        """Find the leading directions from a Gram matrix."""
        X, weight = few.X, few.sample_weight
        G = to_numpy(gram(X, scale=self._scale, sample_weight=weight))
        G -= few.total_weight() * np.outer(self._center, self._center)
        G *= self._inverse
        G *= self._inverse.T
        least = self._share * self._mean_square * few.total_weight()
        most = len(G) // 2 - by_targets * LEVELS * self._few_targets.shape[1]
        found = leading_components(G, False, least, 1, most, self._random, X.dtype)
        if found is None or self._is_too_large(len(G) // 2):
            return
        self._leading = found.M
        self._rows = self._components(found.M, found).rows(self._samples.X, self._scale)
        self.by_targets = by_targets
        if by_targets:
            self._gram = G

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
        B = _normalized(self._pull_back(flat))
        projected = self._project(B)
        total = traces[0]
        turned = _outstanding(gram(B), to_numpy(gram(projected)), total, rows, inputs)
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
            X = rows[0] if len(rows) == 1 else _side_by_side(rows)
        return self._samples._replace(X=X), reduced

    def _target_components(self, kept: NDArray[np.bool_]) -> tuple[NDArray[np.float64], Array]:
        """Return directions of the targets of the kept rows, and all rows in terms of them.

        Beside leading directions, the components of a kept row are those of directions that its own target did not
        enter. Like those of new rows, they do not tell its target: else the network would learn nothing else. If there
        are no leading directions, there is nothing else to learn.
        """
        B, P = self._target_directions(kept)
        if self._leading is None:
            return B, P
        projected = to_numpy(P).copy()
        for part in self._parts:
            own, others = part[kept[part]], kept.copy()
            others[own] = False
            if not len(own) or not others.any():
                continue
            key = others.tobytes()
            if key not in self._cross_fitted:
                self._cross_fitted[key] = to_numpy(self._target_directions(others)[1])
            projected[own] = self._cross_fitted[key][own]
        return B, to_device_of(P, projected)

    def _target_directions(self, kept: NDArray[np.bool_]) -> tuple[NDArray[np.float64], Array]:
        """Return directions of the targets of the kept rows, and all rows in terms of them.

        They are those of partial least squares: the span of AᵀT, AᵀAAᵀT … contains the ridge regressions of T. Where
        there is a Gram matrix, the second is a ridge regression itself.
        """
        shares = kept.astype(np.float64)
        if self._samples.sample_weight is not None:
            shares *= to_numpy(self._samples.sample_weight)
        found = [] if self._leading is None else [self._leading]
        projected: list[Array] = []
        D, B = self._few_targets, np.empty((0, 0))
        for level in range(LEVELS):
            if level and self._gram is not None:
                B = _normalized(solve(self._gram, B, eps=INVERSE_RIDGE))
            else:
                D = D - np.einsum("i,ij->j", shares, D) / shares.sum()
                B = _normalized(self._pull_back(D * shares[:, np.newaxis]))
            found.append(_beside(np.concatenate(found, axis=1), B) if found else B)
            projected.append(self._project(found[-1]))
            D = to_numpy(projected[-1]).astype(np.float64)
        return np.concatenate(found[-LEVELS:], axis=1), _side_by_side(projected)

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


def _normalized(B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns of size 1, or 0."""
    sizes = np.sqrt(np.einsum("ij,ij->j", B, B))
    return B / np.where(sizes > 0, sizes, 1.0)


def _beside(others: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is left of columns of size 1 beside others, normalized; 0 where that is rounding."""
    left = B - linear(others, solve(gram(others), cross(others, B), eps=1e-9))
    sizes = np.sqrt(np.einsum("ij,ij->j", left, left))
    return np.where(sizes > LEAST_SIZE, left / np.where(sizes > 0, sizes, 1.0), 0.0)


def _outstanding(
    metric: NDArray[np.float64],
    small: NDArray[np.float64],
    total: float,
    rows: int,
    inputs: int,
) -> NDArray[np.float64]:
    """Return combinations of directions, orthonormal, whose eigenvalues are above those of independent columns.

    Parameters
    ----------
    metric, small : array
        BᵀB and BᵀAᵀAB for directions B.
    total : float
        The sum of all eigenvalues of AᵀA.
    rows, inputs : int
        The shape of A.
    """
    sizes, axes = np.linalg.eigh(metric)
    kept = sizes > LEAST_SIZE * sizes[-1]
    axes = axes[:, kept] / np.sqrt(sizes[kept])
    eigenvalues, turn = np.linalg.eigh(cross(axes, linear(small, axes)))
    eigenvalues, turn = eigenvalues[::-1], turn[:, ::-1]
    # The largest eigenvalue of independent columns, by the law of Marchenko and Pastur, if they were what is left.
    edge = (np.sqrt(rows) + np.sqrt(inputs)) ** 2 / (rows * inputs)
    left = total - np.cumsum(eigenvalues)
    count = int(np.argmin([*(eigenvalues > edge * left), False]))
    return linear(axes, np.ascontiguousarray(turn[:, :count]))


def _side_by_side(parts: list[Array]) -> Array:
    """Return the columns of all parts in one array, where the first of them is."""
    first = parts[0]
    whole: Array = empty(
        (len(first), sum(p.shape[1] for p in parts)), first.dtype, backend_of(first)
    )
    column = 0
    for part in parts:
        whole[:, column : column + part.shape[1]] = part
        column += part.shape[1]
    return whole
