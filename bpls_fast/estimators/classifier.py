"""The classifier: a network with softmax outputs behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from bpls_fast.estimators.base import Array, BaseBPLS
from bpls_fast.estimators.parameters import CONSTRAINTS, MARGIN
from bpls_fast.kernels.activations import activations
from bpls_fast.training.bpls.backward_sweep import CHOICES
from bpls_fast.training.checks import class_weights
from bpls_fast.training.data import Samples, float_of
from bpls_fast.training.refined.sweeps import LOSSES
from bpls_fast.training.targets import one_hot_targets

__all__ = ["BPLSClassifier"]


@dataclass(eq=False, repr=False)
class BPLSClassifier(ClassifierMixin, BaseBPLS):  # type: ignore[misc]
    """A classifier: a network with softmax outputs, trained in closed form.

    Columns of floats may have any units, offsets and heavy tails; no scaler is needed. `network_.input_limits` has the
    limits that were learnt for them, and moves values outside to the nearer limit. Rows of uint8 are images or a table:
    see `input_scale`.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int
        Neurons of each hidden layer; () is a linear classifier.
    activation : str or sequence of str
        The activation of the hidden layers, or one for each of them: names of `bpls_fast.activations`. "auto" is tanh,
        for the paper's method softmax.
    method : {"refined", "paper"}
        The training method: refined sweeps (`bpls_fast.fit_refined`) or the paper's Algorithm 2
        (`bpls_fast.fit_classifier`). `partial_fit` uses refined sweeps with either.
    loss : {"squared", "cross_entropy", "auto"}
        What refined sweeps minimize. The cross-entropy fits many classes better and gives better probabilities, but
        takes more sweeps. "auto" chooses the loss, the ridge, the weight decay and the number of sweeps on rows that
        are held out; `report_.trials` says what was tried.
    n_networks : int or "auto"
        The number of networks whose mean is the result, of refined sweeps. With more than one, each is trained without
        one part of the rows, which says how many sweeps are best for it. The loss, the ridge and the weight decay are
        chosen on the first part. `network_` has their hidden layers side by side, so the activation must not be
        softmax. "auto" is 4, or 1 where several are impossible or take long: with softmax, `method="paper"`,
        `early_stopping` or `warm_start`, without hidden layers, with fewer than 40 rows or more than a million weights.
        `partial_fit` trains one network.
    max_iter : int, optional
        The largest number of sweeps. By default refined sweeps go on for `max_passes`, and Algorithm 2 makes at most
        15. A number that is chosen is at most 192.
    max_passes : float, optional
        The largest number of passes over the data: by default 5, or any number where the sweeps are chosen. Each
        refined sweep sees a chunk of the rows; see `bpls_fast.fit_refined`.
    eps : float, optional
        The ridge, relative to the mean of the diagonal of a layer's Gram matrix. For refined sweeps it is the ridge of
        the first layer, by default 7, or 0.1 for the cross-entropy, unless it is chosen: a larger one generalizes
        better and learns more slowly. For Algorithm 2 it is the ridge of every layer, 1e-5 by default.
    input_scale : float, optional
        Of rows of uint8: the factor of every column of images, which share one unit. They are multiplied inside the
        first layer, without a copy. By default the training rows decide. They are a table if, among the columns that
        are not nearly constant, at least 5 % have a range that is more than eight times smaller than the largest, such
        as dummies beside bytes up to 255. The columns of a table have units of their own, as if they were float32.
        Otherwise the rows are images, and the factor is 1/255. Rows of floats are always a table.
    early_stopping : bool
        Whether refined sweeps hold out a part of the rows, stop when the score on it has not improved
        `n_iter_no_change` times in a row, and keep the best network. It behaves as in scikit-learn.
    validation_fraction : float
        The share of the rows that `early_stopping` holds out.
    n_iter_no_change : int
        How many scores without an improvement end a fit with `early_stopping`.
    warm_start : bool
        Whether `fit` continues with the network of the last fit.
    forgetting : float
        In `partial_fit`, the share of the past that remains after a chunk of new rows, from 0 to 1.
    target, choose_output, margin
        Of Algorithm 2: as in `bpls_fast.fit_classifier`.
    class_weight : "balanced" or mapping from labels to weights, optional
        Multiplies the weights of the rows. In `partial_fit`, "balanced" counts all rows so far.
    random_state : int, numpy.random.RandomState or None
        Seeds the random start. The same number gives the same bits.
    backend : {"auto", "cpu", "cuda"}
        Where `fit` runs: "cuda" is an NVIDIA GPU, "auto" the CPU. `partial_fit` and `predict` run on the CPU.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels, sorted.
    network_ : Network
        The trained network. It takes the same rows as `predict` and can be saved and used without scikit-learn.
    report_ : FitReport
        What happened during the fit.
    n_iter_ : int
        The number of sweeps, of the last network where there are several.
    oob_score_ : float
        With several networks, the accuracy (weighted) of those that were not trained on the rows that they predict.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : (n_features_in_,) array
        The names of the columns, if X has names.

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

    _: KW_ONLY
    loss: str = "auto"
    margin: float | Sequence[float] | None = None
    class_weight: Mapping[Any, float] | str | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "loss": [StrOptions(set(LOSSES))],
        "choose_output": [StrOptions(set(CHOICES))],
        "margin": [MARGIN, "array-like", None],
        "class_weight": [StrOptions({"balanced"}), Mapping, None],
    }

    _output_activation = "softmax"
    _spread = 1.0  # from 1 to 4 the accuracy is the same
    _STREAM_STATE = (*BaseBPLS._STREAM_STATE, "_seen")

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BPLSClassifier:
        """Train on rows and their labels.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
            uint8, float32 and float64 are read without a conversion; other numbers become float64.
        y : (n_samples,) array
            Labels of any type that can be sorted.
        sample_weight : (n_samples,) array, optional
            Weights >= 0. A weight of 2 counts a row twice, also in the number of refined sweeps, where rows count on
            average as at least one and at most ten. A weight of 0 leaves a row out.

        Returns
        -------
        BPLSClassifier
            The estimator itself.
        """
        self._check_parameters()
        with self._restored_on_error():
            rows = self._decided(self._validated(X, y, sample_weight), continues=self._continues)
            check_classification_targets(rows.y)
            classes = np.unique(rows.y)
            start = self._start(rows.X, rows.sample_weight, len(classes))
            if start.is_trained and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"warm_start is True and y has the classes {classes}; expected {self.classes_} as before"
                )
            trained = self._method.train_classifier(
                start, rows.y, rows.sample_weight, self._parameters()
            )
            self._finish(start, trained)
            self.classes_: Array = classes
            self.network_.classes = classes
            seen = np.bincount(np.searchsorted(classes, rows.y), rows.sample_weight, len(classes))
            self._seen = seen.astype(np.float64)  # the weight of each class so far
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> BPLSClassifier:
        """Learn from more rows, by refined sweeps over the latest ones; memory does not grow.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
            Of the same dtype in every call.
        y : (n_samples,) array
        classes : (n_classes,) array
            All labels that can occur. Required by the first call, unless `fit` was called before.
        sample_weight : (n_samples,) array, optional

        Returns
        -------
        BPLSClassifier
            The estimator itself.
        """
        if self._stream is None:  # later calls do not pay for it again
            self._check_parameters()
        fitted = hasattr(self, "network_")
        if not fitted and classes is None:
            raise ValueError(
                "classes is None; expected all labels at the first call of partial_fit"
            )
        rows = self._validated(X, y, sample_weight, reset=not fitted)
        check_classification_targets(rows.y)
        classes = self._checked_classes(classes, rows.y)
        with self._restored_on_error():
            rows = self._next_rows(rows)
            weights, index = rows.sample_weight, np.searchsorted(classes, rows.y)
            begun = self._fitted or self._stream is not None
            seen = self._seen if begun else np.zeros(len(classes))
            self._seen = seen + np.bincount(index, weights, minlength=len(classes))
            stream = self._open_stream(rows, len(classes))
            if self.class_weight is not None:
                of_classes = class_weights(self.class_weight, classes, index, self._seen)
                weights = of_classes[index] if weights is None else weights * of_classes[index]
            targets = one_hot_targets(classes, activations["softmax"]).astype(float_of(rows.X))
            self._learn(stream, Samples(rows.X, targets, index, weights))
        self.classes_ = self.network_.classes = classes
        return self

    def _checked_classes(self, given: ArrayLike | None, labels: Array) -> Array:
        """Return the classes of `partial_fit`; refuse others than those of the first call."""
        fitted = hasattr(self, "network_")
        classes: Array = self.classes_ if fitted else np.unique(np.asarray(given))
        if given is not None and not np.array_equal(classes, np.unique(np.asarray(given))):
            raise ValueError(f"classes is {given!r}; expected {classes} as before, or None")
        unknown = np.setdiff1d(labels, classes)
        if len(unknown):
            raise ValueError(f"y holds the label {unknown[0]!r}; expected labels among {classes}")
        return classes

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the outputs before softmax: a column per class or, for two classes, the second less the first.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame

        Returns
        -------
        (n_samples, n_classes) or (n_samples,) array
        """
        outputs = self._decision(X)
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`; the rows sum to one.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame

        Returns
        -------
        (n_samples, n_classes) array of float64
        """
        return activations["softmax"].forward(self._decision(X).astype(np.float64))

    def _decision(self, X: ArrayLike) -> Array:
        rows = self._validated_rows(X)
        return self.network_.decision(rows)

    def predict(self, X: ArrayLike) -> Array:
        """Return the label of each row.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame

        Returns
        -------
        (n_samples,) array
        """
        rows = self._validated_rows(X)
        return self.network_.predict(rows)
