"""What a fit is given: rows, numbers or labels, and weights. All of it is checked here, before any work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import Activation, check_finite
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.network.arguments import as_matrix

__all__ = [
    "check_count",
    "checked_classification",
    "checked_regression",
    "class_targets",
    "float_of",
    "weights_of_classes",
]

Array = NDArray[Any]
ClassWeight = Mapping[Any, float] | str | None


def checked_regression(
    net: Network, X: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, Array, Array | None]:
    """Give X, Y as a matrix of the dtype that X is computed in, and the weights of the rows."""
    X, Y = _checked_rows(net, X), to_numpy(Y)
    if Y.ndim == 1:
        Y = Y[:, np.newaxis]
    Y = as_matrix(Y, "Y")
    outputs = net.layer_sizes[-1]
    if Y.shape[1] != outputs:
        raise ValueError(f"Y has {Y.shape[1]} columns; expected {outputs}, the network's outputs")
    _check_length(X, len(Y), "Y")
    check_finite(Y, "Y")
    with np.errstate(over="ignore"):
        Y = Y.astype(float_of(X), copy=False)
    check_finite(Y, f"Y, as {Y.dtype} like X,")
    return X, Y, _checked_weights(sample_weight, X)


def checked_classification(
    net: Network,
    X: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
) -> tuple[Array, NDArray[np.intp], Array, Array | None]:
    """Give X, the output that belongs to each row's label, the label of each output, the weights of the rows."""
    X, labels = _checked_rows(net, X), to_numpy(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(
            f"labels have {labels.ndim} dimensions; expected 1, a label for each row of X"
        )
    _check_length(X, len(labels), "labels")
    if labels.dtype.kind == "f":
        check_finite(labels, "labels")
    classes = _classes(labels, net.layer_sizes[-1])
    index = np.searchsorted(classes, labels)
    weights = _checked_weights(sample_weight, X)
    if class_weight is not None:
        totals = np.bincount(index, weights, minlength=len(classes)).astype(np.float64)
        of_rows = weights_of_classes(class_weight, classes, index, totals)[index]
        weights = _moderate(of_rows if weights is None else weights * of_rows, X)
        if not weights.any():
            raise ValueError("class_weight leaves no row a weight above 0; expected at least one")
    return X, index, classes, weights


def class_targets(classes: int, activation: Activation, floor: float) -> NDArray[np.float64]:
    """Give, in row k, the pre-activations that the outputs should have for class k.

    The outputs should be at one end of their range for the class and at the other for the rest, but for `floor`, since
    no finite pre-activation reaches an end; where the range has no two ends they should be 1 and 0.
    """
    low, high = activation.range
    if not np.isfinite(low) or not np.isfinite(high):
        low, high = (0.0, 1.0) if high > 0 else (-1.0, 0.0)
    step = floor * (high - low)
    values = np.full((classes, classes), low + step)
    shared = classes - 1 if activation.name == "softmax" else 1
    np.fill_diagonal(values, high - shared * step)
    return activation.inverse(values)


def check_count(value: int, name: str) -> None:
    """Refuse what is not a whole number above 0."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}; expected a whole number >= 1")


def float_of(X: Array) -> type[np.floating[Any]]:
    """Give the dtype that rows like X are computed in."""
    return np.float64 if X.dtype == np.float64 else np.float32


def _checked_rows(net: Network, X: ArrayLike) -> Array:
    if not isinstance(net, Network):
        raise TypeError(f"net is {net!r}; expected a Network")
    X = net.rows(X)
    check_finite(X, "X")
    return X


def _check_length(X: Array, rows: int, name: str) -> None:
    if len(X) != rows:
        raise ValueError(f"{name} has {rows} rows; expected {len(X)}, one for each row of X")
    if rows == 0:
        raise ValueError("X has no rows; expected at least 1")


def _checked_weights(sample_weight: ArrayLike | None, X: Array) -> Array | None:
    if sample_weight is None:
        return None
    weights = to_numpy(sample_weight)
    if weights.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight has dtype {weights.dtype}; expected real numbers")
    if weights.shape != (len(X),):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; expected ({len(X)},), one for each row of X"
        )
    weights = weights.astype(np.float64)
    check_finite(weights, "sample_weight")
    if (weights < 0).any() or not weights.any():
        raise ValueError(
            "sample_weight has a negative weight or no positive one; expected weights >= 0"
        )
    return _moderate(weights, X)


def _moderate(weights: NDArray[np.float64], X: Array) -> Array:
    """Give weights of the same proportions, the largest between 1/2 and 1, in the dtype that X is computed in."""
    _, exponent = np.frexp(weights.max())
    moderate: Array = np.ldexp(weights, -exponent).astype(float_of(X))
    return moderate


def _classes(labels: Array, outputs: int) -> Array:
    """Give the label of each output: all that occur, or 0, 1, … where the labels are such numbers."""
    try:
        found = np.unique(labels)
    except TypeError as error:
        raise TypeError(f"labels cannot be sorted: {error}; expected labels of one type") from error
    whole = found.dtype.kind in "iu" or (found.dtype.kind == "f" and (found == found.round()).all())
    if whole and found[0] >= 0 and found[-1] < outputs:
        return np.arange(outputs).astype(np.promote_types(found.dtype, np.min_scalar_type(outputs)))
    if len(found) != outputs:
        raise ValueError(
            f"labels hold {len(found)} classes; expected {outputs}, one for each output of the network"
        )
    return found


def weights_of_classes(
    class_weight: ClassWeight,
    classes: Array,
    index: NDArray[np.intp],
    totals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Give the weight of each class; `index` are the classes of rows, `totals` what each class weighs so far."""
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight is {class_weight!r}; expected 'balanced' or a mapping from labels to weights"
            )
        present = totals > 0
        share = totals.sum() / present.sum()
        balanced: NDArray[np.float64] = np.divide(
            share, totals, out=np.ones(len(classes)), where=present
        )
        return balanced
    if not isinstance(class_weight, Mapping):
        raise TypeError(
            f"class_weight is {class_weight!r}; expected 'balanced' or a mapping from labels to weights"
        )
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}; expected labels among {known}")
    try:
        given = np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"class_weight is {class_weight!r}; expected numbers >= 0, one for each label"
        ) from error
    if not np.isfinite(given).all() or (given < 0).any() or not given[index].any():
        raise ValueError(
            f"class_weight is {class_weight!r}; expected finite weights >= 0, one above 0"
        )
    return given
