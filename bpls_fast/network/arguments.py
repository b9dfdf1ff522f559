"""Arguments of a network, checked before anything is changed: sizes, activations, scale, limits, weights, rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import Activation, activations
from bpls_fast.kernels.backend import on_device, to_device_of

__all__ = [
    "ActivationName",
    "as_matrix",
    "checked_activations",
    "checked_bias",
    "checked_limits",
    "checked_scale",
    "checked_sizes",
    "is_number",
    "random_weights",
]

ActivationName = str | Activation


def checked_sizes(layer_sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the layer sizes: at least two whole numbers >= 1."""
    try:
        sizes = tuple(int(size) for size in layer_sizes)
        whole = all(size == given for size, given in zip(sizes, layer_sizes, strict=True))
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"layer_sizes is {layer_sizes!r}; expected a sequence of whole numbers"
        ) from error
    if len(sizes) < 2 or min(sizes) < 1 or not whole:
        raise ValueError(
            f"layer_sizes is {layer_sizes!r}; expected at least two whole numbers >= 1: "
            "inputs, hidden layers, outputs"
        )
    return sizes


def checked_activations(
    hidden: ActivationName | Sequence[ActivationName],
    output: ActivationName,
    sizes: tuple[int, ...],
) -> tuple[Activation, ...]:
    """Return one activation for each layer, the last one that of the outputs."""
    count = len(sizes) - 2
    hidden, output = _name_of(hidden), _name_of(output)
    if not isinstance(hidden, (str, Sequence, np.ndarray)):
        raise TypeError(
            f"activation is {hidden!r}; expected one of {', '.join(activations)}, or one for each hidden layer"
        )
    names = [hidden] * count if isinstance(hidden, str) else [_name_of(name) for name in hidden]
    if len(names) != count:
        raise ValueError(
            f"activation names {len(names)} activations; expected one for each of {count} hidden layers"
        )
    checked = [*(("activation", name) for name in names), ("output_activation", output)]
    if isinstance(hidden, str):
        checked.append(("activation", hidden))  # also if no layer uses it
    for argument, name in checked:
        if not isinstance(name, str) or name not in activations:
            raise ValueError(f"{argument} is {name!r}; expected one of {', '.join(activations)}")
    return tuple(activations[str(name)] for name in [*names, output])


def _name_of(activation: Any) -> Any:
    """Return the name of an Activation, and anything else as it is."""
    return activation.name if isinstance(activation, Activation) else activation


def checked_bias(bias: bool) -> bool:
    """Return whether layers have biases."""
    if not isinstance(bias, (bool, np.bool_)):
        raise TypeError(f"bias is {bias!r}; expected True or False")
    return bool(bias)


def checked_scale(scale: float | None) -> float | None:
    """Return the scale of the inputs: a finite number other than 0, or None."""
    if scale is None:
        return None
    if not is_number(scale):
        raise TypeError(f"input_scale is {scale!r}; expected a number")
    if not np.isfinite(scale) or scale == 0:
        raise ValueError(f"input_scale is {scale!r}; expected a finite number other than 0")
    return float(scale)


def checked_limits(limits: ArrayLike | None, inputs: int) -> NDArray[np.float64] | None:
    """Return the limits of the inputs, a copy that cannot be written to: a lower and an upper one each, or None."""
    if limits is None:
        return None
    try:
        checked = np.array(limits, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"input_limits is {limits!r:.80}; expected two rows of numbers, lower and upper limits"
        ) from error
    if checked.shape != (2, inputs):
        raise ValueError(
            f"input_limits has shape {checked.shape}; expected (2, {inputs}), a lower and an upper limit for each input"
        )
    lower, upper = checked
    wrong = ~((lower <= upper) & (lower < np.inf) & (upper > -np.inf))
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(
            f"input_limits of input {place} are {lower[place]} and {upper[place]}; expected numbers, lower <= upper"
        )
    checked.setflags(write=False)
    return checked


def random_weights(
    shapes: Sequence[tuple[int, int]], seed: Any, low: float, high: float
) -> list[NDArray[np.float64]]:
    """Draw weights uniformly from [low, high], layer by layer."""
    try:
        ordered = bool(np.isfinite(low) and np.isfinite(high - low) and low <= high)
    except TypeError:
        ordered = False
    if not ordered:
        raise ValueError(
            f"low and high are {low!r} and {high!r}; expected finite numbers, low <= high"
        )
    try:
        random = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"seed is {seed!r}; expected whole numbers >= 0, a Generator or None: {error}"
        ) from error
    return [random.uniform(low, high, shape) for shape in shapes]


def as_matrix(X: ArrayLike, name: str) -> NDArray[Any]:
    """Return X as a matrix of uint8, float32 or float64; other real numbers become float64."""
    X = to_device_of(X, X) if on_device(X) else np.asarray(X)
    if X.dtype not in (np.uint8, np.float32, np.float64):
        if on_device(X):
            raise TypeError(f"{name} has dtype {X.dtype}; expected uint8, float32 or float64")
        if X.dtype.kind not in "biuf":
            raise TypeError(f"{name} has dtype {X.dtype}; expected real numbers")
        X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} has {X.ndim} dimensions; expected 2, one row for each sample")
    return X


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, Python's or NumPy's."""
    return isinstance(value, (int, float, np.integer, np.floating))
