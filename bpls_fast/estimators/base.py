"""The scikit-learn estimators: a network, its random start, and one of the fits. They need scikit-learn.

Columns of floats may have any units and offsets: the start is drawn for standardized columns and folded into the
weights of the first layer, which is solved the same way, so that nothing is copied and prediction costs nothing more.
Rows of uint8 are images: they are multiplied by 1/255 inside the first layer and not standardized.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import check_finite, gram
from bpls_fast.kernels.activations import activations
from bpls_fast.network.network import Network
from bpls_fast.training.bpls.algorithm1 import REFINEMENTS, fit_injective
from bpls_fast.training.bpls.algorithm2 import fit_classifier
from bpls_fast.training.checks import check_count, class_weights
from bpls_fast.training.data import Samples, float_of
from bpls_fast.training.refined.fit import fit_refined
from bpls_fast.training.refined.stream import Stream
from bpls_fast.training.report import FitReport
from bpls_fast.training.solvers import eigenvalue_errors, offset_limit
from bpls_fast.training.targets import one_hot_targets

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted

    from bpls_fast import threadpools as threadpools  # scikit-learn has loaded threadpoolctl
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


FIRST_ROWS = 500
"""Rows that the start of a stream is drawn for, at least."""

REFINED_EPS = 7.0
"""The ridge of the first layer in refined sweeps."""

PAPER_EPS, PAPER_ITERATIONS = 1e-5, 15
"""What the paper's algorithm for classes is given by default."""


class Start(NamedTuple):
    """A random network, the rows to train it on, and what was taken off their columns: mostly nothing."""

    net: Network
    X: Array
    offset: Array
    seed: int
    is_trained: bool = False

    def fold_offset(self) -> None:
        """Make the trained network take rows that nothing was taken off."""
        if not self.offset.any():
            return
        first, *others = self.net.weights
        first = first.copy()
        first[-1] -= self.offset @ first[:-1]
        self.net.weights = [first, *others]


