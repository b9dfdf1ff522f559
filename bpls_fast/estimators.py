"""The scikit-learn estimators: a network, its random start, and one of the fits. They need scikit-learn.

Columns of floats may have any units and offsets: the start is drawn for standardized columns and folded into the
weights of the first layer, which is solved the same way, so that nothing is copied and prediction costs nothing more.
Rows of uint8 are images: they are multiplied by 1/255 inside the first layer and not standardized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.activation import activations
from bpls_fast.classifier import fit_classifier
from bpls_fast.injective import REFINEMENTS, fit_injective
from bpls_fast.kernels import gram
from bpls_fast.network import Network
from bpls_fast.report import FitReport
from bpls_fast.samples import float_of
from bpls_fast.sweep import LARGEST_FLOAT32_OFFSET, LARGEST_OFFSET

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted
except ImportError as error:
    raise ImportError(
        "the estimators need scikit-learn, install it with: pip install 'bpls_fast[sklearn]'"
    ) from error
try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn before 1.6

    def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
        """Check X as an estimator's own method does."""
        return estimator._validate_data(X, **options)


__all__ = ["BPLSClassifier", "BPLSRegressor"]

Array = NDArray[Any]

ROW_TYPES = (np.float64, np.float32, np.uint8)
"""What the kernels read as it is; other numbers become the first of them."""

BLOCK = 512
"""Rows that the moments of the columns are computed from at a time."""

EPS_GRID = np.logspace(1, -8, 19)
"""The ridges that cross-validation chooses from; of equals it takes the first."""


class Start(NamedTuple):
    """A random network, the rows to train it on, and what was taken off their columns: mostly nothing."""

    net: Network
    X: Array
    offset: Array

    def fold_offset(self) -> None:
        """Make the trained network take rows that nothing was taken off."""
        first, *others = self.net.weights
        first = first.copy()
        first[-1] -= self.offset @ first[:-1]
        self.net.weights = [first, *others]


