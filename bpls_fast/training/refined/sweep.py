"""One refined sweep: how the hidden layers of a network move so that the best output layer for them gets better.

The letters are those of the method: X enters the network, N are the values of a hidden layer, T is what the outputs
should be before their activation, R what is left of it, D a residual pulled back to the pre-activations of a layer. The
output layer has no steps: it is solved for whatever the hidden layers give (variable projection).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import (
    column_sums,
    cross,
    gram,
    linear,
    residual,
    solve,
    solve_batched,
    tangent,
)
from bpls_fast.kernels.backend import arrays_to_numpy, empty, to_device_of, to_numpy
from bpls_fast.network.network import Network, scaled_inputs
from bpls_fast.training.data import float_of
from bpls_fast.training.report import Recorder
from bpls_fast.training.solvers import (
    LARGEST_EPS,
    Standardization,
    offset_limit,
    solve_growing,
    standardization,
)

__all__ = ["Forward", "Output", "Refinement", "Rows"]

Array = NDArray[Any]
Weights = list[NDArray[np.float64]]

DAMPING = 0.5
"""What is added to the curvature of every neuron, as a share of the mean of its layer."""

SLOPE_ROWS, FEW_SLOPES = 1250, 300
"""Products of slopes are averaged over so many rows at most, evenly spaced, since rows may be sorted: of the rows for
trial, or of all where those are few."""

UPPER_RIDGE = 0.1
"""The ridge of the layers above the first, as a share of that of the first: what enters them is made for the task."""

CONJUGACY, CONJUGACY_OF_CHUNKS = 0.9, 0.8
"""How much of the last directions is kept at most, in sweeps over all rows and in those over chunks."""

HALVINGS = 6
"""How often a step that raises the loss is halved before its directions are given up."""

OUTPUT_EPS = np.logspace(1, -6, 8)
"""The ridges that cross-validation chooses from."""

SIGNAL = 0.9
"""It is asked only where the features leave less than this share of the error that a constant leaves."""

UNDECIDED = 1e-4
"""The ridge where it is not asked."""

NEARLY = 1.05
"""It takes the first, the largest, whose error is at most so many times the least: the features will yet be fitted."""

LATER_RIDGE = 0.1
"""The ridge of sweeps over chunks, as a share of that: features that are learnt need less than those of the start."""


class Rows(NamedTuple):
    """Rows that a sweep sees: what enters the network, what its outputs should be, the weights of the rows.

    The first `trial` rows are those on which step lengths are found and tried; they should be a fair sample of all.
    """

    X: Array
    T: Array
    weights: Array | None
    trial: int

    def for_trial(self) -> Rows:
        """Give the rows on which steps are tried."""
        weights = None if self.weights is None else self.weights[: self.trial]
        return Rows(self.X[: self.trial], self.T[: self.trial], weights, self.trial)

    def total_weight(self) -> float:
        """Give the number of rows, or the sum of their weights."""
        return len(self.X) if self.weights is None else float(self.weights.sum(dtype=np.float64))

    def squares(self) -> float:
        """Give |T|², weighted."""
        if self.weights is None and isinstance(self.T, np.ndarray):
            return float(np.square(self.T, dtype=np.float64).sum())  # faster than by columns
        return float(column_sums(self.T, self.T, self.weights).sum())


class Output(NamedTuple):
    """The output layer W that is best for some values N of the last hidden layer.

    `G` is NᵀN with the ridge on its diagonal, `C` is NᵀT, `loss` the least value of |T - N W|² + ridge·|W|².
    """

    W: NDArray[np.float64]
    G: NDArray[np.float64]
    C: NDArray[np.float64]
    ridge: float
    loss: float


class Forward(NamedTuple):
    """Rows on their way through the network.

    `Z` are the pre-activations of the first layer, of the rows for trial alone; `N` the values of every hidden layer.
    """

    Z: Array
    N: list[Array]
    output: Output


class Refinement:
    """The hidden layers of a network on their way from sweep to sweep.

    Parameters
    ----------
    net : Network
        Gives sizes, activations, bias and the hidden weights to begin with; it is left alone.
    record : Recorder
        Where times go. Its eps is the ridge of the first layer, relative to the mean of its Gram's diagonal.
    output_eps : float
        The ridge of the output layer, relative in the same way.
    standardize : bool
        Whether the ridge of the first layer is that of columns with mean 0 and mean square 1.

    Attributes
    ----------
    hidden : list of arrays
        The weights of the hidden layers, as the last sweep left them.
    known : Forward or None
        How the rows for trial of the last sweep run through the network, as it left them.
    failed : bool
        Whether the last sweep found no step that lowers the loss; the next one begins new directions.
    """

    def __init__(
        self, net: Network, record: Recorder, *, output_eps: float, standardize: bool
    ) -> None:
        self.net = net
        self.record = record
        self.output_eps = output_eps
        self.standardize = standardize
        self.hidden: Weights = [W.copy() for W in net.weights[:-1]]
        self.failed = False
        self._inverse: Array = np.empty((0, 0))
        self._directions: Weights = []
        self._gradients: Weights = []
        self._slope = 0.0
        self.known: Forward | None = None
        self._memory: dict[str, Array] = {}

    def learn_inputs(
        self,
        G: NDArray[np.float64],
        total: float,
        X: Array,
        weights: Array | None,
        ridge: NDArray[np.float64] | None = None,
    ) -> None:
        """Invert the Gram matrix of what enters the network, once for many sweeps.

        `total` is the weight of all rows that it is of, X and `weights` are some of them; `ridge` is the ridge where it
        is no multiple of the identity.

        The ridge of a hidden layer is so large that the inverse is as accurate as a factor, even rounded to the type of
        the arithmetic, and it is quicker to apply.
        """
        # What is not finite any more is refused by the first step.
        with self.record.phase("solve"), np.errstate(over="ignore", invalid="ignore"):
            dtype, eye = float_of(X), np.eye(len(G))
            if not G.diagonal().any():
                self._inverse = eye.astype(dtype)
                return
            if self.standardize:
                T = self._scales(G, X, weights)
                inverse = solve_growing(T.between(G), total * eye, self.record)
                inverse = T.back(T.back(inverse).T)
            elif ridge is not None:
                inverse = solve(G + ridge, total * eye)
            else:
                inverse = solve_growing(G, total * eye, self.record)
            narrow = inverse.astype(dtype)
            self._inverse = narrow if np.isfinite(narrow).all() else inverse

    def _scales(self, G: NDArray[np.float64], X: Array, weights: Array | None) -> Standardization:
        """Give how columns whose Gram matrix is G are centred and scaled for a ridge: not at all, or to variance 1."""
        if not self.standardize or not G.diagonal().any():
            return Standardization(np.zeros(len(G)), np.ones(len(G)))
        offset = offset_limit(X.dtype, weights is not None)
        return standardization(G, self.net.bias, offset)

    def sweep(self, rows: Rows, *, again: bool = False) -> float:
        """Move the hidden layers once; give the loss before that, per unit of weight.

        `again` says that how these rows run through the network is known: they are those of the last sweep, all of them
        for trial, or were cross-validated.
        """
        now = self.known if again and self.known is not None else self.forward(rows)
        self.known = now
        R = self._residual(rows, now, "R")
        gradients, steps = self._steps(rows, now, R)
        is_chunk = rows.trial < len(rows.X)
        directions = self._conjugate(
            gradients, steps, CONJUGACY_OF_CHUNKS if is_chunk else CONJUGACY
        )
        if is_chunk:
            trial, N = rows.for_trial(), [N[: rows.trial] for N in now.N]
            before = Forward(now.Z, N, self.solve_output(N[-1], trial))
            R = self._residual(trial, before, "R of trial")
        else:
            trial, before = rows, now
        with self.record.phase("step"):
            W = self._cast(directions[0], trial.X, R.dtype)
            V = self._buffer("V", before.Z.shape, R.dtype)
            linear(trial.X, W, bias=self.net.bias, out=V, check_finite=False)
            lengths = self._lengths(trial, before, R, directions, V)
        self._move(trial, before, directions, lengths, V)
        return now.output.loss / rows.total_weight()

    def forward(self, rows: Rows, hidden: Weights | None = None) -> Forward:
        """Run rows through the hidden layers and solve the output layer for what they give.

        `hidden` are other weights than the present ones.
        """
        hidden = self.hidden if hidden is None else hidden
        with self.record.phase("forward"):
            W = self._cast(hidden[0], rows.X, rows.T.dtype)
            first, bias, count = self.net.activations[0], self.net.bias, rows.trial
            Z = self._buffer("Z", (count, W.shape[1]), W.dtype)
            linear(rows.X[:count], W, bias=bias, out=Z, check_finite=False)
            N = self._buffer("N", (len(rows.X), W.shape[1]), W.dtype)
            N[:count] = first.forward(Z)
            if count < len(rows.X):
                linear(
                    rows.X[count:],
                    W,
                    bias=bias,
                    activation=first.name,
                    out=N[count:],
                    check_finite=False,
                )
            values = self._above_first(N, hidden)
        return Forward(Z, values, self.solve_output(values[-1], rows))

    def solve_output(self, N: Array, rows: Rows) -> Output:
        """Give the best output layer for the values N of the last hidden layer."""
        with self.record.phase("gram"):
            G, C = arrays_to_numpy(gram(N, rows.T, bias=self.net.bias, sample_weight=rows.weights))
        return self.solve_output_of(G, C, rows)

    def solve_output_of(self, G: Array, C: Array, rows: Rows) -> Output:
        """Give the best output layer for values N from G = NᵀN, which gets the ridge, and C = NᵀT."""
        with self.record.phase("solve"):
            diagonal = G.reshape(-1)[:: len(G) + 1]
            mean, ridge = float(diagonal.mean()), 0.0
            eps = self.output_eps
            while mean > 0:
                diagonal += eps * mean - ridge
                ridge = eps * mean
                try:
                    W = solve(G, C, eps=0)
                    return Output(W, G, C, ridge, max(rows.squares() - _dot(C, W), 0.0))
                except np.linalg.LinAlgError:
                    if eps >= LARGEST_EPS:
                        raise
                    eps = max(10 * eps, 1e-12)
            diagonal += 1.0
            return Output(np.zeros_like(C), G, C, 1.0, rows.squares())

    def solve_on_inputs(self, G: Array, C: Array, rows: Rows) -> Output:
        """Give the best output layer of a network without hidden ones, from XᵀX and XᵀT."""
        T = self._scales(G, rows.X, rows.weights)
        output = self.solve_output_of(T.between(G), T.onto(C), rows)
        return output._replace(W=T.back(output.W))

    def cross_validate(self, rows: Rows, repetitions: float, share: float = 1.0) -> None:
        """Set the ridge of the output layer to what generalized cross-validation prefers for the present features.

        Or to a share of it. With a ridge λ the features N have Σ s / (s + λ) degrees of freedom, over the eigenvalues s
        of NᵀN; the error is |T - N W|² / (repetitions - freedom)², where the rows are so many if their weights count as
        repetitions.
        """
        now = self.forward(rows)
        G, C, n = now.output.G, now.output.C, len(now.output.G)
        G.reshape(-1)[:: n + 1] -= now.output.ridge
        with self.record.phase("solve"):
            mean = float(G.diagonal().mean())
            if mean == 0:
                return
            rounding = n * float(np.finfo(rows.T.dtype).eps)
            grid = OUTPUT_EPS[rounding <= OUTPUT_EPS]
            systems = np.broadcast_to(G, (len(grid), n, n)).copy()
            systems.reshape(len(grid), -1)[:, :: n + 1] += (grid * mean)[:, np.newaxis]
            sides = np.concatenate([C, np.eye(n)], axis=1)
            solved = solve_batched(
                systems, np.broadcast_to(sides, (len(grid), *sides.shape)), eps=0
            )
            W, inverses = solved[:, :, : C.shape[1]], solved[:, :, C.shape[1] :]
            squares, ridge = rows.squares(), grid * mean
            left = squares - np.einsum("kij,ij->k", W, C) - ridge * np.einsum("kij,kij->k", W, W)
            left = np.maximum(left, 100 * np.finfo(rows.T.dtype).eps * squares)
            freedom = n - ridge * np.einsum("kii->k", inverses)
            remaining = repetitions - freedom
            error = np.where(remaining >= 1, left / np.square(remaining), np.inf)
            # What a constant leaves: features that do no better at the start are yet to be learnt, by free hands.
            constant = squares
            if self.net.bias:
                constant -= float(np.square(C[-1]).sum()) / G[-1, -1]
            if error.min() < SIGNAL * constant / max(repetitions - 1, 1) ** 2:
                chosen = float(grid[np.argmax(error <= NEARLY * error.min())])
            else:
                chosen = UNDECIDED
            self.output_eps = max(share * chosen, rounding)
        self.known = now._replace(output=self.solve_output_of(G, C, rows))

    def _residual(self, rows: Rows, now: Forward, name: str) -> Array:
        with self.record.phase("target"):
            R = self._buffer(name, rows.T.shape, rows.T.dtype)
            W = now.output.W.astype(R.dtype)
            N = now.N[-1]
            return residual(N, W, rows.T, bias=self.net.bias, out=R, check_finite=False)

    def _steps(self, rows: Rows, now: Forward, R: Array) -> tuple[Weights, Weights]:
        """Give the gradient of every hidden layer, per unit of weight, and its least-squares step."""
        if rows.weights is not None:
            of_rows = rows.weights[:, np.newaxis]
            R = np.multiply(R, of_rows, out=self._buffer("weighted R", R.shape, R.dtype))
        total = rows.total_weight()
        flat = float(np.finfo(R.dtype).tiny) ** 0.75  # where nothing has a slope, steps stay finite
        gradients: Weights = []
        steps: Weights = []
        D, above, curvature = R, now.output.W, np.eye(R.shape[1])
        for layer in reversed(range(len(self.hidden))):
            N, activation = now.N[layer], self.net.activations[layer]
            with self.record.phase("target"):
                W = self._without_bias(above)
                curvature, coupled = self._curvature(curvature, W, layer, now, rows)
                pulled = self._buffer(f"D {layer}", N.shape, N.dtype)
                back = W.T.astype(N.dtype)
                D = tangent(D, back, N, activation=activation.name, out=pulled, check_finite=False)
            if layer:
                with self.record.phase("gram"):
                    G, gradient = self._gram(now.N[layer - 1], D, rows.weights)
                with self.record.phase("solve"):
                    step = solve_growing(G, gradient, self.record, UPPER_RIDGE)
            else:
                with self.record.phase("gram"):
                    scale = self.net.scale_of(rows.X)
                    gradient = to_numpy(cross(rows.X, D, bias=self.net.bias, scale=scale))
                with self.record.phase("solve"):
                    right = (gradient / total).astype(self._inverse.dtype)
                    step = linear(self._inverse, right).astype(np.float64, copy=False)
            gradient /= total
            with self.record.phase("solve"):
                diagonal = curvature.reshape(-1)[:: len(curvature) + 1]
                diagonal += flat
                if coupled:
                    step = solve(curvature, step.T, eps=DAMPING).T
                else:
                    step /= diagonal + DAMPING * diagonal.mean()
            gradients.insert(0, gradient)
            steps.insert(0, step)
            above = self.hidden[layer]
        return gradients, steps

    def _curvature(
        self, above: Array, W: Array, layer: int, now: Forward, rows: Rows
    ) -> tuple[Array, bool]:
        """Give what the layers above, whose curvature is given, make of any two neurons of a layer below weights W.

        Also say whether they are coupled. Where they are taken to be independent the matrix is diagonal: neurons of
        softmax, which move together, and those of a single hidden layer do better so.
        """
        N, activation = now.N[layer], self.net.activations[layer]
        if activation.name == "softmax" or len(self.hidden) == 1:
            squares = activation.squared_slopes(N, sample_weight=rows.weights)
            squares = squares / rows.total_weight()
            return np.diag(np.einsum("ij,ij->i", linear(W, above), W) * squares), False
        count = len(N) if rows.trial < FEW_SLOPES else rows.trial
        some = slice(0, count, -(-count // SLOPE_ROWS))
        N, weights = N[some], None if rows.weights is None else rows.weights[some]
        slopes = activation.jacobian(self._ones(N), N)
        total = len(N) if weights is None else float(weights.sum(dtype=np.float64))
        products = to_numpy(gram(slopes, sample_weight=weights)) / total
        return linear(linear(W, above), W.T) * products, True

    def _gram(self, N: Array, D: Array, weights: Array | None) -> tuple[Array, Array]:
        """Give NᵀWN and NᵀD: in D the weights are already."""
        if weights is None:
            G, C = arrays_to_numpy(gram(N, D, bias=self.net.bias))
            return G, C
        G = to_numpy(gram(N, bias=self.net.bias, sample_weight=weights))
        return G, to_numpy(cross(N, D, bias=self.net.bias))

    def _conjugate(self, gradients: Weights, steps: Weights, most: float) -> Weights:
        """Give the directions: the steps, and a part of the last directions (Polak-Ribière+), at most so much."""
        with self.record.phase("step"):
            slope = sum(map(_dot, gradients, steps))
            directions = steps
            if self._slope > 0 and not self.failed:
                beta = (slope - sum(map(_dot, self._gradients, steps))) / self._slope
                beta = min(max(beta, 0.0), most)
                conjugate = [s + beta * d for s, d in zip(steps, self._directions, strict=True)]
                if sum(map(_dot, gradients, conjugate)) > 0:
                    directions = conjugate
            self._gradients, self._directions, self._slope = gradients, directions, slope
            return directions

    def _lengths(
        self, rows: Rows, now: Forward, R: Array, directions: Weights, V: Array
    ) -> NDArray[np.float64]:
        """Give how far each layer should go: the least-squares solution on the linearized network.

        `V` is what the first direction adds to the pre-activations. What the output layer would make good anyway is
        taken off the effects of the layers.
        """
        net, layers, outputs = self.net, len(directions), R.shape[1]
        effects = self._buffer("effects", (len(R), (layers + 1) * outputs), R.dtype)
        top = self._without_bias(now.output.W).astype(R.dtype)
        for layer, direction in enumerate(directions):
            activation = net.activations[layer]
            if layer == 0:
                change = activation.jacobian(V, now.N[0])
            else:
                change = tangent(
                    now.N[layer - 1],
                    direction.astype(R.dtype),
                    now.N[layer],
                    bias=net.bias,
                    activation=activation.name,
                    check_finite=False,
                )
            for higher in range(layer + 1, layers):
                W = self._without_bias(self.hidden[higher]).astype(R.dtype)
                name = net.activations[higher].name
                change = tangent(change, W, now.N[higher], activation=name, check_finite=False)
            effects[:, layer * outputs : (layer + 1) * outputs] = linear(
                change, top, check_finite=False
            )
        effects[:, layers * outputs :] = R
        E = to_numpy(gram(effects, sample_weight=rows.weights))
        of_layers = effects[:, : layers * outputs]
        H = to_numpy(cross(now.N[-1], of_layers, bias=net.bias, sample_weight=rows.weights))
        absorbed = cross(H, solve(now.output.G, H, eps=0))
        E[: layers * outputs, : layers * outputs] -= absorbed
        blocks = E.reshape(layers + 1, outputs, layers + 1, outputs)
        M = np.einsum("ikjk->ij", blocks)
        system = M[:layers, :layers]
        sizes = np.sqrt(np.maximum(system.diagonal(), 0.0))
        if not sizes.any():  # no direction changes the outputs
            return np.zeros(layers)
        # Effects differ by orders of magnitude from layer to layer: the ridge is for effects of size 1.
        sizes = np.where(sizes > 0, sizes, 1.0)
        scaled = system / np.outer(sizes, sizes) + 1e-9 * np.eye(layers)
        lengths: NDArray[np.float64] = np.linalg.solve(scaled, M[:layers, layers] / sizes) / sizes
        return lengths

    def _move(
        self,
        rows: Rows,
        before: Forward,
        directions: Weights,
        lengths: NDArray[np.float64],
        V: Array,
    ) -> None:
        """Go along the directions; where that raises the loss of the rows for trial, half as far, and so on."""
        self.failed = True
        if not np.isfinite(lengths).all():
            return
        for halvings in range(HALVINGS):
            with self.record.phase("step"):
                pairs = zip(self.hidden, lengths, directions, strict=True)
                hidden = [W + length * direction for W, length, direction in pairs]
                Z = V * V.dtype.type(lengths[0])
                Z += before.Z
                values = self._above_first(self.net.activations[0].forward(Z), hidden)
            after = Forward(Z, values, self.solve_output(values[-1], rows))
            if after.output.loss <= before.output.loss:
                self.hidden, self.failed, self.known = hidden, False, after
                if halvings:
                    self._slope = 0.0
                return
            lengths = lengths / 2

    def _above_first(self, N: Array, hidden: Weights) -> list[Array]:
        """Give the values of all hidden layers from those of the first."""
        values = [N]
        for W, activation in zip(hidden[1:], self.net.activations[1:], strict=False):
            W = W.astype(N.dtype)
            values.append(
                linear(
                    values[-1],
                    W,
                    bias=self.net.bias,
                    activation=activation.name,
                    check_finite=False,
                )
            )
        return values

    def _cast(self, W: NDArray[np.float64], X: Array, dtype: Any) -> Array:
        """Give the weights of the first layer in the type of the arithmetic, the scale of the inputs in them."""
        return scaled_inputs(W, self.net.scale_of(X), self.net.bias).astype(dtype)

    def _without_bias(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        return W[: len(W) - self.net.bias]

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Give memory that is kept from sweep to sweep."""
        size = math.prod(shape)
        kept = self._memory.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            kept = self._memory[name] = empty((size,), dtype, self.record.report.backend)
        return kept[:size].reshape(shape)

    def _ones(self, like: Array) -> Array:
        """Give ones of the shape and type of values, where these are."""
        size = math.prod(like.shape)
        kept = self._memory.get("ones")
        if kept is None or kept.size < size or kept.dtype != like.dtype:
            kept = self._memory["ones"] = to_device_of(like, np.ones(size, like.dtype))
        return kept[:size].reshape(like.shape)


def _dot(A: Array, B: Array) -> float:
    """Give ΣΣ A B, the same bits whatever the threads."""
    return float(np.einsum("ij,ij->", A, B))
