"""One refined sweep: a step of every hidden layer that makes the best output layer for them better.

The letters are those of the method: X enters the network, N are the values of a hidden layer, T the targets of the
outputs before their activation, R what is left of them, D a residual pulled back to the pre-activations of a layer. The
output layer takes no steps: it is solved for whatever the hidden layers give (variable projection; see `losses.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, gram, linear, residual, solve, tangent
from bpls_fast.kernels.backend import arrays_to_numpy, to_numpy
from bpls_fast.network.network import Network, scaled_inputs
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Batch, Weights, float_of
from bpls_fast.training.refined.buffers import Buffers
from bpls_fast.training.refined.losses import Output, SquaredLoss
from bpls_fast.training.solvers import column_standardization, solve_growing

__all__ = ["Forward", "RefinedSweep"]

DAMPING = 0.5
"""What is added to the curvature of every neuron, as a share of the mean over its layer."""

SLOPE_ROWS, FEW_SLOPES = 1250, 300
"""Products of slopes are averaged over at most SLOPE_ROWS rows, evenly spaced since rows may be sorted: trial rows, or
all rows where there are fewer than FEW_SLOPES trial rows."""

UPPER_RIDGE = 0.1
"""The ridge of the layers above the first, as a share of the first layer's: the features that enter them are learnt."""

CONJUGACY, CHUNK_CONJUGACY = 0.9, 0.8
"""The largest share of the last directions that is kept, in sweeps over all rows and over chunks."""

LENGTH_RIDGE = 1e-9
"""The ridge of the system of step lengths, for effects of size 1."""

FLAT_POWER = 0.75
"""Curvatures are at least the smallest normal number to this power: their inverse, times a gradient, stays finite."""

HALVINGS = 6
"""How often a step that raises the loss is halved before its directions are given up."""


class Forward(NamedTuple):
    """A forward pass of some rows.

    `Z` are the pre-activations of the first layer for the trial rows; `N` are the values of every hidden layer.
    """

    Z: Array
    N: list[Array]
    output: Output


