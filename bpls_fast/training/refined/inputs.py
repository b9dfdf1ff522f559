"""What enters the network that the sweeps train: all inputs, or the components that they have time to learn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpls_fast.kernels import gram
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Array, Samples, float_of
from bpls_fast.training.refined.chunks import TRIAL_SHARE
from bpls_fast.training.refined.components import Components, leading_components, variance
from bpls_fast.training.refined.shared_inputs import Reduced

__all__ = ["NetworkInputs", "Ridge"]

LARGEST_MEMORY = 1 << 30
"""The most bytes that the components of the rows may take."""

LEAST_VARIANCE = 0.9
"""The share of the variance of the start's pre-activations that components must keep."""

SEARCH_SHARE = 0.05
"""The share of the multiply-adds of the sweeps' products with all inputs that finding components may take."""


class Ridge(NamedTuple):
    """A ridge of the weights of all inputs, in terms of the weights V of components: size · |M V|²."""

    size: float
    metric: Array
    """MᵀM: the squares of weights of inputs are VᵀMᵀMV."""


class NetworkInputs:
    """The inputs of a fit.

    Parameters
    ----------
    net : Network
    sample : Samples
        Some of the rows.
    context : FitContext
    output_layer : bool
        Whether sweeps move the output layer, too; else there is nothing to learn about inputs that enter it.
    reduced : Reduced, optional
        The components that the rows are given in, where several fits share them.
    outer : Network, optional
        With them, the network on all inputs.

    Attributes
    ----------
    net : Network
        The network that the sweeps train, on all inputs or on components.
    G : array
        The Gram matrix of a sample of what enters it.
    total : float
        The weight of that sample.
    ridge : Ridge or None
        The ridge of the first layer, where it is not a multiple of the identity.
    """

    def __init__(
        self,
        net: Network,
        sample: Samples,
        context: FitContext,
        *,
        output_layer: bool,
        reduced: Reduced | None = None,
        outer: Network | None = None,
    ) -> None:
        self.net, self._outer = net, outer or net
        self.total = sample.total_weight()
        self.G: Array = np.empty((0, 0))
        self.ridge: Ridge | None = None
        self._context = context
        self._components = None if reduced is None else reduced.components
        if len(net.layer_sizes) > 2 or output_layer:
            with context.phase("gram"):
                X, scale, weight = sample.X, net.scale_of(sample.X), sample.sample_weight
                self.G = to_numpy(gram(X, bias=net.bias, scale=scale, sample_weight=weight))
        if reduced is not None:
            self.ridge = Ridge(context.eps * reduced.mean_square * self.total, reduced.metric)

    def reduce(
        self,
        plan: tuple[int, float] | None,
        samples: Samples,
        held: Samples | None,
        random: np.random.Generator,
    ) -> tuple[Samples, Samples | None]:
        """Switch to components if that saves time in the planned sweeps and passes; return the rows that enter."""
        if plan is None or not self.G.size:
            return samples, held
        sweeps, passes = plan
        count = samples.planned_rows() + (held.planned_rows() if held else 0)
        most = self._most_components(samples, count, passes)
        if most is None:
            return samples, held
        with self._context.phase("start"):
            ridge = self._context.eps * float(self.G.diagonal().mean())
            found = leading_components(
                self.G, self.net.bias, ridge, sweeps, most, random, samples.X.dtype
            )
            inner = None if found is None else self._network_on(found)
            if found is None or inner is None:
                return samples, held
            try:
                scale = self.net.scale_of(samples.X)
                reduced = samples._replace(X=found.rows(samples.X, scale))
                reduced_held = held and held._replace(X=found.rows(held.X, scale))
            except MemoryError:
                return samples, held
            self._components = found
            self.net, self.G = inner
            self.ridge = Ridge(ridge, gram(found.M))
            return reduced, reduced_held

    def release_gram(self) -> None:
        """Free the Gram matrix: the sweeps have its inverse."""
        self.G = np.empty((0, 0))

    def on_all_inputs(self, network: Network) -> Network:
        """Return a network that the sweeps trained as a network on all inputs."""
        if self._components is None:
            return network
        return self._components.whole(network, self._outer)

    def _most_components(self, samples: Samples, count: int, passes: float) -> int | None:
        """Return the most components that save time, or None if finding them takes too long."""
        inputs, neurons = self.net.layer_sizes[:2]
        # A pass multiplies rows with one column per neuron, twice and for the trial; making components multiplies them
        # once with one column per component.
        columns = passes * neurons * (2 + 1 / TRIAL_SHARE)
        most = min(inputs // 2, int(columns * inputs / (columns + inputs)))
        most = min(most, LARGEST_MEMORY // (count * np.dtype(float_of(samples.X)).itemsize))
        search = inputs * (inputs / 6 + 2 * most) + 2 * most**2
        return None if search > SEARCH_SHARE * columns * count else most

    def _network_on(self, found: Components) -> tuple[Network, Array] | None:
        """Return the network on components and their Gram matrix, or None if the start does not survive."""
        net, G = self.net, self.G
        try:
            inner, inner_G = found.network(net, G)
        except np.linalg.LinAlgError:  # of inputs far from 0 little but rounding is left
            return None
        left = variance(inner_G, inner.weights[0], net.bias)
        if not left > LEAST_VARIANCE * max(variance(G, net.weights[0], net.bias), 0.0):
            return None
        return inner, inner_G
