"""The regressor: a network with linear outputs behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from bpls_fast.estimators.base import Array, BaseBPLS
from bpls_fast.estimators.intervals import Uncertainty
from bpls_fast.estimators.parameters import CONSTRAINTS, MARGIN
from bpls_fast.network.arguments import is_number
from bpls_fast.training.bpls.backward_sweep import CHOICES
from bpls_fast.training.data import Samples, float_of
from bpls_fast.training.moments import OutputScale

__all__ = ["BPLSRegressor"]


@dataclass(eq=False, repr=False)
class BPLSRegressor(RegressorMixin, BaseBPLS):  # type: ignore[misc]
    """A regressor for one or many outputs: a network with linear outputs, trained in closed form.

    The paper's algorithm tries three networks and keeps the one with the smallest training error, which `report_`
    names: the sweep, the sweep with its output layer solved again, and the random start with only its output layer
    solved. With one hidden layer of 60 neurons the last one usually wins, so that the hidden layer stays random: with
    39 of 40 seeds on diabetes, 40 on friedman1 and 37 on friedman3. With two layers of 60 the second one wins more
    often: 12, 36 and 39 times.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int
        Neurons of each hidden layer; () is linear regression.
    method : {"refined", "paper"}
        The training method: refined sweeps (`bpls_fast.fit_refined`) or the paper's Algorithm 1
        (`bpls_fast.fit_injective`), which makes one sweep. `partial_fit` uses refined sweeps with either.
    eps : float, optional
        The ridge, relative to the mean of the diagonal of a layer's Gram matrix. For refined sweeps it is the ridge of
        the first layer, 7 by default, unless it is chosen. For Algorithm 1 it is the ridge of every layer. Its default
        is chosen by generalized cross-validation of the output layer of the start (1e-6 without hidden layers), and is
        above the rounding of the Gram matrices: for float32 and uint8 rows, 10⁻⁷ times the neurons of the widest layer.
    activation : str or sequence of str
        As in `bpls_fast.BPLSClassifier`. "auto" is ReLU or tanh, chosen with the ridge where there are several
        networks; tanh for one network and for Algorithm 1.
    safeguard, target, choose_output, margin
        Of Algorithm 1: as in `bpls_fast.fit_injective`.
    n_networks, max_iter, max_passes, input_scale, early_stopping, validation_fraction, n_iter_no_change, warm_start, \
