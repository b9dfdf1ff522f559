"""What both estimators share: validation, the start of a fit, and `partial_fit`'s stream of rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from bpls_fast.estimators.byte_tables import is_table
from bpls_fast.estimators.intervals import Uncertainty
from bpls_fast.estimators.parameters import AUTO, SharedParameters, checked_sizes
from bpls_fast.kernels import check_finite
from bpls_fast.kernels.activations import Activation
from bpls_fast.network.arguments import checked_activations
from bpls_fast.network.committee import joined_network
from bpls_fast.network.network import Network
from bpls_fast.training.data import Samples, float_of
from bpls_fast.training.initial_network import (
    Start,
    fold_offset,
    random_start,
    shifted,
    trained_start,
)
from bpls_fast.training.limits import column_limits, inside_limits, wider_limits
from bpls_fast.training.methods import METHODS, Method, Trained
from bpls_fast.training.moments import OutputScale
from bpls_fast.training.refined.stream import Stream
from bpls_fast.training.report import FitReport

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn before 1.6

    def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
        """Validate X by the estimator's own method."""
        return estimator._validate_data(X, **options)


__all__ = ["Array", "BaseBPLS", "TrainingRows"]

Array = NDArray[Any]

ROW_TYPES = (np.float64, np.float32, np.uint8)
"""The types that the kernels read without a conversion; other numbers become the first of them."""

NETWORKS = 4
"""The number of networks where several are trained by default."""

MOST_WEIGHTS = 1_000_000
"""A network with more weights is trained alone by default."""

FIRST_ROWS = 500
"""A stream draws its random start for at least so many rows."""

ROWS_OF_LIMITS = 100
"""The limits of a stream's columns follow new rows if at least so many come at once; they see ten times as many."""


class TrainingRows(NamedTuple):
    """Validated rows, their labels or outputs, and their weights."""

    X: Array
    y: Array
    sample_weight: Array | None

    def take(self, chosen: NDArray[np.intp]) -> TrainingRows:
        """Return some of the rows."""
        weights = None if self.sample_weight is None else self.sample_weight[chosen]
        return TrainingRows(self.X[chosen], self.y[chosen], weights)

    def followed_by(self, later: TrainingRows) -> TrainingRows:
        """Return these rows and later ones; without weights, rows weigh 1."""
        weights = None
        if self.sample_weight is not None or later.sample_weight is not None:
            weights = np.concatenate(
                [
                    np.ones(len(part.X)) if part.sample_weight is None else part.sample_weight
                    for part in (self, later)
                ]
            )
        return TrainingRows(
            np.concatenate([self.X, later.X]), np.concatenate([self.y, later.y]), weights
        )

    def copy(self) -> TrainingRows:
        """Return copies of the arrays."""
        weights = None if self.sample_weight is None else self.sample_weight.copy()
        return TrainingRows(self.X.copy(), self.y.copy(), weights)