class RefinedSweep:
    """The hidden layers of a network, which every sweep moves once.

    Parameters
    ----------
    net : Network
        Sizes, activations, bias and the initial hidden weights are taken from it; it is left alone.
    context : FitContext
        Its ridge is that of the first layer, relative to the mean of its Gram matrix's diagonal.
    output_eps : float
        The ridge of the output layer, relative in the same way.
    standardize : bool
        Whether the ridge of the first layer is that of columns with mean 0 and mean square 1.

    Attributes
    ----------
    hidden : list of arrays
        The weights of the hidden layers after the last sweep.
    loss : SquaredLoss
        Solves the output layer.
    last_forward : Forward or None
        The forward pass of the last sweep's trial rows after its step.
    failed : bool
        Whether the last sweep found no step that lowers the loss; the next one starts with new directions.
    """

    def __init__(
        self, net: Network, context: FitContext, *, output_eps: float, standardize: bool
    ) -> None:
        self.net = net
        self.context = context
        self.loss = SquaredLoss(net, context, output_eps, standardize)
        self.standardize = standardize
        self.hidden: Weights = [W.copy() for W in net.weights[:-1]]
        self.failed = False
        self._inverse: Array = np.empty((0, 0))
        self._directions: Weights = []
        self._gradients: Weights = []
        self._slope = 0.0
        self.last_forward: Forward | None = None
        self._buffers = Buffers(context.backend)

    def learn_inputs(
        self,
        G: NDArray[np.float64],
        total: float,
        X: Array,
        weighted: bool,
        ridge: NDArray[np.float64] | None = None,
    ) -> None:
        """Invert the Gram matrix of the inputs, once for many sweeps.

        The ridge of a hidden layer is so large that the inverse is as accurate as a factor, even rounded to the type of
        the arithmetic, and it is faster to apply.

        Parameters
        ----------
        G : array
            The Gram matrix.
        total : float
            The weight of the rows that it was computed from.
        X : array
            Some of the rows.
        weighted : bool
            Whether the rows had weights.
        ridge : array, optional
            The ridge, where it is not a multiple of the identity.
        """
        # The first step refuses what is not finite.
        with self.context.phase("solve"), np.errstate(over="ignore", invalid="ignore"):
            dtype, eye = float_of(X), np.eye(len(G))
            if not G.diagonal().any():
                self._inverse = eye.astype(dtype)
                return
            if self.standardize:
                T = column_standardization(G, self.net.bias, X.dtype, weighted, True)
                inverse = solve_growing(T.apply_both_sides(G), total * eye, self.context)
                inverse = T.undo(T.undo(inverse).T)
            elif ridge is not None:
                inverse = solve(G + ridge, total * eye)
            else:
                inverse = solve_growing(G, total * eye, self.context)
            narrow = inverse.astype(dtype)
            self._inverse = narrow if np.isfinite(narrow).all() else inverse

    def sweep(self, batch: Batch, *, same_rows: bool = False) -> float:
        """Move the hidden layers once; return the loss before that, per unit of weight.

        With `same_rows` the forward pass of the last sweep, or of `choose_ridge`, is used again: it saw the same rows,
        every one a trial row, or was not followed by a step.
        """
        reused = self.last_forward if same_rows else None
        now = self.forward(batch) if reused is None else reused
        self.last_forward = now
        R = self._residual(batch, now, "R")
        gradients, steps = self._steps(batch, now, R)
        is_chunk = batch.trial < len(batch.X)
        directions = self._conjugate(gradients, steps, CHUNK_CONJUGACY if is_chunk else CONJUGACY)
        if is_chunk:
            trial, N = batch.trial_rows(), [N[: batch.trial] for N in now.N]
            before = Forward(now.Z, N, self.loss.solve(N[-1], trial))
            R = self._residual(trial, before, "trial R")
        else:
            trial, before = batch, now
        with self.context.phase("step"):
            W = self._cast(directions[0], trial.X, R.dtype)
            V = self._buffers.empty("V", before.Z.shape, R.dtype)
            linear(trial.X, W, bias=self.net.bias, out=V, check_finite=False)
            lengths = self._lengths(trial, before, R, directions, V)
        self._move(trial, before, directions, lengths, V)
        return now.output.loss / batch.total_weight()

    def choose_ridge(self, batch: Batch, repetitions: float, share: float = 1.0) -> None:
        """Choose the ridge of the output layer by cross-validation on the present features; see `SquaredLoss`."""
        now = self.forward(batch)
        output = self.loss.choose_ridge(now.output, batch, repetitions, share)
        if output is not None:
            self.last_forward = now._replace(output=output)

    def forward(self, batch: Batch, hidden: Weights | None = None) -> Forward:
        """Run a batch through the hidden layers, with other weights where given, and solve the output layer."""
        hidden = self.hidden if hidden is None else hidden
        with self.context.phase("forward"):
            W = self._cast(hidden[0], batch.X, batch.T.dtype)
            first, bias, count = self.net.activations[0], self.net.bias, batch.trial
            Z = self._buffers.empty("Z", (count, W.shape[1]), W.dtype)
            linear(batch.X[:count], W, bias=bias, out=Z, check_finite=False)
            N = self._buffers.empty("N", (len(batch.X), W.shape[1]), W.dtype)
            N[:count] = first.forward(Z)
            if count < len(batch.X):
                linear(
                    batch.X[count:],
                    W,
                    bias=bias,
                    activation=first.name,
                    out=N[count:],
                    check_finite=False,
                )
            values = self._above_first(N, hidden)
        return Forward(Z, values, self.loss.solve(values[-1], batch))

    def _residual(self, batch: Batch, now: Forward, name: str) -> Array:
        with self.context.phase("target"):
            R = self._buffers.empty(name, batch.T.shape, batch.T.dtype)
            W = now.output.W.astype(R.dtype)
            N = now.N[-1]
            return residual(N, W, batch.T, bias=self.net.bias, out=R, check_finite=False)

    def _steps(self, batch: Batch, now: Forward, R: Array) -> tuple[Weights, Weights]:
        """Return the gradient of every hidden layer, per unit of weight, and its least-squares step."""
        if batch.sample_weight is not None:
            of_rows = batch.sample_weight[:, np.newaxis]
            R = np.multiply(R, of_rows, out=self._buffers.empty("weighted R", R.shape, R.dtype))
        total = batch.total_weight()
        flat = (
            float(np.finfo(R.dtype).tiny) ** FLAT_POWER
        )  # keeps steps finite where nothing has a slope
        gradients: Weights = []
        steps: Weights = []
        D, above, curvature = R, now.output.W, np.eye(R.shape[1])
        for layer in reversed(range(len(self.hidden))):
            N, activation = now.N[layer], self.net.activations[layer]
            with self.context.phase("target"):
                W = self._without_bias(above)
                curvature, coupled = self._curvature(curvature, W, layer, now, batch)
                pulled = self._buffers.empty(f"D {layer}", N.shape, N.dtype)
                back = W.T.astype(N.dtype)
                D = tangent(D, back, N, activation=activation.name, out=pulled, check_finite=False)
            if layer:
                with self.context.phase("gram"):
                    G, gradient = self._gram(now.N[layer - 1], D, batch.sample_weight)
                with self.context.phase("solve"):
                    step = solve_growing(G, gradient, self.context, UPPER_RIDGE)
            else:
                with self.context.phase("gram"):
                    scale = self.net.scale_of(batch.X)
                    gradient = to_numpy(cross(batch.X, D, bias=self.net.bias, scale=scale))
                with self.context.phase("solve"):
                    right = (gradient / total).astype(self._inverse.dtype)
                    step = linear(self._inverse, right).astype(np.float64, copy=False)
            gradient /= total
            with self.context.phase("solve"):
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
        self, above: Array, W: Array, layer: int, now: Forward, batch: Batch
    ) -> tuple[Array, bool]:
        """Return the curvature of a layer below weights W, from that of the layer above, and whether it is coupled.

        For softmax, or with one hidden layer, only the diagonal is used: these networks do better so.
        """
        N, activation = now.N[layer], self.net.activations[layer]
        if activation.name == "softmax" or len(self.hidden) == 1:
            squares = activation.squared_slopes(N, sample_weight=batch.sample_weight)
            squares = squares / batch.total_weight()
            return np.diag(np.einsum("ij,ij->i", linear(W, above), W) * squares), False
        count = len(N) if batch.trial < FEW_SLOPES else batch.trial
        some = slice(0, count, -(-count // SLOPE_ROWS))
        N, weights = N[some], None if batch.sample_weight is None else batch.sample_weight[some]
        slopes = activation.jacobian(self._buffers.ones(N), N)
        total = len(N) if weights is None else float(weights.sum(dtype=np.float64))
        products = to_numpy(gram(slopes, sample_weight=weights)) / total
        return linear(linear(W, above), W.T) * products, True

    def _gram(self, N: Array, D: Array, weights: Array | None) -> tuple[Array, Array]:
        """Return NᵀWN and NᵀD; D already contains the weights of the rows."""
        if weights is None:
            G, C = arrays_to_numpy(gram(N, D, bias=self.net.bias))
            return G, C
        G = to_numpy(gram(N, bias=self.net.bias, sample_weight=weights))
        return G, to_numpy(cross(N, D, bias=self.net.bias))

    def _conjugate(self, gradients: Weights, steps: Weights, most: float) -> Weights:
        """Return the directions: steps plus a share of the last directions (Polak-Ribière+), at most `most`."""
        with self.context.phase("step"):
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
        self, batch: Batch, now: Forward, R: Array, directions: Weights, V: Array
    ) -> NDArray[np.float64]:
        """Return the step length of each layer: the least-squares solution on the linearized network.

        `V` is what the first direction adds to the pre-activations. What the output layer would absorb anyway is
        subtracted from the effects of the layers.
        """
        net, layers, outputs = self.net, len(directions), R.shape[1]
        effects = self._buffers.empty("effects", (len(R), (layers + 1) * outputs), R.dtype)
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
        E = to_numpy(gram(effects, sample_weight=batch.sample_weight))
        of_layers = effects[:, : layers * outputs]
        H = to_numpy(cross(now.N[-1], of_layers, bias=net.bias, sample_weight=batch.sample_weight))
        absorbed = cross(H, solve(now.output.G, H, eps=0))
        E[: layers * outputs, : layers * outputs] -= absorbed
        blocks = E.reshape(layers + 1, outputs, layers + 1, outputs)
        M = np.einsum("ikjk->ij", blocks)
        system = M[:layers, :layers]
        sizes = np.sqrt(np.maximum(system.diagonal(), 0.0))
        if not sizes.any():  # no direction changes the outputs
            return np.zeros(layers)
        # Effects differ by orders of magnitude between layers: scale them to 1 for the ridge.
        sizes = np.where(sizes > 0, sizes, 1.0)
        scaled = system / np.outer(sizes, sizes) + LENGTH_RIDGE * np.eye(layers)
        lengths: NDArray[np.float64] = np.linalg.solve(scaled, M[:layers, layers] / sizes) / sizes
        return lengths

    def _move(
        self,
        batch: Batch,
        before: Forward,
        directions: Weights,
        lengths: NDArray[np.float64],
        V: Array,
    ) -> None:
        """Step along the directions; halve the step while it raises the loss of the trial rows."""
        self.failed = True
        if not np.isfinite(lengths).all():
            return
        for halvings in range(HALVINGS):
            with self.context.phase("step"):
                pairs = zip(self.hidden, lengths, directions, strict=True)
                hidden = [W + length * direction for W, length, direction in pairs]
                Z = V * V.dtype.type(lengths[0])
                Z += before.Z
                values = self._above_first(self.net.activations[0].forward(Z), hidden)
            after = Forward(Z, values, self.loss.solve(values[-1], batch))
            if after.output.loss <= before.output.loss:
                self.hidden, self.failed, self.last_forward = hidden, False, after
                if halvings:
                    self._slope = 0.0
                return
            lengths = lengths / 2

    def _above_first(self, N: Array, hidden: Weights) -> list[Array]:
        """Return the values of all hidden layers from those of the first."""
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
        """Return the weights of the first layer in the type of the arithmetic, with the scale of the inputs in them."""
        return scaled_inputs(W, self.net.scale_of(X), self.net.bias).astype(dtype)

    def _without_bias(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        return W[: len(W) - self.net.bias]


def _dot(A: Array, B: Array) -> float:
    """Return ΣΣ A B, with the same bits at any number of threads."""
    return float(np.einsum("ij,ij->", A, B))
