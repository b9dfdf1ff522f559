"""Sweeps of the softmax cross-entropy: a step of every layer, the output layer included.

p are the outputs, softmax of the last pre-activations. The lengths of all steps, and of all moves of the last sweep,
come from one small system: the Gauss-Newton model of the loss on the trial rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import column_sums, cross, gram, linear
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Batch, Weights
from bpls_fast.training.refined.inputs import Ridge
from bpls_fast.training.refined.layers import LayerSweep, inner_product, scaled_solution
from bpls_fast.training.solvers import column_standardization

__all__ = ["CrossEntropySweep"]

DAMPING, UPPER_RIDGE, KEPT_GRAM = 0.1, 1.0, 0.9
"""See `LayerSweep`."""

LENGTH_RIDGE = 0.01
"""The ridge of the system of lengths, for directions with a curvature of 1."""

SHORTER = 0.7
"""Moves over chunks, as a share of the model's: what is best for a chunk is too long for all rows."""

HALVINGS = 6
"""How often a move that raises the loss is halved before it is given up."""


class Forward(NamedTuple):
    """A forward pass of some rows.

    `Z` are the pre-activations of the first layer for the trial rows; `values` are those of every layer, the outputs
    last; `logs` are the logarithms of the probabilities of the labels, times the weights of the rows.
    """

    Z: Array
    values: list[Array]
    logs: NDArray[np.float64]
    penalty: float

    def loss(self, total: float) -> float:
        """Return the mean loss of rows that weigh `total`, penalty included."""
        return self.penalty - float(self.logs.sum()) / total


class Move(NamedTuple):
    """The last move of every layer, and what that of the first layer added to its pre-activations for trial rows."""

    weights: Weights
    V: Array


