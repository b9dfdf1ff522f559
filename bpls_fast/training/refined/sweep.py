"""Sweeps of the squared loss: a step of every hidden layer that makes the best output layer for them better.

R is what is left of the targets. The output layer takes no steps: it is solved for whatever the hidden layers give
(variable projection; see `losses.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, gram, residual, solve
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Batch, Weights
from bpls_fast.training.refined.calibration import calibrated
from bpls_fast.training.refined.layers import LayerSweep, inner_product, scaled_solution
from bpls_fast.training.refined.losses import Output, SquaredLoss

__all__ = ["Forward", "RefinedSweep"]

DAMPING, UPPER_RIDGE = 0.5, 0.1
"""See `LayerSweep`. The ridge of the upper layers is smaller because the features that enter them are learnt."""

CONJUGACY, CHUNK_CONJUGACY = 0.9, 0.8
"""The largest share of the last directions that is kept, in sweeps over all rows and over chunks."""

LENGTH_RIDGE = 1e-9
"""The ridge of the system of step lengths, for effects of size 1."""

HALVINGS = 6
"""How often a step that raises the loss is halved before its directions are given up."""


class Forward(NamedTuple):
    """A forward pass of some rows.

    `Z` are the pre-activations of the first layer for the trial rows; `N` are the values of every hidden layer.
    """

    Z: Array
    N: list[Array]
    output: Output


class RefinedSweep(LayerSweep):
    """The hidden layers of a network under an output layer that is solved.

    Parameters
    ----------
    net, context, standardize
        As in `LayerSweep`.
    output_eps : float
        The ridge of the output layer, relative to the mean of its Gram matrix's diagonal.

    Attributes
    ----------
    weights : list of arrays
        The weights of the hidden layers after the last sweep.
    loss : SquaredLoss
        Solves the output layer.
    last_forward : Forward or None
        The forward pass of the last sweep's trial rows after its step.
    """

    damping, upper_ridge = DAMPING, UPPER_RIDGE

    def __init__(
        self, net: Network, context: FitContext, *, output_eps: float, standardize: bool
    ) -> None:
        super().__init__(net, context, net.weights[:-1], standardize=standardize)
        self.loss = SquaredLoss(net, context, output_eps, standardize)
        self._directions: Weights = []
        self._gradients: Weights = []
        self._slope = 0.0
        self.last_forward: Forward | None = None

    def sweep(self, batch: Batch, *, same_rows: bool = False) -> float:
        """Move the hidden layers once; return the loss before that, per unit of weight.

        With `same_rows` the forward pass of the last sweep, or of `choose_ridge`, is used again: it saw the same rows,
        every one a trial row, or was not followed by a step.
        """
        reused = self.last_forward if same_rows else None
        now = self.forward(batch) if reused is None else reused
        self.last_forward = now
        R = self._residual(batch, now, "R")
        output, curvature = now.output.W, np.eye(R.shape[1])
        D = self._weighted(R, batch)
        gradients, steps = self._hidden_steps(batch, now.N, D, output, curvature)
        is_chunk = batch.trial < len(batch.X)
        directions = self._conjugate(gradients, steps, CHUNK_CONJUGACY if is_chunk else CONJUGACY)
        if is_chunk:
            trial, N = batch.trial_rows(), [N[: batch.trial] for N in now.N]
            before = Forward(now.Z, N, self.loss.solve(N[-1], trial))
            R = self._residual(trial, before, "trial R")
        else:
            trial, before = batch, now
        with self.context.phase("step"):
            V = self._from_inputs(directions[0], trial, "V")
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
        hidden = self.weights if hidden is None else hidden
        with self.context.phase("forward"):
            Z, N = self._first_layer(batch, hidden[0])
            values = self._above_first(N, hidden)
        return Forward(Z, values, self.loss.solve(values[-1], batch))

    def network(self, mean: Weights, batch: Batch) -> Network:
        """Return the network of hidden weights, with the output layer solved for them on a batch, and calibrated."""
        now = self.last_forward
        if now is None or mean is not self.weights:
            now = self.forward(batch, mean)
        return self.finished(mean, now.output, batch)

    def finished(self, hidden: Weights, output: Output, batch: Batch) -> Network:
        """Return the network of hidden weights and an output layer, calibrated on a batch."""
        network = self.net.with_weights([*hidden, output.W])
        return calibrated(network, batch.labels is not None, batch, self.context)

    def _residual(self, batch: Batch, now: Forward, name: str) -> Array:
        with self.context.phase("target"):
            R = self._buffers.empty(name, batch.T.shape, batch.T.dtype)
            W = now.output.W.astype(R.dtype)
            N = now.N[-1]
            return residual(N, W, batch.T, bias=self.net.bias, out=R, check_finite=False)

    def _is_coupled(self, layer: int) -> bool:
        """Return False for softmax, or with one hidden layer: these networks do better with the diagonal."""
        return super()._is_coupled(layer) and len(self.weights) > 1

    def _conjugate(self, gradients: Weights, steps: Weights, most: float) -> Weights:
        """Return the directions: steps plus a share of the last directions (Polak-Ribière+), at most `most`."""
        with self.context.phase("step"):
            slope = sum(map(inner_product, gradients, steps))
            directions = steps
            if self._slope > 0 and not self.failed:
                beta = (slope - sum(map(inner_product, self._gradients, steps))) / self._slope
                beta = min(max(beta, 0.0), most)
                conjugate = [s + beta * d for s, d in zip(steps, self._directions, strict=True)]
                if sum(map(inner_product, gradients, conjugate)) > 0:
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
        layers, outputs = len(directions), R.shape[1]
        effects = self._buffers.empty("effects", (len(R), (layers + 1) * outputs), R.dtype)
        weights = [*self.weights, now.output.W]
        for layer, direction in enumerate(directions):
            place = slice(layer * outputs, (layer + 1) * outputs)
            effects[:, place] = self._effect(layer, direction, V, now.N, weights)
        effects[:, layers * outputs :] = R
        E = to_numpy(gram(effects, sample_weight=batch.sample_weight))
        of_layers = effects[:, : layers * outputs]
        H = to_numpy(
            cross(now.N[-1], of_layers, bias=self.net.bias, sample_weight=batch.sample_weight)
        )
        absorbed = cross(H, solve(now.output.G, H, eps=0))
        E[: layers * outputs, : layers * outputs] -= absorbed
        blocks = E.reshape(layers + 1, outputs, layers + 1, outputs)
        M = np.einsum("ikjk->ij", blocks)
        return scaled_solution(M[:layers, :layers], M[:layers, layers], LENGTH_RIDGE)

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
                pairs = zip(self.weights, lengths, directions, strict=True)
                hidden = [W + length * direction for W, length, direction in pairs]
                Z = V * V.dtype.type(lengths[0])
                Z += before.Z
                values = self._above_first(self.net.activations[0].forward(Z), hidden)
            after = Forward(Z, values, self.loss.solve(values[-1], batch))
            if after.output.loss <= before.output.loss:
                self.weights, self.failed, self.last_forward = hidden, False, after
                if halvings:
                    self._slope = 0.0
                return
            lengths = lengths / 2