class _BPLS(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: checks, the start, the rows of a prediction."""

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        """Give X, y and the weights, checked; remember the columns."""
        if self.method != "paper":
            raise ValueError(f"method is {self.method!r}; expected 'paper'")
        X, y = validate_data(self, X, y=y, dtype=ROW_TYPES, **options)
        if sample_weight is None:
            return X, y, None
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weights.min() < 0 or not weights.any():
            raise ValueError(
                "sample_weight has a negative weight or is all zero; expected weights >= 0, one above 0"
            )
        return X, y, weights

    def _rows(self, X: Any) -> Array:
        """Give the rows of a prediction, checked."""
        check_is_fitted(self)
        rows: Array = validate_data(self, X, reset=False, dtype=ROW_TYPES)
        return rows

    def _start(
        self, X: Array, weights: Array | None, outputs: int, output_activation: str, spread: float
    ) -> Start:
        """Give a random network whose first layer expects the columns of X as they are."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        sizes = [X.shape[1], *_checked_sizes(self.hidden_layer_sizes), outputs]
        net = Network(sizes, self.activation, output_activation, seed=seed)
        first, *others = (W * (spread * np.sqrt(3 / len(W))) for W in net.weights)
        offset = np.zeros(X.shape[1])
        if X.dtype != np.uint8:
            mean, deviation = _moments(X, weights)
            varies = deviation > 1e-12 * np.abs(mean)
            largest = LARGEST_OFFSET if X.dtype == np.float64 else LARGEST_FLOAT32_OFFSET
            offset = np.where(varies & (np.abs(mean) > largest * deviation), mean, 0.0)
            first[:-1] /= np.where(varies, deviation, np.inf)[:, np.newaxis]
            first[-1] -= (mean - offset) @ first[:-1]
        net.weights = [first, *others]
        if offset.any():
            X = np.subtract(X, offset, out=np.empty_like(X), casting="same_kind")
        return Start(net, X, offset)


class BPLSClassifier(ClassifierMixin, _BPLS):  # type: ignore[misc]
    """A classifier: a network with softmax outputs, trained in a few backward sweeps (Algorithm 2).

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int
        Neurons of every hidden layer; () is a linear classifier.
    activation : str or sequence of str
        The activation of the hidden layers, or one for each of them; names of `bpls_fast.activations`.
    method : {"paper"}
        How to train: by the paper's algorithm.
    max_iter : int
        Sweeps at most.
    eps : float
        The ridge of every layer, relative to the mean of its Gram's diagonal.
    target, choose_output, margin
        As in `bpls_fast.fit_classifier`.
    class_weight : "balanced" or mapping from labels to weights, optional
        Multiplies the weights of the rows.
    random_state : int, numpy.random.RandomState or None
        What the start is drawn with. The same number gives the same bits.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels, sorted.
    network_ : Network
        The trained network; it takes rows as `predict` does, and can be saved without scikit-learn.
    report_ : FitReport
        How the fit went.
    n_iter_ : int
        Sweeps done.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : (n_features_in_,) array
        Their names, where X had names.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = bf.BPLSClassifier(hidden_layer_sizes=(20,), random_state=0).fit(X, y)
    >>> bool(classifier.score(X, y) > 0.9)
    True
    >>> classifier.predict_proba(X[:5]).shape
    (5, 3)
    """

    _SPREAD = 1.0  # of the start's first pre-activations; 1 to 4 do equally well

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (60,),
        activation: str | Sequence[str] = "softmax",
        *,
        method: str = "paper",
        max_iter: int = 15,
        eps: float = 1e-5,
        target: str = "joint",
        choose_output: str = "mean",
        margin: float | Sequence[float] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.method = method
        self.max_iter = max_iter
        self.eps = eps
        self.target = target
        self.choose_output = choose_output
        self.margin = margin
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BPLSClassifier:
        """Train on the rows of X and their labels.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
            uint8, float32 and float64 are read as they are; other numbers are converted to float64.
        y : (n_samples,) array
            Labels of any type that sorts.
        sample_weight : (n_samples,) array, optional
            Weights >= 0 of the rows; 0 is as if a row were not there, 2 as if it were there twice.

        Returns
        -------
        BPLSClassifier
            The estimator itself.
        """
        rows, labels, weights = self._fit_rows(X, y, sample_weight)
        check_classification_targets(labels)
        classes = np.unique(labels)
        start = self._start(rows, weights, len(classes), "softmax", self._SPREAD)
        self.report_: FitReport = fit_classifier(
            start.net,
            start.X,
            labels,
            max_iter=self.max_iter,
            eps=self.eps,
            target=self.target,
            choose_output=self.choose_output,
            margin=self.margin,
            standardize=rows.dtype != np.uint8,
            sample_weight=weights,
            class_weight=self.class_weight,
            verbose=self.verbose,
        )
        start.fold_offset()
        self.network_ = start.net
        self.classes_ = self.network_.classes = classes
        self.n_iter_ = self.report_.iterations
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Give the outputs before softmax: one column per class, of two classes the second less the first.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame

        Returns
        -------
        (n_samples, n_classes) or (n_samples,) array
        """
        rows = self._rows(X)
        outputs = self.network_.decision(rows)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Give the probability of every class, in the order of `classes_`; the rows sum to one.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame

        Returns
        -------
        (n_samples, n_classes) array of float64
        """
        rows = self._rows(X)
        return activations["softmax"].forward(self.network_.decision(rows).astype(np.float64))

    def predict(self, X: ArrayLike) -> Array:
        """Give the label of each row.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame

        Returns
        -------
        (n_samples,) array
        """
        rows = self._rows(X)
        return self.network_.predict(rows)


class BPLSRegressor(RegressorMixin, _BPLS):  # type: ignore[misc]
    """A regressor for one or many outputs: a network trained in one backward sweep (Algorithm 1).

    Three networks are tried and the one with the smallest training error is kept, which `report_` names: the sweep, the
    sweep with its output layer solved again, and the random start with nothing but its output layer solved. With one
    hidden layer of 60 it is usually the last, so that the hidden layer stays random: with 39 of 40 seeds on diabetes,
    40 on friedman1, 37 on friedman3. With two layers of 60 it is more often the second: 12, 36 and 39 times.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int
        Neurons of every hidden layer; () is linear regression.
    activation : str or sequence of str
        The activation of the hidden layers, or one for each of them; names of `bpls_fast.activations`.
    method : {"paper"}
        How to train: by the paper's algorithm.
    eps : float, optional
        The ridge of every layer, relative to the mean of its Gram's diagonal. By default the one that generalized
        cross-validation prefers for the output layer of the start (1e-6 without hidden layers), above the rounding of
        the Gram matrices: of float32 and uint8 rows, 10⁻⁷ times the neurons of the widest layer.
    safeguard, target, choose_output, margin
        As in `bpls_fast.fit_injective`.
    random_state : int, numpy.random.RandomState or None
        What the start is drawn with. The same number gives the same bits.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    network_ : Network
        The trained network; it takes rows as `predict` does, and can be saved without scikit-learn.
    report_ : FitReport
        How the fit went, and in `candidates[best]` which network was kept; its losses are those of outputs with
        standard deviation 1.
    n_iter_ : int
        Sweeps done: one.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : (n_features_in_,) array
        Their names, where X had names.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = bf.BPLSRegressor(random_state=0).fit(X, y)
    >>> bool(regressor.score(X, y) > 0.5)
    True
    """

    _SPREAD = 0.5  # of the start's first pre-activations; wider ones fit smooth functions worse

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (60,),
        activation: str | Sequence[str] = "tanh",
        *,
        method: str = "paper",
        eps: float | None = None,
        safeguard: bool = True,
        target: str = "joint",
        choose_output: str = "mean",
        margin: float | Sequence[float] = 1e-2,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.method = method
        self.eps = eps
        self.safeguard = safeguard
        self.target = target
        self.choose_output = choose_output
        self.margin = margin
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BPLSRegressor:
        """Train on the rows of X and their outputs.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
            uint8, float32 and float64 are read as they are; other numbers are converted to float64.
        y : (n_samples,) or (n_samples, n_outputs) array
        sample_weight : (n_samples,) array, optional
            Weights >= 0 of the rows; 0 is as if a row were not there, 2 as if it were there twice.

        Returns
        -------
        BPLSRegressor
            The estimator itself.
        """
        rows, given, weights = self._fit_rows(
            X, y, sample_weight, multi_output=True, y_numeric=True
        )
        Y = given.reshape(len(given), -1)
        mean, deviation = _moments(Y, weights)
        deviation[deviation <= 1e-12 * np.abs(mean)] = 1.0
        Y = (Y - mean) / deviation
        start = self._start(rows, weights, Y.shape[1], "identity", self._SPREAD)
        self.report_: FitReport = fit_injective(
            start.net,
            start.X,
            Y,
            eps=_cross_validated_eps(start, Y, weights) if self.eps is None else self.eps,
            safeguard=self.safeguard,
            target=self.target,
            choose_output=self.choose_output,
            margin=self.margin,
            standardize=rows.dtype != np.uint8,
            sample_weight=weights,
            verbose=self.verbose,
        )
        start.fold_offset()
        self.network_ = start.net
        *hidden, output = self.network_.weights
        output = output * deviation
        output[-1] += mean
        self.network_.weights = [*hidden, output]
        self.n_iter_ = 1
        self._one_output = given.ndim == 1
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Give the outputs for each row.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame

        Returns
        -------
        (n_samples,) or (n_samples, n_outputs) array
            Of the shape that y had; float64 if X is, else float32.
        """
        rows = self._rows(X)
        outputs = self.network_.forward(rows)
        return outputs[:, 0] if self._one_output else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self) -> dict[str, bool]:  # scikit-learn before 1.6
        return {"multioutput": True}


def _checked_sizes(hidden_layer_sizes: Sequence[int] | int) -> list[int]:
    sizes = np.atleast_1d(np.asarray(hidden_layer_sizes))
    if sizes.ndim != 1 or (sizes.size and (sizes.dtype.kind not in "iu" or sizes.min() < 1)):
        raise ValueError(
            f"hidden_layer_sizes is {hidden_layer_sizes!r}; expected whole numbers >= 1, one for each hidden layer"
        )
    checked: list[int] = sizes.astype(int).tolist()
    return checked


def _moments(X: Array, weights: Array | None) -> tuple[Array, Array]:
    """Give the means and standard deviations of the columns, in float64 and without a copy of X."""
    if weights is None:
        weights = np.ones(len(X))

    def blocks() -> Iterator[tuple[Array, Array]]:
        for begin in range(0, len(X), BLOCK):
            part = slice(begin, begin + BLOCK)
            yield weights[part], X[part].astype(np.float64)

    total = weights.sum()
    mean = sum(w @ x for w, x in blocks()) / total
    variance = sum(w @ np.square(x - mean) for w, x in blocks()) / total
    return mean, np.sqrt(variance)


def _cross_validated_eps(start: Start, Y: Array, weights: Array | None) -> float:
    """Give the ridge with the least generalized cross-validation error of the output layer on the start's features.

    Along an eigenvector of the Gram matrix with eigenvalue s, a solve with ridge λ keeps the share
    f = 1 - (λ / (s + λ))^(1 + refinements) of the least-squares fit; the error is |residual|² / (rows - Σf)². Weights
    count as repetitions, but the rows never as fewer than they are.
    """
    smallest = _smallest_eps(start, weights)
    if len(start.net.weights) == 1:
        return max(1e-6, smallest)
    grid = EPS_GRID[smallest <= EPS_GRID]
    A = start.net.layer_inputs(start.X)[-1]
    G, C = gram(A, Y, bias=True, sample_weight=weights)
    counts = np.ones(len(Y)) if weights is None else weights
    s, vectors = np.linalg.eigh(G)
    s = np.maximum(s, 1e-15 * s[-1])
    ridge = grid[:, np.newaxis] * s.mean()
    kept = 1 - (ridge / (s + ridge)) ** (1 + REFINEMENTS)
    total = (counts @ np.square(Y)).sum()
    explained = (2 * kept - kept**2) @ (np.square(vectors.T @ C).sum(axis=1) / s)
    residual = np.maximum(total - explained, 100 * np.finfo(A.dtype).eps * total)
    freedom = max(counts.sum(), np.count_nonzero(counts)) - kept.sum(axis=1)
    error = np.where(freedom >= 1, residual / np.square(freedom), np.inf)
    return float(grid[np.argmin(error)])


def _smallest_eps(start: Start, weights: Array | None) -> float:
    """Give a ridge above the rounding of every layer's Gram matrix: n machine epsilons of its mean diagonal at most.

    Sums of bytes are exact.
    """
    exact = start.X.dtype == np.uint8 and weights is None
    widest = max((len(W) for W in start.net.weights[exact:]), default=0)
    return widest * float(np.finfo(float_of(start.X)).eps)
