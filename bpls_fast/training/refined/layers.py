"""What the sweeps of both losses share: the layers that they move, forward passes, and Kronecker-factored steps.

The letters are those of the method: X enters the network, N are the values of a layer, T the targets of the outputs
before their activation, D a residual pulled back to the pre-activations of a layer.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, gram, linear, solve, tangent
from bpls_fast.kernels.backend import arrays_to_numpy, to_numpy
from bpls_fast.network.network import Network, scaled_inputs
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Batch, Weights, float_of
from bpls_fast.training.refined.averaging import DecayedSum
from bpls_fast.training.refined.buffers import Buffers
from bpls_fast.training.refined.inputs import Ridge
from bpls_fast.training.solvers import column_standardization, solve_growing

__all__ = ["LayerSweep", "inner_product", "scaled_solution"]

SLOPE_ROWS, FEW_SLOPES = 1250, 300
"""Products of slopes are averaged over at most SLOPE_ROWS rows, evenly spaced since rows may be sorted: trial rows, or
all rows where there are fewer than FEW_SLOPES trial rows."""

FLAT_POWER = 0.75
"""Curvatures are at least the smallest normal number to this power: their inverse, times a gradient, stays finite."""


class LayerSweep:
    """The layers of a network that every sweep moves once; a subclass adds the loss.

    Parameters
    ----------
    net : Network
        Sizes, activations, bias and the initial weights are taken from it; it is left alone.
    context : FitContext
        Its ridge is that of the first layer, relative to the mean of its Gram matrix's diagonal.
    standardize : bool
        Whether the ridge of the first layer is that of columns with mean 0 and mean square 1.

    Attributes
    ----------
    weights : list of arrays
        The weights of the layers that take steps, after the last sweep.
    failed : bool
        Whether the last sweep found no step that lowers the loss; the next one starts with new directions.
    """

    damping: ClassVar[float]
    """What is added to the curvature of every neuron, as a share of the mean over its layer."""

    upper_ridge: ClassVar[float]
    """The ridge of the layers above the first, as a share of the first layer's."""

    kept_gram: ClassVar[float | None] = None
    """The share that a sweep over a chunk keeps of the Gram matrices of hidden values, to which it adds those of its
    trial rows. None: a sweep computes them from all its rows."""

    def __init__(
        self, net: Network, context: FitContext, weights: Weights, *, standardize: bool
    ) -> None:
        self.net = net
        self.context = context
        self.standardize = standardize
        self.weights: Weights = [W.copy() for W in weights]
        self.failed = False
        self._inverse: Array = np.empty((0, 0))
        self._buffers = Buffers(context.backend)
        self._grams = [DecayedSum() for _ in weights]  # of what enters each layer

    def learn_inputs(
        self,
        G: NDArray[np.float64],
        total: float,
        X: Array,
        weighted: bool,
        ridge: Ridge | None = None,
    ) -> None:
        """Invert the Gram matrix of the inputs, once for many sweeps.

        The ridge of the first layer is so large that the inverse is as accurate as a factor, even rounded to the type
        of the arithmetic, and it is faster to apply.

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
        ridge : Ridge, optional
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
                inverse = solve(G + ridge.size * ridge.metric, total * eye)
            else:
                inverse = solve_growing(G, total * eye, self.context)
            narrow = inverse.astype(dtype)
            self._inverse = narrow if np.isfinite(narrow).all() else inverse

    # ---- forward

    def _first_layer(self, batch: Batch, W: NDArray[np.float64]) -> tuple[Array, Array]:
        """Return the pre-activations of the first layer for the trial rows, and its values for all rows."""
        V, count = self._cast(W, batch.X, batch.T.dtype), batch.trial
        first, bias = self.net.activations[0], self.net.bias
        Z = self._buffers.empty("Z", (count, V.shape[1]), V.dtype)
        linear(batch.X[:count], V, bias=bias, out=Z, check_finite=False)
        N = self._buffers.empty("N", (len(batch.X), V.shape[1]), V.dtype)
        N[:count] = first.forward(Z)
        if count < len(batch.X):
            linear(
                batch.X[count:],
                V,
                bias=bias,
                activation=first.name,
                out=N[count:],
                check_finite=False,
            )
        return Z, N

    def _above_first(self, N: Array, weights: Weights) -> list[Array]:
        """Return the values of all these layers from those of the first."""
        values = [N]
        for W, activation in zip(weights[1:], self.net.activations[1:], strict=False):
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

    def _from_inputs(self, direction: NDArray[np.float64], batch: Batch, name: str) -> Array:
        """Return what a direction of the first layer adds to its pre-activations."""
        W = self._cast(direction, batch.X, batch.T.dtype)
        V = self._buffers.empty(name, (len(batch.X), W.shape[1]), W.dtype)
        return linear(batch.X, W, bias=self.net.bias, out=V, check_finite=False)

    def _effect(
        self,
        layer: int,
        direction: NDArray[np.float64],
        V: Array,
        values: list[Array],
        weights: Weights,
    ) -> Array:
        """Return what a direction of a layer adds to the outputs before their activation, to first order.

        Parameters
        ----------
        layer : int
        direction : array
        V : array
            What the direction adds to the pre-activations of the first layer, if that is the one.
        values : list of arrays
            The values of all hidden layers, at least.
        weights : list of arrays
            The weights of all layers, those of the output layer last.
        """
        net, last, dtype = self.net, len(weights) - 1, V.dtype
        if layer == last:
            if layer == 0:
                return V
            N = values[layer - 1]
            return linear(N, direction.astype(dtype), bias=net.bias, check_finite=False)
        activation = net.activations[layer]
        if layer == 0:
            change = activation.jacobian(V, values[0])
        else:
            change = tangent(
                values[layer - 1],
                direction.astype(dtype),
                values[layer],
                bias=net.bias,
                activation=activation.name,
                check_finite=False,
            )
        for higher in range(layer + 1, last):
            W = self._without_bias(weights[higher]).astype(dtype)
            name = net.activations[higher].name
            change = tangent(change, W, values[higher], activation=name, check_finite=False)
        top = self._without_bias(weights[last]).astype(dtype)
        return linear(change, top, check_finite=False)

    # ---- steps

    def _weighted(self, R: Array, batch: Batch) -> Array:
        """Return residuals times the weights of their rows."""
        if batch.sample_weight is None:
            return R
        of_rows = batch.sample_weight[:, np.newaxis]
        return np.multiply(R, of_rows, out=self._buffers.empty("weighted R", R.shape, R.dtype))

    def _hidden_steps(
        self, batch: Batch, values: list[Array], D: Array, above: Array, curvature: Array
    ) -> tuple[Weights, Weights]:
        """Return the gradient of every hidden layer, per unit of weight, and its least-squares step.

        Parameters
        ----------
        batch : Batch
        values : list of arrays
            The values of the hidden layers, at least.
        D : array
            The residuals of the outputs, times the weights of their rows.
        above : array
            The weights of the output layer.
        curvature : array
            The curvature of the loss for any two outputs.
        """
        gradients: Weights = []
        steps: Weights = []
        for layer in reversed(range(len(self.net.layer_sizes) - 2)):
            N, activation = values[layer], self.net.activations[layer]
            with self.context.phase("target"):
                W = self._without_bias(above)
                curvature, coupled = self._curvature(curvature, W, layer, N, batch)
                pulled = self._buffers.empty(f"D {layer}", N.shape, N.dtype)
                back = W.T.astype(N.dtype)
                D = tangent(D, back, N, activation=activation.name, out=pulled, check_finite=False)
            gradient, step = self._step(layer, batch, values, D, curvature, coupled)
            gradients.insert(0, gradient)
            steps.insert(0, step)
            above = self.weights[layer]
        return gradients, steps

    def _step(
        self,
        layer: int,
        batch: Batch,
        values: list[Array],
        D: Array,
        curvature: Array,
        coupled: bool,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient of a layer, per unit of weight, and its least-squares step, from its residuals D.

        A layer that does not change the outputs, as below weights of 0, takes no step. `curvature` is changed in place.
        """
        total = batch.total_weight()
        if layer:
            with self.context.phase("gram"):
                G, gradient = self._gram(layer, values[layer - 1], D, batch)
                self._add_penalty(gradient, layer, total)
            with self.context.phase("solve"):
                step = solve_growing(G, gradient, self.context, self.upper_ridge)
        else:
            with self.context.phase("gram"):
                scale = self.net.scale_of(batch.X)
                gradient = to_numpy(cross(batch.X, D, bias=self.net.bias, scale=scale))
                self._add_penalty(gradient, layer, total)
            with self.context.phase("solve"):
                right = (gradient / total).astype(self._inverse.dtype)
                step = linear(self._inverse, right).astype(np.float64, copy=False)
        gradient /= total
        if not curvature.any():
            return gradient, np.zeros_like(step)
        # Keeps steps finite where hardly anything has a slope.
        flat = float(np.finfo(D.dtype).tiny) ** FLAT_POWER
        with self.context.phase("solve"):
            diagonal = curvature.reshape(-1)[:: len(curvature) + 1]
            diagonal += flat
            if coupled:
                step = solve(curvature, step.T, eps=self.damping).T
            else:
                step /= diagonal + self.damping * diagonal.mean()
        return gradient, step

    def _add_penalty(self, gradient: NDArray[np.float64], layer: int, total: float) -> None:
        """Add what a penalty of the weights contributes to the gradient of rows that weigh `total`, in place."""

    def _is_coupled(self, layer: int) -> bool:
        """Return whether the curvature of a hidden layer is a matrix, or only its diagonal."""
        return self.net.activations[layer].name != "softmax"

    def _curvature(
        self, above: Array, W: Array, layer: int, N: Array, batch: Batch
    ) -> tuple[Array, bool]:
        """Return the curvature of a layer below weights W, from that of the layer above, and whether it is coupled."""
        activation = self.net.activations[layer]
        if not self._is_coupled(layer):
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

    def _gram(self, layer: int, N: Array, D: Array, batch: Batch) -> tuple[Array, Array]:
        """Return NᵀWN of what enters a layer, or an estimate of it, and NᵀD; D already contains the weights."""
        bias, weights = self.net.bias, batch.sample_weight
        if self.kept_gram is None or batch.trial == len(N):
            if weights is None:
                G, C = arrays_to_numpy(gram(N, D, bias=bias))
                return G, C
            G = to_numpy(gram(N, bias=bias, sample_weight=weights))
            return G, to_numpy(cross(N, D, bias=bias))
        trial, kept = batch.trial_rows(), self._grams[layer]
        G = to_numpy(gram(N[: batch.trial], bias=bias, sample_weight=trial.sample_weight))
        kept.add(self.kept_gram, G, trial.total_weight())
        return kept.total * (batch.total_weight() / kept.weight), to_numpy(cross(N, D, bias=bias))

    def _cast(self, W: NDArray[np.float64], X: Array, dtype: Any) -> Array:
        """Return the weights of the first layer in the type of the arithmetic, with the scale of the inputs in them."""
        return scaled_inputs(W, self.net.scale_of(X), self.net.bias).astype(dtype)

    def _without_bias(self, W: NDArray[np.float64]) -> NDArray[np.float64]:
        return W[: len(W) - self.net.bias]


def inner_product(A: Array, B: Array) -> float:
    """Return ΣΣ A B, with the same bits at any number of threads."""
    return float(np.einsum("ij,ij->", A, B))


def scaled_solution(
    system: NDArray[np.float64], right: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Solve a small system, scaled to diagonal 1 and with a ridge; 0 if the diagonal is.

    The effects of layers, whose squares are the diagonal, differ by orders of magnitude.
    """
    sizes = np.sqrt(np.maximum(system.diagonal(), 0.0))
    if not sizes.any():
        return np.zeros(len(system))
    sizes = np.where(sizes > 0, sizes, 1.0)
    scaled = system / np.outer(sizes, sizes) + ridge * np.eye(len(system))
    solution: NDArray[np.float64] = np.linalg.solve(scaled, right / sizes) / sizes
    return solution