class CrossEntropySweep(LayerSweep):
    """All layers of a network with softmax outputs.

    Parameters
    ----------
    net, context, standardize
        As in `LayerSweep`. The penalty of the first layer's weights is that of standardized columns, too.
    decay : float
        The loss includes decay / 2 times the sum of the squared weights, biases left out.

    Attributes
    ----------
    weights : list of arrays
        The weights of all layers after the last sweep.
    """

    damping, upper_ridge, kept_gram = DAMPING, UPPER_RIDGE, KEPT_GRAM

    def __init__(
        self, net: Network, context: FitContext, *, decay: float, standardize: bool
    ) -> None:
        super().__init__(net, context, net.weights, standardize=standardize)
        self._decays = [np.full((len(W), 1), decay) for W in net.weights]
        for of_rows in self._decays[: len(self._decays) if net.bias else 0]:
            of_rows[-1] = 0.0
        self._decay = decay
        self._metric: Array | None = None  # of the first layer, where it is on components
        self._last_forward: Forward | None = None
        self._penalty_of_weights: float | None = None  # of the weights
        self._last_move: Move | None = None

    def learn_inputs(
        self,
        G: NDArray[np.float64],
        total: float,
        X: Array,
        weighted: bool,
        ridge: Ridge | None = None,
    ) -> None:
        """Invert the Gram matrix of the inputs, as `LayerSweep` does, and take the units of the penalty from it."""
        super().learn_inputs(G, total, X, weighted, ridge)
        self._penalty_of_weights = None
        if self.standardize and G.diagonal().any():
            T = column_standardization(G, self.net.bias, X.dtype, weighted, True)
            size = np.divide(1.0, T.scale, out=np.zeros(len(G)), where=T.scale > 0)
            inputs = len(G) - self.net.bias
            self._decays[0][:inputs, 0] = self._decay * np.square(size[:inputs])
        if ridge is not None:
            self._metric = ridge.metric.copy()
            self._metric[len(G) - self.net.bias :] = 0.0

    def sweep(self, batch: Batch, *, same_rows: bool = False) -> float:
        """Move all layers once; return the loss before that, per unit of weight.

        With `same_rows` the forward pass of the last sweep is used again: it saw the same rows, every one a trial row.
        """
        reused = self._last_forward if same_rows else None
        now = self.forward(batch) if reused is None else reused
        self._last_forward = now
        gradients, steps = self._steps(batch, now)
        before, trial = now, batch
        if batch.trial < len(batch.X):
            trial, values = batch.trial_rows(), [N[: batch.trial] for N in now.values]
            before = Forward(now.Z, values, now.logs[: batch.trial], now.penalty)
        with self.context.phase("step"):
            V = [self._from_inputs(steps[0], trial, "V")]
            directions, last = [*enumerate(steps)], self._last_move
            if last is not None:
                directions += enumerate(last.weights)
                is_known = reused is not None
                V.append(last.V if is_known else self._from_inputs(last.weights[0], trial, "U"))
            lengths = self._lengths(trial, before, gradients, directions, V)
            if trial is not batch:
                lengths *= SHORTER
        self._move(trial, before, directions, lengths, V)
        return now.loss(batch.total_weight())

    def network(self, mean: Weights, batch: Batch) -> Network:
        """Return the network of these weights."""
        return self.net.with_weights(mean)

    def forward(self, batch: Batch) -> Forward:
        """Run a batch through the network."""
        with self.context.phase("forward"):
            Z, N = self._first_layer(batch, self.weights[0])
            values = self._above_first(N, self.weights)
            penalty = (
                self._penalty(self.weights)
                if self._penalty_of_weights is None
                else self._penalty_of_weights
            )
            return Forward(Z, values, self._logs(values[-1], batch), penalty)

    def _logs(self, p: Array, batch: Batch) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities of the labels from outputs p, times the weights of the rows."""
        assert batch.labels is not None  # the fit refuses targets that are not labels
        right = to_numpy(p)[self._buffers.numbers(len(p)), batch.labels]
        # Of a probability that vanishes the smallest number is left.
        np.maximum(right, np.finfo(right.dtype).smallest_subnormal, out=right)
        logs: NDArray[np.float64] = np.log(right, dtype=np.float64)
        if batch.sample_weight is not None:
            logs *= to_numpy(batch.sample_weight)
        return logs

    def _penalty(self, weights: Weights) -> float:
        """Return the penalty of weights."""
        products = (
            inner_product(W, self._times_decay(layer, W)) for layer, W in enumerate(weights)
        )
        return sum(products) / 2

    def _times_decay(self, layer: int, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient of the penalty at weights W of a layer."""
        if layer == 0 and self._metric is not None:
            return self._decay * linear(self._metric, W)
        return self._decays[layer] * W

    def _add_penalty(self, gradient: NDArray[np.float64], layer: int, total: float) -> None:
        gradient -= total * self._times_decay(layer, self.weights[layer])

    def _steps(self, batch: Batch, now: Forward) -> tuple[Weights, Weights]:
        """Return the gradient of every layer, per unit of weight, and its least-squares step."""
        p, weight = now.values[-1], batch.sample_weight
        with self.context.phase("target"):
            D = np.subtract(batch.T, p, out=self._buffers.empty("R", p.shape, p.dtype))
            D = self._weighted(D, batch)
            C = np.diag(column_sums(p, None, weight)) - to_numpy(gram(p, sample_weight=weight))
            C /= batch.total_weight()
        top = len(self.weights) - 1
        gradient, step = self._step(top, batch, now.values, D, C, coupled=True)
        gradients, steps = self._hidden_steps(batch, now.values, D, self.weights[-1], C)
        return [*gradients, gradient], [*steps, step]

    def _lengths(
        self,
        batch: Batch,
        now: Forward,
        gradients: Weights,
        directions: list[tuple[int, NDArray[np.float64]]],
        V: list[Array],
    ) -> NDArray[np.float64]:
        """Return the length of every direction that minimizes the Gauss-Newton model of the loss.

        `V` is what the directions of the first layer add to its pre-activations. The slopes are those of all rows of
        the sweep, the curvature is that of the trial rows.
        """
        p, count = now.values[-1], len(directions)
        softmax = self.net.activations[-1]
        shape = (p.shape[0] * p.shape[1], count)
        effects, bent = (self._buffers.empty(name, shape, p.dtype) for name in ("effects", "bent"))
        of_first = iter(V)
        for place, (layer, direction) in enumerate(directions):
            of_inputs = next(of_first) if layer == 0 else V[0]
            effect = self._effect(layer, direction, of_inputs, now.values, self.weights)
            effects[:, place] = effect.reshape(shape[0])
            curved = self._weighted(softmax.jacobian(effect, p), batch)
            bent[:, place] = curved.reshape(shape[0])
        Q = to_numpy(cross(effects, bent)) / batch.total_weight()
        Q = (Q + Q.T) / 2
        for row, (layer, direction) in enumerate(directions):
            decayed = self._times_decay(layer, direction)
            for column, (other_layer, other) in enumerate(directions[: row + 1]):
                if layer == other_layer:
                    Q[row, column] += inner_product(decayed, other)
                    Q[column, row] = Q[row, column]
        slopes = np.array([inner_product(gradients[layer], d) for layer, d in directions])
        return scaled_solution(Q, slopes, LENGTH_RIDGE)

    def _move(
        self,
        batch: Batch,
        before: Forward,
        directions: list[tuple[int, NDArray[np.float64]]],
        lengths: NDArray[np.float64],
        V: list[Array],
    ) -> None:
        """Move along the directions; halve the move while it raises the loss of the trial rows."""
        self.failed, self._last_move = True, None
        if not np.isfinite(lengths).all():
            return
        total = batch.total_weight()
        limit = before.loss(total)
        with self.context.phase("step"):
            move = [np.zeros_like(W) for W in self.weights]
            for length, (layer, direction) in zip(lengths, directions, strict=True):
                move[layer] += length * direction
            of_first = [a for a, (layer, _) in zip(lengths, directions, strict=True) if layer == 0]
            added = V[0] * V[0].dtype.type(of_first[0])
            for length, of_inputs in zip(of_first[1:], V[1:], strict=True):
                added += of_inputs * of_inputs.dtype.type(length)
        for _ in range(HALVINGS):
            with self.context.phase("step"):
                weights = [W + change for W, change in zip(self.weights, move, strict=True)]
                Z = before.Z + added
                values = self._above_first(self.net.activations[0].forward(Z), weights)
                logs = self._logs(values[-1], batch)
                after = Forward(Z, values, logs, self._penalty(weights))
            if after.loss(total) <= limit:
                self.weights, self.failed = weights, False
                self._last_forward, self._last_move = after, Move(move, added)
                self._penalty_of_weights = after.penalty
                return
            move = [change / 2 for change in move]
            added = added * added.dtype.type(0.5)
