"""The backward sweep of both algorithms of the paper: solve a layer, pull its target back, go one layer down.

The letters are those of the method: A enters a layer, B is the target of its pre-activations, W are its weights (with a
bias in the last row), N̂ is the target of the values of the layer below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.kernels import cross, gram, linear, residual, target
from bpls_fast.kernels.activations import Activation
from bpls_fast.kernels.backend import arrays_to_numpy, to_numpy
from bpls_fast.network import Network
from bpls_fast.training.checks import check_bool, check_choice
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array
from bpls_fast.training.solvers import offset_limit, pseudo_inverse, solve_growing, standardization

__all__ = ["CHOICES", "BackwardSweep"]

TARGETS = ("joint", "per_output")
"""How the target of a hidden layer follows from the errors of the layer above."""

CHOICES = ("mean", "last", "label", "cyclic", "least_squares", "damped")
"""The readings of the paper's formula: the output j that a neuron's target is taken from."""


class BackwardSweep:
    """One backward sweep over the layers of a network, with the rules that it follows.

    Parameters
    ----------
    net : Network
        Sizes, activations and bias are taken from it; its weights are left alone.
    context : FitContext
        Owns the ridge, which grows when a factorization fails.
    target : {"joint", "per_output"}
        The minimum-norm correction that closes the errors of all outputs at once, or the paper's for one.
    choose_output : str
        One of `CHOICES`, for "per_output".
    resolve : bool
        Whether layers above the first are solved again on the updated matrix (line 9 of Algorithm 2).
    margin : float or sequence of float
        Distance of the hidden layers' targets from the ends of the range of their activation: one for all layers, or
        one for each. Targets of leaky ReLU stay above -margin.
    tikhonov_steps : int
        Steps of iterated Tikhonov in every solve; each removes more of the bias of the ridge.
    standardize : bool
        Whether the first layer is solved as if the columns of its data had mean 0 and mean square 1.

    Attributes
    ----------
    input_gram : array
        The Gram matrix of the first layer, of the latest sweep.
    """

    def __init__(
        self,
        net: Network,
        context: FitContext,
        *,
        target: str = "joint",
        choose_output: str = "mean",
        resolve: bool = False,
        margin: float | Sequence[float],
        tikhonov_steps: int = 0,
        standardize: bool = False,
    ) -> None:
        check_choice(target, "target", TARGETS)
        check_choice(choose_output, "choose_output", CHOICES)
        check_bool(resolve, "resolve")
        check_bool(standardize, "standardize")
        self.net = net
        self.context = context
        self.choice = "joint" if target == "joint" else choose_output
        self.resolve = resolve
        self.margins = _checked_margins(margin, len(net.activations) - 1)
        self.tikhonov_steps = tikhonov_steps
        self.standardize = standardize
        self.input_gram: Array = np.empty((0, 0))

    def __call__(
        self,
        A: Sequence[Array],
        B: Array,
        sample_weight: Array | None = None,
        labels: NDArray[np.intp] | None = None,
        input_gram: Array | None = None,
    ) -> list[NDArray[np.float64]]:
        """Return new weights of all layers.

        Parameters
        ----------
        A : sequence of (d, n) arrays
            The values that enter each layer.
        B : (d, outputs) array
            The target of the pre-activations of the output layer.
        sample_weight : (d,) array, optional
        labels : (d,) array of int, optional
            The output of each row's label, for `choose_output="label"`; deeper layers have none and take the mean.
        input_gram : array, optional
            The Gram matrix of the first layer, if it is known from an earlier sweep over the same rows.
        """
        weights: list[Any] = [None] * len(A)
        for layer in range(len(A) - 1, 0, -1):
            W = self.solve(self.gram(A[layer], B, sample_weight))
            below = self.net.activations[layer - 1]
            pulled = self.pull_back(A[layer], B, W, below, self.margins[layer - 1], labels)
            if self.resolve:
                with self.context.phase("target"):
                    updated = below.forward(pulled)
                W = self.solve(self.gram(updated, B, sample_weight))
            weights[layer] = W
            B, labels = pulled, None
        scale = self.net.scale_of(A[0])
        if input_gram is None:
            self.input_gram, C = self.gram(A[0], B, sample_weight, scale)
        else:
            self.input_gram, C = input_gram, self.cross(A[0], B, sample_weight, scale)
        weights[0] = self.solve_inputs(A[0], (self.input_gram, C), sample_weight)
        return weights

    def gram(
        self, A: Array, B: Array, sample_weight: Array | None, scale: float = 1.0
    ) -> tuple[Array, Array]:
        """Return AᵀA and AᵀB of a layer, its bias included."""
        with self.context.phase("gram"):
            sums = gram(A, B, bias=self.net.bias, sample_weight=sample_weight, scale=scale)
            G, C = arrays_to_numpy(sums)
            return G, C

    def cross(self, A: Array, B: Array, sample_weight: Array | None, scale: float) -> Array:
        """Return AᵀB of a layer, its bias included."""
        with self.context.phase("gram"):
            C = cross(A, B, bias=self.net.bias, sample_weight=sample_weight, scale=scale)
            return to_numpy(C)

    def solve(self, system: tuple[Array, Array]) -> NDArray[np.float64]:
        """Solve (G + eps·I) W = C; a ridge that is too small grows and stays grown."""
        G, C = system
        with self.context.phase("solve"), np.errstate(over="ignore", invalid="ignore"):
            W = solve_growing(G, C, self.context)
            for _ in range(self.tikhonov_steps):
                W += solve_growing(G, C - linear(G, W), self.context)
            return W

    def solve_inputs(
        self, X: Array, system: tuple[Array, Array], sample_weight: Array | None
    ) -> NDArray[np.float64]:
        """Solve the first layer; standardized, neither its ridge nor rounding depends on the units of the columns."""
        G, C = system
        if not self.standardize or not G.diagonal().any():
            return self.solve(system)
        T = standardization(G, self.net.bias, offset_limit(X.dtype, sample_weight is not None))
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite any more is refused
            return T.undo(self.solve((T.apply_both_sides(G), T.apply(C))))

    def pull_back(
        self,
        A: Array,
        B: Array,
        W: NDArray[np.float64],
        below: Activation,
        margin: float,
        labels: NDArray[np.intp] | None,
    ) -> Array:
        """Return the target of the pre-activations of the layer below: the inverse of N̂ = A + (B - A W) M."""
        with self.context.phase("target"):
            choice = "mean" if self.choice == "label" and labels is None else self.choice
            largest = np.sqrt(np.finfo(A.dtype).max)  # times an error it is still a finite number
            with np.errstate(over="ignore"):
                M = correction(W[: W.shape[0] - self.net.bias], choice)
                M = M.clip(-largest, largest).astype(A.dtype)
                W = W.astype(A.dtype)
            R = residual(A, W, B, bias=self.net.bias)
            if choice == "label" and labels is not None:
                R *= np.arange(R.shape[1]) == to_numpy(labels)[:, np.newaxis]
            return target(R, M, A, activation=below.name, margin=margin)


def correction(W: NDArray[np.float64], choice: str) -> NDArray[np.float64]:
    """Return M (outputs by neurons), with which the errors R of the outputs change the neurons by R M.

    "joint" is the pseudo-inverse of W: the change of least norm that closes all errors at once. The other choices
    close the error of one output j for every neuron on its own: the last output ("last"), that of the label ("label"),
    or neuron i's i-th in a cycle ("cyclic"). Or they take the mean over all j ("mean"), the least-squares value
    ("least_squares"), or a share of it ("damped").
    """
    if choice == "joint":
        return pseudo_inverse(W)
    neurons, outputs = W.shape
    if choice in ("least_squares", "damped"):
        lengths = np.square(W).sum(axis=1)
        lengths[lengths == 0] = np.inf
        if choice == "damped":
            lengths *= neurons
        M: NDArray[np.float64] = W.T / lengths
        return M
    inverse: NDArray[np.float64] = np.divide(1.0, W.T, out=np.zeros_like(W.T), where=W.T != 0)
    if choice == "last":
        inverse[:-1] = 0
    elif choice == "cyclic":
        inverse[np.arange(neurons) % outputs != np.arange(outputs)[:, np.newaxis]] = 0
    elif choice == "mean":
        inverse /= outputs
    return inverse


def _checked_margins(margin: float | Sequence[float], hidden: int) -> list[float]:
    try:
        given = np.asarray(margin, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.array(np.nan)
    each = np.full(hidden, given) if given.ndim == 0 else given
    if each.shape != (hidden,) or not (
        0 < given.min(initial=0.25) <= given.max(initial=0.25) < 0.5
    ):
        raise ValueError(
            f"margin is {margin!r}; expected one number above 0 and below 0.5, or {hidden} of them, "
            "one for each hidden layer"
        )
    margins: list[float] = each.tolist()
    return margins