class _BPLS(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: checks, the start, refined sweeps, the rows of a prediction."""

    _stream: Stream | None = None  # that partial_fit adds rows to
    _waiting: tuple[Array, Array, Array | None] | None = None  # its first rows, while they are few
    _fitted = False  # by fit, not by partial_fit
    _row_type: np.dtype[Any]
    _seen: Array  # the weight of each class so far
    _mean: Array
    _deviation: Array
    classes_: Array

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Any:
        """Give X, y and the weights, checked; remember the columns."""
        if self.method not in ("refined", "paper"):
            raise ValueError(f"method is {self.method!r}; expected 'refined' or 'paper'")
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
        seed = self._seed()
        sizes = [X.shape[1], *_checked_sizes(self.hidden_layer_sizes), outputs]
        net = Network(sizes, self.activation, output_activation, seed=seed)
        first, *others = (W * (spread * np.sqrt(3 / len(W))) for W in net.weights)
        offset = np.zeros(X.shape[1])
        if X.dtype != np.uint8:
            mean, deviation = _moments(X, weights)
            varies = deviation > 1e-12 * np.abs(mean)
            largest = offset_limit(X.dtype, weights is not None)
            offset = np.where(varies & (np.abs(mean) > largest * deviation), mean, 0.0)
            first[:-1] /= np.where(varies, deviation, np.inf)[:, np.newaxis]
            first[-1] -= (mean - offset) @ first[:-1]
        net.weights = [first, *others]
        if offset.any():
            X = np.subtract(X, offset, out=np.empty_like(X), casting="same_kind")
        return Start(net, X, offset, seed)

    def _refine(
        self,
        rows: Array,
        Y: Array,
        weights: Array | None,
        start: Start,
        **options: Any,
    ) -> None:
        """Train by refined sweeps and keep network and report."""
        if self.max_iter is not None:
            check_count(self.max_iter, "max_iter")
        check_count(self.n_iter_no_change, "n_iter_no_change")
        self.report_: FitReport = fit_refined(
            start.net,
            start.X,
            Y,
            max_passes=self.max_passes,
            max_sweeps=self.max_iter,
            eps=REFINED_EPS if self.eps is None else self.eps,
            start="network" if start.is_trained else "scaled",
            standardize=rows.dtype != np.uint8,
            validation_fraction=self.validation_fraction if self._stops_early() else 0.0,
            patience=self.n_iter_no_change,
            sample_weight=weights,
            seed=start.seed,
            backend=self.backend,
            verbose=self.verbose,
            **options,
        )

    def _stops_early(self) -> bool:
        if not isinstance(self.early_stopping, (bool, np.bool_)):
            raise TypeError(f"early_stopping is {self.early_stopping!r}; expected True or False")
        if self.early_stopping and not self.validation_fraction:
            raise ValueError(
                f"validation_fraction is {self.validation_fraction!r}; expected a number above 0 and below 1"
            )
        return bool(self.early_stopping)

    def _finish(self, start: Start) -> None:
        start.fold_offset()
        self.network_ = start.net
        self.n_iter_ = self.report_.iterations
        self._stream, self._waiting, self._fitted = None, None, True

    def _warm(self, X: Array, outputs: int) -> Start | None:
        """Give the network of the last fit to go on with, if that is asked for."""
        if not self.warm_start or not hasattr(self, "network_"):
            return None
        if self.method == "paper":
            raise ValueError("warm_start is True; expected False with method='paper'")
        return self._trained(X, outputs)

    def _trained(self, X: Array, outputs: int) -> Start:
        """Give the network of the last fit as a start."""
        net = self.network_.with_weights(self.network_.weights)
        sizes = (X.shape[1], *_checked_sizes(self.hidden_layer_sizes), outputs)
        asked = Network(sizes, self.activation, net.activations[-1])
        if (net.layer_sizes, net.activations) != (asked.layer_sizes, asked.activations):
            raise ValueError(f"the network to go on with is {net}; expected {asked}")
        return Start(net, X, np.zeros(X.shape[1]), self._seed(), is_trained=True)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    @contextlib.contextmanager
    def _restored_on_error(self) -> Iterator[None]:
        """Keep what the estimator knew of a stream if a call fails."""
        names = ("_stream", "_waiting", "_seen", "_mean", "_deviation", "_offset", "_row_type")
        before = {name: vars(self)[name] for name in names if name in vars(self)}
        try:
            yield
        except BaseException:
            for name in names:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _stream_rows(
        self, rows: Array, y: Array, weights: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Give rows of the dtype that the stream began with, without those of weight 0, and those that waited."""
        begun = self._stream is not None or self._waiting is not None
        if begun and rows.dtype != self._row_type:
            if np.uint8 in (rows.dtype, self._row_type):
                raise ValueError(f"X has dtype {rows.dtype}; expected {self._row_type} as before")
            rows = rows.astype(self._row_type)
        self._row_type = rows.dtype
        if weights is not None and not weights.all():
            some = np.flatnonzero(weights)
            rows, y, weights = rows[some], y[some], weights[some]
        return (rows, y, weights) if self._fitted else self._with_waiting(rows, y, weights)

    def _with_waiting(
        self, rows: Array, y: Array, weights: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Give the first rows of a stream, all so far: the start is drawn anew until they are enough to draw it for."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            if weights is not None or waiting[2] is not None:
                parts = [(waiting[0], waiting[2]), (rows, weights)]
                weights = np.concatenate(
                    [np.ones(len(part)) if w is None else w for part, w in parts]
                )
            rows, y = np.concatenate([waiting[0], rows]), np.concatenate([waiting[1], y])
            self._stream = None
        if self._stream is None and len(rows) < FIRST_ROWS:
            # Copies: the caller may use the memory of these rows for the next ones.
            self._waiting = rows.copy(), y.copy(), None if weights is None else weights.copy()
        return rows, y, weights

    def _stream_of(
        self, rows: Array, weights: Array | None, outputs: int, activation: str
    ) -> Stream:
        """Give the stream that rows are added to, a new one at the first of them."""
        if self._stream is not None:
            return self._stream
        if self._fitted:
            start = self._trained(rows, outputs)
        else:
            start = self._start(rows, weights, outputs, activation, self._SPREAD)
        start.net.input_scale = start.net.scale_of(rows)
        self._offset = start.offset
        self._stream = Stream(
            start.net,
            start="network" if start.is_trained else "scaled",
            eps=REFINED_EPS if self.eps is None else self.eps,
            forgetting=self.forgetting,
            standardize=rows.dtype != np.uint8,
            seed=start.seed,
        )
        return self._stream

    def _learn(self, stream: Stream, rows: Array, samples: Samples) -> None:
        """Add rows to a stream and keep its network and report."""
        if self._offset.any():
            X = np.subtract(rows, self._offset, out=np.empty_like(rows), casting="same_kind")
            samples = samples._replace(X=X)
        self.report_ = stream.update(_with_weights_like_rows(samples))
        net = stream.net.with_weights(stream.net.weights)
        Start(net, rows, self._offset, 0).fold_offset()
        self.network_ = net
        self.n_iter_ = self.report_.iterations


class BPLSClassifier(ClassifierMixin, _BPLS):  # type: ignore[misc]
    """A classifier: a network with softmax outputs, trained in closed form.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int
        Neurons of every hidden layer; () is a linear classifier.
    activation : str or sequence of str
        The activation of the hidden layers, or one for each of them; names of `bpls_fast.activations`.
    method : {"refined", "paper"}
        How to train: by refined sweeps (`bpls_fast.fit_refined`) or by the paper's Algorithm 2
        (`bpls_fast.fit_classifier`).
    max_iter : int, optional
        Sweeps at most. By default what `max_passes` allows; of the paper's algorithm, 15.
    max_passes : float
        Passes over the data at most, where refined sweeps see a chunk of it each; see `bpls_fast.fit_refined`.
    eps : float, optional
        The ridge of the first layer in refined sweeps, relative to the mean of its Gram's diagonal, by default 7:
        the larger, the better the network generalizes, and the slower it learns. Of the paper's algorithm the ridge of
        every layer, by default 1e-5.
    early_stopping : bool
        Whether refined sweeps hold out a part of the rows, keep the network that does best on it, and end when none is
        better for `n_iter_no_change` looks.
    validation_fraction : float
        The share of the rows that is held out.
    n_iter_no_change : int
        See there.
    warm_start : bool
        Whether `fit` goes on with the network of the last one.
    forgetting : float
        What a chunk of new rows in `partial_fit` leaves of the past: between 0 and 1.
    target, choose_output, margin
        Of the paper's algorithm: as in `bpls_fast.fit_classifier`.
    class_weight : "balanced" or mapping from labels to weights, optional
        Multiplies the weights of the rows. In `partial_fit`, "balanced" goes by all rows so far.
    random_state : int, numpy.random.RandomState or None
        What the start is drawn with. The same number gives the same bits.
    backend : {"auto", "cpu", "cuda"}
        Where `fit` runs: "cuda" is an NVIDIA GPU, "auto" the CPU. `partial_fit` and `predict` run on the CPU.
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
        method: str = "refined",
        max_iter: int | None = None,
        max_passes: float = 5.0,
        eps: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        forgetting: float = 0.5,
        target: str = "joint",
        choose_output: str = "mean",
        margin: float | Sequence[float] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        backend: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.method = method
        self.max_iter = max_iter
        self.max_passes = max_passes
        self.eps = eps
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.forgetting = forgetting
        self.target = target
        self.choose_output = choose_output
        self.margin = margin
        self.class_weight = class_weight
        self.random_state = random_state
        self.backend = backend
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
        start = self._warm(rows, len(classes))
        if start is None:
            start = self._start(rows, weights, len(classes), "softmax", self._SPREAD)
        elif not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start is True and y has the classes {classes}; expected {self.classes_} as before"
            )
        if self.method == "refined":
            self._refine(rows, labels, weights, start, class_weight=self.class_weight)
        else:
            self.report_ = fit_classifier(
                start.net,
                start.X,
                labels,
                max_iter=PAPER_ITERATIONS if self.max_iter is None else self.max_iter,
                eps=PAPER_EPS if self.eps is None else self.eps,
                target=self.target,
                choose_output=self.choose_output,
                margin=self.margin,
                standardize=rows.dtype != np.uint8,
                sample_weight=weights,
                class_weight=self.class_weight,
                backend=self.backend,
                verbose=self.verbose,
            )
        self._finish(start)
        self.classes_ = self.network_.classes = classes
        seen = np.bincount(np.searchsorted(classes, labels), weights, len(classes))
        self._seen = seen.astype(np.float64)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> BPLSClassifier:
        """Learn from some more rows, by refined sweeps over the latest ones; memory does not grow.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
            Of the dtype that it had at the first call.
        y : (n_samples,) array
        classes : (n_classes,) array
            All labels that may come; needed at the first call, unless `fit` was called before.
        sample_weight : (n_samples,) array, optional

        Returns
        -------
        BPLSClassifier
            The estimator itself.
        """
        fitted = hasattr(self, "network_")
        if not fitted and classes is None:
            raise ValueError(
                "classes is None; expected all labels at the first call of partial_fit"
            )
        rows, labels, weights = self._fit_rows(X, y, sample_weight, reset=not fitted)
        check_classification_targets(labels)
        known = self.classes_ if fitted else np.unique(np.asarray(classes))
        if classes is not None and not np.array_equal(known, np.unique(np.asarray(classes))):
            raise ValueError(f"classes is {classes!r}; expected {known} as before, or None")
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            raise ValueError(f"y holds the label {unknown[0]!r}; expected labels among {known}")
        with self._restored_on_error():
            rows, labels, weights = self._stream_rows(rows, labels, weights)
            index = np.searchsorted(known, labels)
            seen = np.zeros(len(known))
            if self._fitted or self._stream is not None:
                seen = self._seen
            self._seen = seen + np.bincount(index, weights, minlength=len(known))
            stream = self._stream_of(rows, weights, len(known), "softmax")
            if self.class_weight is not None:
                of_classes = class_weights(self.class_weight, known, index, self._seen)
                weights = of_classes[index] if weights is None else weights * of_classes[index]
            targets = one_hot_targets(known, activations["softmax"]).astype(float_of(rows))
            self._learn(stream, rows, Samples(rows, targets, index, weights))
        self.classes_ = self.network_.classes = known
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
    """A regressor for one or many outputs: a network trained in closed form.

    The paper's algorithm tries three networks and keeps the one with the smallest training error, which `report_`
    names: the sweep, the sweep with its output layer solved again, and the random start with nothing but its output
    layer solved. With one hidden layer of 60 it is usually the last, so that the hidden layer stays random: with 39 of
    40 seeds on diabetes, 40 on friedman1, 37 on friedman3. With two layers of 60 it is more often the second: 12, 36
    and 39 times.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int
        Neurons of every hidden layer; () is linear regression.
    activation : str or sequence of str
        The activation of the hidden layers, or one for each of them; names of `bpls_fast.activations`.
    method : {"refined", "paper"}
        How to train: by refined sweeps (`bpls_fast.fit_refined`) or by the paper's Algorithm 1
        (`bpls_fast.fit_injective`).
    max_iter : int, optional
        Sweeps at most. By default what `max_passes` allows; the paper's algorithm always has one.
    max_passes : float
        Passes over the data at most, where refined sweeps see a chunk of it each; see `bpls_fast.fit_refined`.
    eps : float, optional
        The ridge of the first layer in refined sweeps, relative to the mean of its Gram's diagonal, by default 7:
        the larger, the better the network generalizes, and the slower it learns. Of the paper's algorithm the ridge of
        every layer, by default the one that generalized cross-validation prefers for the output layer of the start
        (1e-6 without hidden layers), above the rounding of the Gram matrices: of float32 and uint8 rows, 10⁻⁷ times the
        neurons of the widest layer.
    early_stopping : bool
        Whether refined sweeps hold out a part of the rows, keep the network that does best on it, and end when none is
        better for `n_iter_no_change` looks.
    validation_fraction : float
        The share of the rows that is held out.
    n_iter_no_change : int
        See there.
    warm_start : bool
        Whether `fit` goes on with the network of the last one.
    forgetting : float
        What a chunk of new rows in `partial_fit` leaves of the past: between 0 and 1.
    safeguard, target, choose_output, margin
        Of the paper's algorithm: as in `bpls_fast.fit_injective`.
    random_state : int, numpy.random.RandomState or None
        What the start is drawn with. The same number gives the same bits.
    backend : {"auto", "cpu", "cuda"}
        Where `fit` runs: "cuda" is an NVIDIA GPU, "auto" the CPU. `partial_fit` and `predict` run on the CPU.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    network_ : Network
        The trained network; it takes rows as `predict` does, and can be saved without scikit-learn.
    report_ : FitReport
        How the fit went; its losses are those of outputs with standard deviation 1. After the paper's algorithm
        `candidates[best]` says which network was kept.
    n_iter_ : int
        Sweeps done.
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
        method: str = "refined",
        max_iter: int | None = None,
        max_passes: float = 5.0,
        eps: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        forgetting: float = 0.5,
        safeguard: bool = True,
        target: str = "joint",
        choose_output: str = "mean",
        margin: float | Sequence[float] = 1e-2,
        random_state: Any = None,
        backend: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.method = method
        self.max_iter = max_iter
        self.max_passes = max_passes
        self.eps = eps
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.forgetting = forgetting
        self.safeguard = safeguard
        self.target = target
        self.choose_output = choose_output
        self.margin = margin
        self.random_state = random_state
        self.backend = backend
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
        mean, deviation = _scale_of(Y, weights)
        Y = (Y - mean) / deviation
        start = self._warm(rows, Y.shape[1])
        if start is None:
            start = self._start(rows, weights, Y.shape[1], "identity", self._SPREAD)
        if self.method == "refined":
            self._refine(rows, Y, weights, start)
        else:
            self.report_ = fit_injective(
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
                backend=self.backend,
                verbose=self.verbose,
            )
        self._finish(start)
        self._mean, self._deviation = mean, deviation
        self._unscale_outputs()
        self._one_output = given.ndim == 1
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BPLSRegressor:
        """Learn from some more rows, by refined sweeps over the latest ones; memory does not grow.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
            Of the dtype that it had at the first call.
        y : (n_samples,) or (n_samples, n_outputs) array
        sample_weight : (n_samples,) array, optional

        Returns
        -------
        BPLSRegressor
            The estimator itself.
        """
        fitted = hasattr(self, "network_")
        rows, given, weights = self._fit_rows(
            X, y, sample_weight, multi_output=True, y_numeric=True, reset=not fitted
        )
        Y = given.reshape(len(given), -1)
        if fitted and Y.shape[1] != len(self._mean):
            raise ValueError(f"y has {Y.shape[1]} columns; expected {len(self._mean)} as before")
        with self._restored_on_error():
            rows, Y, weights = self._stream_rows(rows, Y, weights)
            if self._stream is None and not self._fitted:
                self._mean, self._deviation = _scale_of(Y, weights)
                self._one_output = given.ndim == 1
            Y = ((Y - self._mean) / self._deviation).astype(float_of(rows))
            stream = self._stream_of(rows, weights, Y.shape[1], "identity")
            self._learn(stream, rows, Samples(rows, Y, None, weights))
            self._unscale_outputs()
        return self

    def _unscale_outputs(self) -> None:
        """Make the network give outputs of the scale that y has."""
        *hidden, output = self.network_.weights
        output = output * self._deviation
        output[-1] += self._mean
        self.network_.weights = [*hidden, output]

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


def _with_weights_like_rows(samples: Samples) -> Samples:
    """Give the rows with weights of the dtype that they are computed in, without those whose weight is 0 in it."""
    if samples.sample_weight is None:
        return samples
    dtype = float_of(samples.X)
    with np.errstate(over="ignore", under="ignore"):
        weights = samples.sample_weight.astype(dtype)
    check_finite(weights, f"sample_weight, as {np.dtype(dtype)} like X,")
    return samples._replace(sample_weight=weights).take(np.flatnonzero(weights))


def _scale_of(Y: Array, weights: Array | None) -> tuple[Array, Array]:
    """Give the means and standard deviations of the outputs, 1 where they do not vary."""
    mean, deviation = _moments(Y, weights)
    deviation[deviation <= 1e-12 * np.abs(mean)] = 1.0
    return mean, deviation


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

    # Not by @: the threads that BLAS would start for it spin on for a while, in the way of our own.
    total = weights.sum()
    mean = sum(np.einsum("i,ij->j", w, x) for w, x in blocks()) / total
    variance = sum(np.einsum("i,ij->j", w, np.square(x - mean)) for w, x in blocks()) / total
    return mean, np.sqrt(variance)


def _cross_validated_eps(start: Start, Y: Array, weights: Array | None) -> float:
    """Return the ridge that generalized cross-validation prefers for the output layer on the features of the start."""
    smallest = _smallest_eps(start, weights)
    if len(start.net.weights) == 1:
        return max(1e-6, smallest)
    grid = EPS_GRID[smallest <= EPS_GRID]
    A = start.net.layer_inputs(start.X)[-1]
    G, C = gram(A, Y, bias=True, sample_weight=weights)
    counts = np.ones(len(Y)) if weights is None else weights
    rows = max(counts.sum(), np.count_nonzero(counts))
    squares = (counts @ np.square(Y)).sum()
    errors = eigenvalue_errors(G, C, grid, rows, squares, A.dtype, 1 + REFINEMENTS)
    return float(grid[np.argmin(errors)])


def _smallest_eps(start: Start, weights: Array | None) -> float:
    """Give a ridge above the rounding of every layer's Gram matrix: n machine epsilons of its mean diagonal at most.

    Sums of bytes are exact.
    """
    exact = start.X.dtype == np.uint8 and weights is None
    widest = max((len(W) for W in start.net.weights[exact:]), default=0)
    return widest * float(np.finfo(float_of(start.X)).eps)
