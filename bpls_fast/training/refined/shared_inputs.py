"""Inputs of all fits of a choice or a committee: components that are found once, and the rows in terms of them.

Two ways lead to components. Where a Gram matrix of the inputs is affordable, they are its leading directions. Where it
is not, as with more columns than rows, no n x n array is made: they are directions that the targets of the rows to
train on determine, and leading directions if the spectrum of the rows is not flat. Targets of held-out rows never
enter.
"""

from __future__ import annotations

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
        wanted = first[:inputs] * self.variances[:, np.newaxis]
        V[:count] = solve(self.metric[:count, :count], cross(M[:inputs, :count], wanted), eps=1e-9)
        return self.components.inner(net, [V, *net.weights[1:]])


class FoldRows(NamedTuple):
    """The rows that a fit trains on, those that are held out, and the components that both consist of, if any."""

    rows: Samples
    held: Samples
    reduced: Reduced | None


def without(samples: Samples, fold: NDArray[np.intp]) -> Samples:
    """Return the rows that are not in a fold."""
    return samples.take(np.flatnonzero(_is_kept(len(samples.X), fold)))


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
            elif not self._is_too_large(LEADING + LEVELS * MOST_TARGETS):
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
        mean = self._scale / total * column_sums(X, None, weight)
        squares = self._scale**2 / total * column_sums(X, X, weight)
        variance = squares - np.square(mean)
        limit = offset_limit(X.dtype, weight is not None)
        varies = variance > squares / (1 + limit**2)
        if not standardize and (squares[~varies] > 0).any() and X.dtype != np.uint8:
            return False
        self._center = mean if self._net.bias else np.zeros_like(mean)
        self._unit = np.where(varies, np.sqrt(variance if self._net.bias else squares), 0.0)
        if not standardize:
            self._unit = np.ones_like(mean)
        inverse = np.divide(1.0, self._unit, out=np.zeros_like(mean), where=self._unit > 0)
        self._inverse = inverse[:, np.newaxis]
        left = squares * np.square(inverse) if not standardize else (self._unit > 0).astype(float)
        self._mean_square = float(np.mean([*left, *[1.0] * self._net.bias]))
        return bool(varies.any()) and bool(np.isfinite(self._unit).all())

    def _gram_is_affordable(self, rows: int) -> bool:
        """Return whether a Gram matrix of the inputs and its inverse are little work beside that of the sweeps."""
        inputs, neurons = self._net.layer_sizes[:2]
        work = rows * inputs**2 / 2 + inputs**3
        passes = GRAM_PASSES * len(self._samples.X) * inputs * neurons
        return inputs <= MANY_COLUMNS or work <= passes

    def _is_too_large(self, count: int) -> bool:
        """Return whether this number of components takes too much memory."""
        X = self._samples.X
        return len(X) * count * np.dtype(float_of(X)).itemsize > LARGEST_MEMORY

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
        least = self._share * self._mean_square * rows
        count = min(LEADING, rows // 2)
        once = self._pull_back(self._signs(rows, count)) / least
        twice = to_numpy(self._project(once)).astype(np.float64)
        flat = solve(gram(twice), twice.T, eps=rows, relative=False).T
        self._leading = _normalized(self._pull_back(flat))
        self._rows = self._project(self._leading)

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
                for directions, projected in self._target_directions(kept):
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

    def _target_directions(
        self, kept: NDArray[np.bool_]
    ) -> list[tuple[NDArray[np.float64], Array]]:
        """Return directions of the targets of the kept rows, and all rows in terms of them, level by level.

        They are those of partial least squares: the span of AᵀT, AᵀAAᵀT … contains the ridge regressions of T. Where
        there is a Gram matrix, the second is a ridge regression itself.
        """
        shares = kept.astype(np.float64)
        if self._samples.sample_weight is not None:
            shares *= to_numpy(self._samples.sample_weight)
        found: list[tuple[NDArray[np.float64], Array]] = []
        others = [] if self._leading is None else [self._leading]
        D, B = self._few_targets, np.empty((0, 0))
        for level in range(LEVELS):
            if level and self._gram is not None:
                B = _normalized(solve(self._gram, B, eps=INVERSE_RIDGE))
            else:
                D = D - np.einsum("i,ij->j", shares, D) / shares.sum()
                B = _normalized(self._pull_back(D * shares[:, np.newaxis]))
            new = _beside(np.concatenate(others, axis=1), B) if others else B
            others.append(new)
            found.append((new, self._project(new)))
            D = to_numpy(found[-1][1]).astype(np.float64)
        return found

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
