"""Checks of what a fit is given: rows, targets, labels, weights and counts. They run before any work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import check_finite
from bpls_fast.kernels.backend import to_numpy
from bpls_fast.network import Network
from bpls_fast.network.arguments import as_matrix, is_number
from bpls_fast.training.data import Array, RowSource, Samples, float_of, read_all
from bpls_fast.training.limits import inside_limits
from bpls_fast.training.targets import one_hot_targets

__all__ = [
    "ClassWeight",
    "check_bool",
    "check_choice",
    "check_count",
    "check_number",
    "checked_classification",
    "checked_regression",
    "checked_samples",
    "class_weights",
]

ClassWeight = Mapping[Any, float] | str | None


def checked_samples(
    net: Network,
    X: ArrayLike | RowSource,
    Y: ArrayLike,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
) -> tuple[Samples, Array | None]:
    """Return the training set of labels or numbers, and the label of each output if Y holds labels.

    A vector holds labels if the network has several outputs, or softmax outputs. Rows of weight 0 are left out.
    """
    given = to_numpy(Y)
    several = isinstance(net, Network) and (
        net.layer_sizes[-1] > 1 or net.activations[-1].name == "softmax"
    )
    classes: Array | None = None
    if several and (given.ndim == 1 or (given.ndim == 2 and given.shape[1] == 1)):
        X, labels, classes, weight = checked_classification(net, X, Y, sample_weight, class_weight)
        targets = one_hot_targets(classes, net.activations[-1])
        samples = Samples(X, targets.astype(float_of(X)), labels, weight)
    elif class_weight is not None:
        raise ValueError(f"class_weight is {class_weight!r}; expected None, Y holds no labels")
    else:
        X, Y, weight = checked_regression(net, X, Y, sample_weight)
        samples = Samples(X, net.activations[-1].inverse(Y), None, weight)
    if weight is None:
        return samples, classes
    if sample_weight is not None:
        total = float(np.sum(to_numpy(sample_weight), dtype=np.float64))
        samples = samples._replace(repetition=total / float(weight.sum(dtype=np.float64)))
    if not weight.all():
        samples = samples.take(np.flatnonzero(weight))
    return samples, classes


def checked_regression(
    net: Network, X: ArrayLike | RowSource, Y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Array, Array, Array | None]:
    """Return X, Y as a matrix of the type that X is computed in, and the weights of the rows."""
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
    return X, Y, _checked_weight(sample_weight, X)


def checked_classification(
    net: Network,
    X: ArrayLike | RowSource,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
) -> tuple[Array, NDArray[np.intp], Array, Array | None]:
    """Return X, the output of each row's label, the label of each output, and the weights of the rows."""
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
    weight = _checked_weight(sample_weight, X)
    if class_weight is not None:
        totals = np.bincount(index, weight, minlength=len(classes)).astype(np.float64)
        of_rows = class_weights(class_weight, classes, index, totals)[index]
        weight = _normalized(of_rows if weight is None else weight * of_rows, X)
        if not weight.any():
            raise ValueError("class_weight leaves no row a weight above 0; expected at least one")
    return X, index, classes, weight


def class_weights(
    class_weight: ClassWeight,
    classes: Array,
    index: NDArray[np.intp],
    totals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the weight of each class.

    `index` holds the classes of the rows, `totals` the weight of the rows of each class so far.
    """
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
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}; expected labels among {labels}")
    try:
        given = np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"class_weight is {class_weight!r}; expected numbers >= 0, one for each label"
        ) from error
    if not np.isfinite(given).all() or (given < 0).any() or not given[index].any():
        raise ValueError(
            f"class_weight is {class_weight!r}; expected finite weights >= 0, one above 0"
        )
    return given


def check_count(value: int, name: str) -> None:
    """Refuse what is not a whole number above 0."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}; expected a whole number >= 1")


def check_bool(value: bool, name: str) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}; expected True or False")


def check_choice(value: str, name: str, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        quoted = [repr(choice) for choice in choices]
        raise ValueError(f"{name} is {value!r}; expected {', '.join(quoted[:-1])} or {quoted[-1]}")


def check_number(
    value: float, name: str, *, above: float | None = None, finite: bool = True
) -> None:
    """Refuse what is not a number >= 0, or above a bound; infinity passes if `finite` is False."""
    real = is_number(value)
    inside = real and (value >= 0 if above is None else value > above)
    if not inside or (finite and not np.isfinite(value)):
        bound = ">= 0" if above is None else f"above {above:g}"
        raise ValueError(f"{name} is {value!r}; expected a {'finite ' * finite}number {bound}")


def _checked_rows(net: Network, X: ArrayLike | RowSource) -> Array:
    if not isinstance(net, Network):
        raise TypeError(f"net is {net!r}; expected a Network")
    if not isinstance(X, np.ndarray) and isinstance(X, RowSource):  # an array is quicker to see
        X = read_all(X)
    matrix = net.rows(X)
    check_finite(matrix, "X")
    return inside_limits(matrix, net.input_limits)


def _check_length(X: Array, rows: int, name: str) -> None:
    if len(X) != rows:
        raise ValueError(f"{name} has {rows} rows; expected {len(X)}, one for each row of X")
    if rows == 0:
        raise ValueError("X has no rows; expected at least 1")


def _checked_weight(sample_weight: ArrayLike | None, X: Array) -> Array | None:
    if sample_weight is None:
        return None
    weight = to_numpy(sample_weight)
    if weight.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight has dtype {weight.dtype}; expected real numbers")
    if weight.shape != (len(X),):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; expected ({len(X)},), one for each row of X"
        )
    weight = weight.astype(np.float64)
    check_finite(weight, "sample_weight")
    if (weight < 0).any() or not weight.any():
        raise ValueError(
            "sample_weight has a negative weight or no positive one; expected weights >= 0"
        )
    return _normalized(weight, X)


def _normalized(weight: NDArray[np.float64], X: Array) -> Array:
    """Scale weights so that the largest lies between 1/2 and 1, in the type that X is computed in."""
    _, exponent = np.frexp(weight.max())
    normalized: Array = np.ldexp(weight, -exponent).astype(float_of(X))
    return normalized


def _classes(labels: Array, outputs: int) -> Array:
    """Return the label of each output: those that occur, or 0, 1, … where the labels are such numbers."""
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