class BaseBPLS(SharedParameters, BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that does not depend on the kind of its targets.

    A subclass sets the constraints of its parameters, `_output_activation`, and `_spread`, the standard deviation of
    the start's first pre-activations.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    _output_activation: str
    _spread: float
    _stream: Stream | None = None
    _first_rows: TrainingRows | None = (
        None  # of a stream, as long as they are too few to draw a start for
    )
    _fitted = False  # by fit; partial_fit leaves it False
    _fitted_networks = 1  # that the last fit has joined
    _uncertainty: Uncertainty | None = None  # of a regressor's committee
    _output_scale: OutputScale  # of a regressor
    _standardized: Network  # a regressor's network with standardized outputs
    _bytes_are_table = False  # of the rows of the last fit, or of the stream
    _limits: NDArray[np.float64] | None = None  # of the columns, likewise
    _row_type: np.dtype[Any]
    _offset: NDArray[np.float64]  # that the stream subtracts from the columns
    network_: Network
    report_: FitReport
    n_iter_: int
    oob_score_: float

    _STREAM_STATE: tuple[str, ...] = (
        "_stream",
        "_first_rows",
        "_offset",
        "_row_type",
        "_bytes_are_table",
        "_limits",
    )

    def _check_parameters(self) -> None:
        """Validate the parameters that are not at their defaults, unless scikit-learn is told not to."""
        if get_config()["skip_parameter_validation"]:
            return
        kind = type(self)
        chosen = {
            name: value
            for name, value in self._parameters().items()
            if value is not getattr(kind, name)
        }
        validate_parameter_constraints(self._parameter_constraints, chosen, kind.__name__)

    def _validated(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> TrainingRows:
        """Validate rows to train on; set `n_features_in_` and `feature_names_in_`."""
        X, y = validate_data(self, X, y=y, dtype=ROW_TYPES, **options)
        if sample_weight is None:
            return TrainingRows(X, y, None)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weights.min() < 0 or not weights.any():
            raise ValueError(
                "sample_weight has a negative weight or is all zero; expected weights >= 0, one above 0"
            )
        return TrainingRows(X, y, weights)

    def _decided(self, rows: TrainingRows, *, continues: bool) -> TrainingRows:
        """Decide whether bytes are a table, and learn the limits of floats; return the rows to train on.

        Bytes of a table come as floats, other rows as they are where all values are inside the limits. A fit that
        continues an earlier one keeps its limits.
        """
        X = rows.X
        self._bytes_are_table = X.dtype == np.uint8 and self.input_scale is None and is_table(X)
        self._limits = None
        if continues:
            self._limits = self.network_.input_limits
        elif X.dtype != np.uint8:
            self._limits = self._column_limits(rows)
        return self._as_decided(rows)

    def _as_decided(self, rows: TrainingRows) -> TrainingRows:
        if self._bytes_are_table and rows.X.dtype == np.uint8:
            rows = rows._replace(X=rows.X.astype(np.float32))
        return rows._replace(X=inside_limits(rows.X, self._limits))

    def _validated_rows(self, X: ArrayLike) -> Array:
        """Validate rows to predict."""
        check_is_fitted(self)
        rows: Array = validate_data(self, X, reset=False, dtype=ROW_TYPES)
        return rows

    @property
    def _method(self) -> Method:
        return METHODS[self.method]

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameter_constraints}

    def _start(self, X: Array, sample_weight: Array | None, outputs: int) -> Start:
        """Return the network to begin with: random, or with `warm_start` that of the last fit."""
        if not self._continues:
            count = self._count_of_networks(X, outputs)
            return self._random_starts(X, sample_weight, outputs, count)
        if not self._method.can_continue:
            raise ValueError(f"warm_start is True; expected False with method={self.method!r}")
        return self._trained_start(X, outputs)

    def _random_start(self, X: Array, sample_weight: Array | None, outputs: int) -> Start:
        return self._random_starts(X, sample_weight, outputs, 1)

    def _random_starts(
        self, X: Array, sample_weight: Array | None, outputs: int, count: int
    ) -> Start:
        seed = self._seed()
        nets = [self._new_network(X, outputs, seed + number) for number in range(count)]
        return random_start(nets, X, sample_weight, spread=self._spread, seed=seed)

    def _trained_start(self, X: Array, outputs: int) -> Start:
        net, expected = self.network_, self._new_network(X, outputs)
        if self._activation_is_chosen and len(net.activations) > 1:
            expected = expected.with_activation(net.activations[0])
        if self._fitted and self._fitted_networks > 1:
            expected = joined_network([expected] * self._fitted_networks)
        if (net.layer_sizes, net.activations) != (expected.layer_sizes, expected.activations):
            raise ValueError(f"the network to go on with is {net}; expected {expected}")
        return trained_start(net, X, seed=self._seed())

    def _new_network(self, X: Array, outputs: int, seed: int = 0) -> Network:
        sizes = [X.shape[1], *checked_sizes(self.hidden_layer_sizes), outputs]
        scale = self.input_scale if X.dtype == np.uint8 else None
        return Network(
            sizes,
            self._hidden_activation,
            self._output_activation,
            seed=seed,
            input_scale=scale,
        )

    @property
    def _activation_is_chosen(self) -> bool:
        return isinstance(self.activation, str) and self.activation == AUTO

    @property
    def _hidden_activation(self) -> str | Sequence[str | Activation]:
        if self._activation_is_chosen:
            return self._method.default_activation[self._output_activation]
        return self.activation

    @property
    def _continues(self) -> bool:
        """Whether the next `fit` goes on with the network of the last one."""
        return self.warm_start and hasattr(self, "network_")

    def _count_of_networks(self, X: Array, outputs: int) -> int:
        """Return the number of networks to train, if there are rows enough for several."""
        if not self._method.can_join:
            return 1
        if self.n_networks != AUTO:
            return int(self.n_networks)
        sizes = (X.shape[1], *checked_sizes(self.hidden_layer_sizes), outputs)
        *hidden, _ = checked_activations(self._hidden_activation, self._output_activation, sizes)
        weights = sum((inputs + 1) * neurons for inputs, neurons in pairwise(sizes))
        is_single = (
            self.warm_start
            or self.early_stopping
            or not hidden
            or any(activation.name == "softmax" for activation in hidden)
            or weights > MOST_WEIGHTS
        )
        return 1 if is_single else NETWORKS

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _finish(self, start: Start, trained: Trained) -> None:
        """Keep the trained network and the report; a later `partial_fit` begins a new stream."""
        fold_offset(trained.network, start.offset)
        members = trained.committee.members if trained.committee is not None else ()
        for net in (trained.network, *members):
            net.input_limits = self._limits
        self.network_ = trained.network
        self.report_ = trained.report
        self.n_iter_ = trained.report.iterations
        self.__dict__.pop("oob_score_", None)
        if trained.committee is not None:
            self.oob_score_ = trained.report.validation[-1][1]
        self._stream, self._first_rows, self._fitted = None, None, True
        if not start.is_trained:
            self._fitted_networks = 1 if trained.committee is None else len(members)

    # ---- partial_fit

    @contextlib.contextmanager
    def _restored_on_error(self) -> Iterator[None]:
        """Restore the state of the stream if a call fails."""
        before = {name: vars(self)[name] for name in self._STREAM_STATE if name in vars(self)}
        try:
            yield
        except BaseException:
            for name in self._STREAM_STATE:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def _next_rows(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows to learn from: of the stream's dtype, without weights of 0, after the first rows if kept.

        Bytes of a table come as floats.
        """
        X = rows.X
        begun = self._stream is not None or self._first_rows is not None
        if begun and X.dtype != self._row_type:
            if np.uint8 in (X.dtype, self._row_type):
                raise ValueError(f"X has dtype {X.dtype}; expected {self._row_type} as before")
            X = X.astype(self._row_type)
        self._row_type = X.dtype
        rows = rows._replace(X=X)
        if rows.sample_weight is not None and not rows.sample_weight.all():
            rows = rows.take(np.flatnonzero(rows.sample_weight))
        if self._fitted:
            self._limits = self.network_.input_limits
            self._widen_limits(rows)
            return self._as_decided(rows)
        rows = self._after_first_rows(rows)
        if self._stream is None:
            return self._decided(rows, continues=False)
        self._widen_limits(rows)
        return self._as_decided(rows)

    def _widen_limits(self, rows: TrainingRows) -> None:
        """Let the limits of the stream follow columns that drift."""
        if self._limits is not None and len(rows.X) >= ROWS_OF_LIMITS:
            few = np.arange(0, len(rows.X), -(-len(rows.X) // (10 * ROWS_OF_LIMITS)))
            self._limits = wider_limits(self._limits, self._column_limits(rows.take(few)))

    def _column_limits(self, rows: TrainingRows) -> NDArray[np.float64]:
        labels = self._output_activation == "softmax"
        return column_limits(rows.X, rows.y, rows.sample_weight, labels=labels)

    def _after_first_rows(self, rows: TrainingRows) -> TrainingRows:
        """Begin the stream anew with all rows so far, until they are enough to draw the start for."""
        first, self._first_rows = self._first_rows, None
        if first is not None:
            rows = first.followed_by(rows)
            self._stream = None
        if self._stream is None and len(rows.X) < FIRST_ROWS:
            self._first_rows = rows.copy()  # the caller may reuse the memory
        return rows

    def _open_stream(self, rows: TrainingRows, outputs: int) -> Stream:
        """Return the stream that rows are added to; the first rows begin a new one."""
        if self._stream is None:
            if self._fitted:
                start = self._trained_start(rows.X, outputs)
            else:
                start = self._random_start(rows.X, rows.sample_weight, outputs)
            start.net.input_scale = start.net.scale_of(rows.X)
            self._offset = start.offset
            self._stream = self._method.open_stream(start, self._parameters())
        return self._stream

    def _learn(self, stream: Stream, samples: Samples) -> None:
        """Add rows to the stream; keep its network and report."""
        samples = samples._replace(X=shifted(samples.X, self._offset))
        self.report_ = stream.update(_with_computed_weights(samples))
        self.__dict__.pop("oob_score_", None)
        net = stream.net.with_weights(stream.net.weights)
        fold_offset(net, self._offset)
        net.input_limits = self._limits
        self.network_ = net
        self.n_iter_ = self.report_.iterations


def _with_computed_weights(samples: Samples) -> Samples:
    """Return the rows with weights in the dtype of the computation, without rows whose weight is 0 in it."""
    if samples.sample_weight is None:
        return samples
    dtype = float_of(samples.X)
    with np.errstate(over="ignore", under="ignore"):
        weights = samples.sample_weight.astype(dtype)
    check_finite(weights, f"sample_weight, as {np.dtype(dtype)} like X,")
    return samples._replace(sample_weight=weights).take(np.flatnonzero(weights))