forgetting, random_state, backend, verbose
        As in `bpls_fast.BPLSClassifier`.

    Attributes
    ----------
    network_ : Network
        The trained network. It takes the same rows as `predict` and can be saved and used without scikit-learn. Its
        outputs for rows of float32 and uint8 are float32; convert the rows to float64 where y needs more digits.
    report_ : FitReport
        What happened during the fit. Losses are those of outputs with standard deviation 1. After Algorithm 1,
        `candidates[best]` names the network that was kept.
    oob_score_ : float
        With several networks, R² of those that were not trained on the rows that they predict.
    n_iter_, n_features_in_, feature_names_in_
        As in `bpls_fast.BPLSClassifier`.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = bf.BPLSRegressor(random_state=0).fit(X, y)
    >>> bool(regressor.score(X, y) > 0.5)
    True
    """

    _: KW_ONLY
    margin: float | Sequence[float] = 1e-2
    safeguard: bool = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "choose_output": [StrOptions({*CHOICES} - {"label"})],
        "margin": [MARGIN, "array-like"],
        "safeguard": ["boolean"],
    }

    _output_activation = "identity"
    _spread = 0.5  # wider starts fit smooth functions worse
    _STREAM_STATE = (*BaseBPLS._STREAM_STATE, "_output_scale")

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BPLSRegressor:
        """Train on rows and their outputs.

        Parameters
        ----------
        X, sample_weight
            As in `BPLSClassifier.fit`.
        y : (n_samples,) or (n_samples, n_outputs) array

        Returns
        -------
        BPLSRegressor
            The estimator itself.
        """
        self._check_parameters()
        with self._restored_on_error():
            rows = self._decided(
                self._validated(X, y, sample_weight, multi_output=True, y_numeric=True),
                continues=self._continues,
            )
            Y = rows.y.reshape(len(rows.y), -1)
            scale = OutputScale.of(Y, rows.sample_weight)
            start = self._start(rows.X, rows.sample_weight, Y.shape[1])
            trained = self._method.train_regressor(
                start, scale.standardize(Y), rows.sample_weight, self._parameters()
            )
            self._finish(start, trained)
            self._use_scale(scale)
            self._uncertainty = None
            if trained.committee is not None:
                self._uncertainty = Uncertainty.of(trained.committee, start.offset, scale)
            self._one_output = rows.y.ndim == 1
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> BPLSRegressor:
        """Learn from more rows, by refined sweeps over the latest ones; memory does not grow.

        Parameters
        ----------
        X, sample_weight
            As in `BPLSClassifier.partial_fit`.
        y : (n_samples,) or (n_samples, n_outputs) array

        Returns
        -------
        BPLSRegressor
            The estimator itself.
        """
        if self._stream is None:  # later calls do not pay for it again
            self._check_parameters()
        fitted = hasattr(self, "network_")
        rows = self._validated(
            X, y, sample_weight, multi_output=True, y_numeric=True, reset=not fitted
        )
        one_output = rows.y.ndim == 1
        rows = rows._replace(y=rows.y.reshape(len(rows.y), -1))
        outputs = rows.y.shape[1]
        if fitted and outputs != len(self._output_scale.mean):
            raise ValueError(
                f"y has {outputs} columns; expected {len(self._output_scale.mean)} as before"
            )
        with self._restored_on_error():
            rows = self._next_rows(rows)
            if self._stream is None and not self._fitted:
                self._output_scale = OutputScale.of(rows.y, rows.sample_weight)
                self._one_output = one_output
            targets = self._output_scale.standardize(rows.y).astype(float_of(rows.X))
            stream = self._open_stream(rows, outputs)
            self._learn(stream, Samples(rows.X, targets, None, rows.sample_weight))
            self._use_scale(self._output_scale)
            self._uncertainty = None
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the outputs for each row.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
        return_std : bool
            Whether to return standard deviations, too: those of the networks' outputs and of the out-of-fold errors
            together. It needs several networks.

        Returns
        -------
        (n_samples,) or (n_samples, n_outputs) array, or two of them
            Of the shape of y in `fit`, in float64. Rows of float32 and uint8 are computed in float32 up to the
            standardized outputs, so y may be far from 0 relative to its spread, or beyond the range of float32.
        """
        rows = self._validated_rows(X)
        if rows.dtype == np.float64:
            outputs = self._in_shape_of_y(self.network_.forward(rows))
        else:
            standardized = self._standardized.forward(rows)
            outputs = self._in_shape_of_y(self._output_scale.restore(standardized))
        if not return_std:
            return outputs
        return outputs, self._in_shape_of_y(
            self._checked_uncertainty("return_std").deviations(rows)
        )

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return the lower and upper ends of intervals that hold y with a probability of about `coverage`.

        They combine the outputs of every network with the errors for the rows that it was not trained on, as CV+ does,
        reduced to the errors of the mean of the networks. It needs several networks.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame
        coverage : float
            Above 0 and below 1.

        Returns
        -------
        two (n_samples,) or (n_samples, n_outputs) arrays

        Examples
        --------
        >>> import bpls_fast as bf
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> regressor = bf.BPLSRegressor(n_networks=4, random_state=0).fit(X, y)
        >>> lower, upper = regressor.predict_interval(X, coverage=0.8)
        >>> bool(0.7 < ((lower <= y) & (y <= upper)).mean() < 0.95)
        True
        """
        if not is_number(coverage) or not 0 < coverage < 1:
            raise ValueError(f"coverage is {coverage!r}; expected a number above 0 and below 1")
        rows = self._validated_rows(X)
        ends = self._checked_uncertainty("predict_interval").interval(rows, coverage)
        lower, upper = map(self._in_shape_of_y, ends)
        return lower, upper

    def _use_scale(self, scale: OutputScale) -> None:
        """Scale the outputs of `network_`, which was trained on standardized ones, to the units of y."""
        self._output_scale, self._standardized = scale, self.network_
        self.network_ = scale.folded(self._standardized)

    def _checked_uncertainty(self, name: str) -> Uncertainty:
        if self._uncertainty is None:
            raise ValueError(
                f"{name} needs a fit of several networks, and no warm_start or partial_fit after it; n_networks is "
                f"{self.n_networks!r}; expected at least 2, or 40 rows with 'auto'"
            )
        return self._uncertainty

    def _in_shape_of_y(self, outputs: Array) -> Array:
        return outputs[:, 0] if self._one_output else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self) -> dict[str, bool]:  # scikit-learn before 1.6
        return {"multioutput": True}
