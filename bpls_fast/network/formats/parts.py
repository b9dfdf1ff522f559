"""The content of a network as plain values: what a file format stores."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["Layer", "Parts"]


class Layer(NamedTuple):
    """A layer with a separate bias: weight is (inputs, neurons), bias (neurons,) or None."""

    weight: NDArray[Any]
    bias: NDArray[Any] | None
    activation: str


class Parts(NamedTuple):
    """The arguments and attributes of a `Network`; the last rows of its weights are the biases."""

    layer_sizes: Sequence[int]
    activations: Sequence[str]
    bias: bool
    input_scale: float | None
    weights: list[NDArray[np.float64]]
    classes: NDArray[Any] | None
    input_limits: NDArray[np.float64] | None = None

    def limits(self, dtype: DTypeLike) -> NDArray[Any] | None:
        """Return the limits of the inputs, before they are scaled, in another float dtype."""
        if self.input_limits is None:
            return None
        with np.errstate(over="ignore"):  # a limit beyond the range of the dtype is none
            return self.input_limits.astype(dtype)

    def layers(self, dtype: DTypeLike, scale: float) -> list[Layer]:
        """Return the layers in another float dtype; the first includes a factor of the inputs, `scale`."""
        layers = []
        for index, (W, activation) in enumerate(zip(self.weights, self.activations, strict=True)):
            inputs = len(W) - self.bias
            weight = _cast(W[:inputs] * (scale if index == 0 else 1.0), dtype, index)
            bias = _cast(W[inputs], dtype, index) if self.bias else None
            layers.append(Layer(weight, bias, activation))
        return layers

    def check_activations(self, supported: Collection[str], format_name: str) -> None:
        """Raise ValueError for an activation, other than identity, that a format cannot express."""
        for name in self.activations:
            if name != "identity" and name not in supported:
                raise ValueError(
                    f"activation is {name!r}, which {format_name} cannot express; expected one of identity, "
                    + ", ".join(other for other in supported if other != "identity")
                )

    @classmethod
    def from_layers(
        cls,
        layers: Sequence[Layer],
        input_scale: float | None,
        classes: NDArray[Any] | None,
        input_limits: NDArray[np.float64] | None = None,
    ) -> Parts:
        """Build parts from layers; if only some layers have a bias, that of the others is zero."""
        for index, (weight, bias, _) in enumerate(layers):
            if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[1:]):
                shapes = [v.shape for v in (weight, bias) if v is not None]
                raise ValueError(
                    f"layer {index} has weights and bias of shapes {shapes}; "
                    "expected (inputs, neurons) and (neurons,)"
                )
        has_bias = any(layer.bias is not None for layer in layers)
        sizes = [layers[0].weight.shape[0], *(layer.weight.shape[1] for layer in layers)]
        weights = [_with_bias(layer) if has_bias else layer.weight for layer in layers]
        names = [layer.activation for layer in layers]
        return cls(sizes, names, has_bias, input_scale, weights, classes, input_limits)


def _with_bias(layer: Layer) -> NDArray[Any]:
    bias = np.zeros(layer.weight.shape[1]) if layer.bias is None else layer.bias
    return np.vstack([layer.weight, bias])


def _cast(values: NDArray[np.float64], dtype: DTypeLike, layer: int) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    if not np.isfinite(cast).all():
        raise ValueError(f"weights[{layer}] holds numbers too large for {cast.dtype}")
    return cast
