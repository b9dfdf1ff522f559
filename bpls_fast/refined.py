"""Refined sweeps over chunks of the rows: `fit_refined`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.activation import Activation, activations
from bpls_fast.kernels import gram, linear
from bpls_fast.network import Network, scaled_inputs
from bpls_fast.refinement import Refinement, Rows, Weights
from bpls_fast.report import Callback, FitReport, Recorder, TooLargeError
from bpls_fast.samples import (
    Array,
    ClassWeight,
    checked_classification,
    checked_regression,
    class_targets,
    float_of,
)

__all__ = ["fit_refined"]

PHASES = ("start", "forward", "gram", "solve", "target", "step")

FIRST_CHUNK, SWEEPS_OF_A_SIZE, DOUBLINGS = 2500, 12, 1
"""Chunks begin small, when any rows show the way, and double after some sweeps."""

ROWS_PER_NEURON = 25
"""A first chunk has at least so many rows for each neuron of the last hidden layer: they determine the output layer."""

ROWS_PER_SWEEP, FEWEST_SWEEPS = 80, 3
"""Where each sweep sees all rows there is one for so many of them: fewer rows are learnt by heart in fewer sweeps."""

CALIBRATION_ROWS = 1000
"""At most so many rows are used to calibrate probabilities."""

TRIAL_SHARE = 4
"""Of a chunk, one row in so many is used to find and try the lengths of steps."""

OFFSET = 0.5
"""How far from 0 the mean of a pre-activation is at the start, at most."""

SAMPLE = 5_000
"""At most so many rows are used to scale the start, and for the Gram matrix of the inputs."""

LEAST_KEPT, WINDOW = 0.8, 0.25
"""How much of the mean of the weights a sweep over a chunk keeps: at least so much, and such that the mean reaches back
over this share of the sweeps."""

FAILURES = 5
"""So many sweeps in a row without a step that lowers the loss end a fit."""

EXACT = 1e-6
"""A loss below this share of the mean square of the targets leaves nothing to learn."""

VALIDATE_EVERY = 6
"""Sweeps over chunks from one look at the rows that are held out to the next."""

LABEL_FLOOR = 1e-2
"""How far from the ends of its range an output should be that only comes close to them, as a share of the range."""


def fit_refined(
    net: Network,
    X: ArrayLike,
    Y: ArrayLike,
    *,
    max_passes: float = 5.0,
    max_sweeps: int | None = None,
    chunk_rows: int | None = None,
    eps: float = 7.0,
    output_eps: float | None = None,
    start: str = "scaled",
    standardize: bool = False,
    tol: float = 1e-5,
    validation_fraction: float = 0.0,
    patience: int = 10,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    seed: int = 0,
    verbose: int = 0,
    callback: Callback | None = None,
) -> FitReport:
    """Train a network by refined sweeps: closed-form steps of the hidden layers under an output layer that is solved.

    Parameters
    ----------
    net : Network
        Trained in place. If the call raises it is left as it was.
    X : (d, inputs) array of uint8, float32 or float64
        The data; bytes are read as they are, no float copy is made.
    Y : (d,) array of labels, or (d, outputs) array of numbers
        A vector is labels if the network has more than one output, or softmax for its activation.
    max_passes : float
        Passes over the data at most, where it is cut into chunks.
    max_sweeps : int, optional
        Sweeps at most. By default as many as `max_passes` allows; where each sees all rows, one for every 80 of them,
        3 at least.
    chunk_rows : int, optional
        Rows that a sweep sees. By default all, up to 5000 (or 50 for every neuron of the last hidden layer); of more,
        2500 at first (or 25 for every neuron), then twice as many.
    eps : float
        The ridge of the hidden layers, relative to the mean of their Gram's diagonal: the larger, the better the
        network generalizes, and the slower it learns.
    output_eps : float, optional
        The ridge of the output layer, relative in the same way. By default, where every sweep sees all rows, the one
        that generalized cross-validation prefers for the start; otherwise 1e-6.
    start : {"scaled", "network"}
        Whether the hidden weights are first shifted and scaled so that every pre-activation has a mean near 0 and
        standard deviation 1 over the data, or taken as they are, to go on with a network that was trained before.
    standardize : bool
        Whether the first layer's ridge is that of columns with mean 0 and mean square 1, so that it depends neither on
        their units nor on their offsets.
    tol : float
        Where every sweep sees all rows: three of them in a row that lower the loss by less than this share end the fit.
    validation_fraction : float
        The share of the rows that is held out. If it is not 0, the network that does best on them is kept, and the fit
        ends when `patience` looks at them have shown none that is better.
    patience : int
        See there.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows.
    class_weight : "balanced" or mapping from labels to weights, optional
        Multiplies the weights of the rows.
    seed : int
        What the order of the rows is drawn with.
    verbose : int
        1 shows a progress bar, or lines where tqdm is not installed.
    callback : function of one FitReport, optional
        Called after every sweep, with the network as it would be returned in `report.network`, which takes a part of a
        sweep to find out; returning True ends the fit.

    Returns
    -------
    FitReport

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> inside = np.where((x**2).sum(axis=1) < 1, "inside", "outside")
    >>> net = bf.Network([2, 20, 2], activation="tanh", seed=0)
    >>> report = bf.fit_refined(net, x, inside)
    >>> bool((net.predict(x) == inside).mean() > 0.9)
    True
    """
    samples, classes = _checked(net, X, Y, sample_weight, class_weight)
    _check_options(max_passes, max_sweeps, chunk_rows, output_eps, start, tol, patience)
    random = np.random.default_rng(seed)
    begin = net.with_weights(net.weights)
    begin.input_scale, begin.classes = net.scale_of(samples.X), classes
    with Recorder(
        "refined sweeps",
        eps,
        steps=max_sweeps or 1,
        verbose=verbose,
        callback=callback,
        phases=PHASES,
    ) as record:
        with record.phase("start"):
            samples, held = _hold_out(samples, validation_fraction, random)
            sample = samples.take(_some(len(samples.X), random))
            if start == "scaled":
                begin.weights = scaled_start(begin, sample, random)
        fit = _Fit(begin, record, samples, held, sample, output_eps, standardize)
        del sample
        sizes = _chunk_sizes(len(samples.X), first_chunk(net), chunk_rows)
        stopped = fit.run(sizes, random, max_passes, max_sweeps, tol, patience)
        report = record.finish(stopped)
    net.weights, net.input_scale, net.classes = fit.best.weights, begin.input_scale, classes
    return report


class Samples(NamedTuple):
    """Rows. Of labels, `targets` has a row for each class and `labels` says which; of numbers, one for each row."""

    X: Array
    targets: Array
    labels: NDArray[np.intp] | None
    weights: Array | None
    repetition: float = 1.0  # of rows, that a weight of 1 stands for on average

    def repetitions(self) -> float:
        """Give how many rows there are if weights are repetitions, and never fewer than there are."""
        if self.weights is None:
            return len(self.X)
        return max(len(self.X), self.repetition * float(self.weights.sum(dtype=np.float64)))

    def take(self, chosen: NDArray[np.intp] | slice) -> Samples:
        """Give some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        if self.labels is None:
            return Samples(self.X[chosen], self.targets[chosen], None, weights, self.repetition)
        return Samples(self.X[chosen], self.targets, self.labels[chosen], weights, self.repetition)

    def followed_by(self, later: Samples, most: int) -> Samples:
        """Give these rows and later ones, of all the latest."""
        X = np.concatenate([self.X, later.X])[-most:]
        weights = self.weights
        if weights is not None or later.weights is not None:
            of_both = [
                np.ones(len(part.X), X.dtype if X.dtype == np.float64 else np.float32)
                if part.weights is None
                else part.weights
                for part in (self, later)
            ]
            weights = np.concatenate(of_both)[-most:]
        if self.labels is None or later.labels is None:
            return Samples(X, np.concatenate([self.targets, later.targets])[-most:], None, weights)
        return Samples(
            X, self.targets, np.concatenate([self.labels, later.labels])[-most:], weights
        )

    def whole(self) -> Rows:
        """Give all rows to a sweep."""
        T = self.targets if self.labels is None else self.targets[self.labels]
        return Rows(self.X, T, self.weights, len(self.X))

    def score(self, outputs: Array) -> float:
        """Give the share of the weight that the outputs classify rightly, or R², of several outputs the mean."""
        if self.labels is not None:
            return float(np.average(outputs.argmax(axis=1) == self.labels, weights=self.weights))
        T = self.targets.astype(np.float64)
        mean = np.average(T, axis=0, weights=self.weights)
        spread = np.average((T - mean) ** 2, axis=0, weights=self.weights)
        error = np.average((T - outputs) ** 2, axis=0, weights=self.weights)
        return float(np.mean(1 - error / np.where(spread > 0, spread, 1)))


class _Fit:
    """One fit: the sweeps, the mean of their weights, the best network so far."""

    def __init__(
        self,
        begin: Network,
        record: Recorder,
        samples: Samples,
        held: Samples | None,
        sample: Samples,
        output_eps: float | None,
        standardize: bool,
    ) -> None:
        self.cross_validates = output_eps is None
        self.begin = begin
        self.record = record
        self.samples = samples
        self.held = held
        self.mean_square = float(np.square(samples.targets, dtype=np.float64).sum(axis=1).mean())
        self.best = begin
        self.refinement = Refinement(
            begin,
            record,
            output_eps=1e-6 if output_eps is None else output_eps,
            standardize=standardize,
        )
        if self.refinement.hidden:
            X, weights = sample.X, sample.weights
            with record.phase("gram"):
                G = gram(X, bias=begin.bias, scale=begin.scale_of(X), sample_weight=weights)
            total = float(len(X) if weights is None else weights.sum(dtype=np.float64))
            self.refinement.learn_inputs(G, total, X, weights)
        self.mean = self.refinement.hidden

    def run(
        self,
        sizes: Iterator[int],
        random: np.random.Generator,
        max_passes: float,
        max_sweeps: int | None,
        tol: float,
        patience: int,
    ) -> str:
        """Sweep until there is a reason to end, which is given."""
        if not self.refinement.hidden:
            return self._solve_only()
        report, count = self.record.report, len(self.samples.X)
        chunks = _Chunks(self.samples, random)
        most_rows = max_passes * count + 0.5
        failures = small_steps = since_best = 0
        stopped, seen, rows, best_score = "", 0, None, -np.inf
        while not stopped:
            size = next(sizes)
            whole = size >= count
            if max_sweeps is None and whole:
                max_sweeps = max(FEWEST_SWEEPS, count // ROWS_PER_SWEEP)
            if report.iterations == max_sweeps:
                stopped = f"{report.iterations} sweeps"
                break
            if not whole and seen + size > most_rows and report.iterations:
                stopped = f"{max_passes:g} passes over the data"
                break
            try:
                with self.record.phase("start"):
                    rows = chunks.next(size) if not whole or rows is None else rows
                if whole and self.cross_validates and report.iterations == 0:
                    self.refinement.cross_validate(rows, self.samples.repetitions())
                loss = self.refinement.sweep(rows, again=whole)
            except (TooLargeError, np.linalg.LinAlgError) as error:
                if report.iterations == 0:
                    raise
                stopped = f"a sweep failed: {error}"
                break
            if not np.isfinite(loss):
                if report.iterations == 0:
                    raise TooLargeError("the first sweep gave no finite loss; scale X and Y")
                stopped = "the numbers of a sweep grew too large"
                break
            seen += size
            report.iterations += 1
            report.rows.append(size)
            report.loss.append(loss)
            self._average(whole)
            failures = failures + 1 if self.refinement.failed else 0
            small_steps = small_steps + 1 if whole and self._barely_fell(tol) else 0
            if failures == (1 + whole if whole else FAILURES):
                stopped = "no step lowers the loss"
            elif whole and loss < EXACT * self.mean_square:
                stopped = "the rows are fitted"
            elif small_steps == 3:
                stopped = f"the loss falls by less than tol = {tol:g}"
            looks = self.held is not None and (whole or report.iterations % VALIDATE_EVERY == 0)
            network = None
            if looks or self.record.has_callback:
                network = self._network(rows, whole)
            if looks and network is not None and self.held is not None:
                with self.record.phase("forward"):
                    score = self.held.score(network.decision(self.held.X))
                report.validation.append((report.iterations, score))
                since_best += 1
                if score > best_score:
                    best_score, since_best = score, 0
                    self.best, report.best = network, report.iterations
                if since_best == patience:
                    stopped = (
                        stopped or f"{patience} looks at the rows held out without a better network"
                    )
            if self.record.step(network):
                stopped = "the callback asked to stop"
        if best_score == -np.inf and rows is not None and report.iterations:
            self.best, report.best = self._network(rows, whole), report.iterations
        return stopped

    def _solve_only(self) -> str:
        """Solve a network that is nothing but an output layer."""
        rows, scale = self.samples.whole(), self.begin.scale_of(self.samples.X)
        with self.record.phase("gram"):
            G, C = gram(
                rows.X, rows.T, bias=self.begin.bias, scale=scale, sample_weight=rows.weights
            )
        T = self.refinement.scales(G, rows.X, rows.weights)
        output = self.refinement.solve_output_of(T.between(G), T.onto(C), rows)
        self.best = self._finished([], T.back(output.W), rows)
        report = self.record.report
        report.iterations = report.best = 1
        report.rows, report.loss = [len(rows.X)], [output.loss / rows.total_weight()]
        self.record.step(self.best if self.record.has_callback else None)
        return "there are no hidden layers"

    def _average(self, whole: bool) -> None:
        hidden = self.refinement.hidden
        if whole:
            self.mean = hidden
        else:
            pairs = zip(self.mean, hidden, strict=True)
            kept = max(LEAST_KEPT, 1 - 1 / (WINDOW * self.record.report.iterations))
            self.mean = [kept * mean + (1 - kept) * W for mean, W in pairs]

    def _barely_fell(self, tol: float) -> bool:
        *_, before, now = [np.inf, *self.record.report.loss]
        return before - now < tol * before

    def _network(self, rows: Rows, whole: bool) -> Network:
        """Give the network as it is: the mean of the hidden weights, the output layer solved for them."""
        known = self.refinement.known
        if not whole or known is None:
            known = self.refinement.forward(rows, self.mean)
        return self._finished(self.mean, known.output.W, rows)

    def _finished(self, hidden: Weights, output: NDArray[np.float64], rows: Rows) -> Network:
        network = self.begin.with_weights([*hidden, output])
        return calibrated(network, self.samples.labels is not None, rows, self.record)


def calibrated(network: Network, has_labels: bool, rows: Rows, record: Recorder) -> Network:
    """Give a network whose softmax outputs are probabilities, for what they are at the rows for trial."""
    if not has_labels or network.activations[-1].name != "softmax":
        return network
    few = rows._replace(trial=min(rows.trial, CALIBRATION_ROWS)).for_trial()
    with record.phase("forward"):
        *hidden, output = network.weights
        return network.with_weights([*hidden, output * _temperature(network.decision(few.X), few)])


class _Chunks:
    """Cuts rows into chunks, in a random order, and copies each into memory that the next one reuses."""

    def __init__(self, samples: Samples, random: np.random.Generator) -> None:
        self.samples = samples
        self.random = random
        self.order: NDArray[np.intp] = np.empty(0, np.intp)
        self.X: Array = np.empty((0, samples.X.shape[1]), samples.X.dtype)
        self.T: Array = np.empty((0, samples.targets.shape[1]), samples.targets.dtype)

    def next(self, size: int) -> Rows:
        samples = self.samples
        if size >= len(samples.X):
            return samples.whole()
        if len(self.order) < size:
            self.order = self.random.permutation(len(samples.X))
        chosen, self.order = self.order[:size], self.order[size:]
        trial = -(-size // TRIAL_SHARE)
        # Both parts are random; in order each is read faster.
        chosen = np.concatenate([np.sort(chosen[:trial]), np.sort(chosen[trial:])])
        if len(self.X) < size:
            self.X = np.empty((size, self.X.shape[1]), self.X.dtype)
            self.T = np.empty((size, self.T.shape[1]), self.T.dtype)
        X = np.take(samples.X, chosen, axis=0, out=self.X[:size], mode="clip")
        of_rows = chosen if samples.labels is None else samples.labels[chosen]
        T = np.take(samples.targets, of_rows, axis=0, out=self.T[:size], mode="clip")
        return Rows(X, T, None if samples.weights is None else samples.weights[chosen], trial)


def scaled_start(net: Network, samples: Samples, random: np.random.Generator) -> Weights:
    """Give the weights of a network, those of hidden layers such that every pre-activation has spread 1 over some rows.

    With a bias it also has a random mean within OFFSET of 0: of symmetric data and a mean of 0, tanh would give odd
    functions alone.
    """
    X, dtype = samples.X, float_of(samples.X)
    shares = np.full(len(X), 1 / len(X))
    if samples.weights is not None:
        shares = samples.weights / samples.weights.sum(dtype=np.float64)
    *hidden, output = net.weights
    scaled: Weights = []
    A = X
    for W, activation in zip(hidden, net.activations, strict=False):
        from_inputs = W if scaled else scaled_inputs(W, net.scale_of(X), net.bias)
        Z = linear(A, from_inputs.astype(dtype), bias=net.bias)
        mean = np.zeros(Z.shape[1])
        if net.bias:
            mean = np.einsum("i,ij->j", shares, Z)
            Z -= mean.astype(dtype)
        spread = np.sqrt(np.einsum("i,ij,ij->j", shares, Z, Z))
        varies = spread > 100 * np.finfo(dtype).eps * np.hypot(spread, mean)  # else it is rounding
        factor = 1 / np.where(varies, spread, 1.0)
        W = W * factor
        np.multiply(Z, factor.astype(dtype), out=Z)
        if net.bias:
            offset = random.uniform(-OFFSET, OFFSET, len(factor))
            W[-1] += offset - mean * factor
            Z += offset.astype(dtype)
        scaled.append(W)
        A = activation.forward(Z)
    return [*scaled, output]


def _temperature(outputs: Array, rows: Rows) -> float:
    """Give the factor of the outputs with which their softmax has the least cross-entropy, by Newton's method.

    Rows that are all classified rightly would make it infinite: it is kept below 10, where outputs that are as they
    should be, 1 and 0, are far apart.
    """
    outputs = outputs.astype(np.float64)
    right = np.take_along_axis(outputs, rows.T.argmax(axis=1)[:, np.newaxis], axis=1)
    outputs -= right
    weights = np.ones(len(outputs)) if rows.weights is None else rows.weights.astype(np.float64)
    factor = 5.0
    for _ in range(10):
        p = activations["softmax"].forward(factor * outputs)
        p *= outputs
        mean = p.sum(axis=1)
        p *= outputs
        slope, bend = weights @ mean, weights @ (p.sum(axis=1) - mean**2)
        if not bend > 0:
            break
        change = float(np.clip(slope / bend, factor - 10, factor / 2))
        factor -= change
        if abs(change) < 1e-2 * factor:
            break
    return factor


def first_chunk(net: Network) -> int:
    """Give how many rows the first sweeps see."""
    return max(FIRST_CHUNK, ROWS_PER_NEURON * net.layer_sizes[-2])


def _chunk_sizes(count: int, first: int, chunk_rows: int | None) -> Iterator[int]:
    """Give the rows of every sweep."""
    if chunk_rows is not None or count <= 2 * first:
        size = min(count, chunk_rows or count)
        while True:
            yield size
    for doubling in range(DOUBLINGS):
        for _ in range(SWEEPS_OF_A_SIZE):
            yield min(first << doubling, count // 2)
    while True:
        yield min(first << DOUBLINGS, count // 2)


def _some(count: int, random: np.random.Generator) -> NDArray[np.intp] | slice:
    """Choose rows to learn scales from: all, or some at random."""
    if count <= SAMPLE:
        return slice(None)
    return np.sort(random.choice(count, SAMPLE, replace=False, shuffle=False))


def _hold_out(
    samples: Samples, fraction: float, random: np.random.Generator
) -> tuple[Samples, Samples | None]:
    """Give the rows to train with and those that are held out."""
    if not isinstance(fraction, (int, float, np.integer, np.floating)) or not 0 <= fraction < 1:
        raise ValueError(f"validation_fraction is {fraction!r}; expected a number >= 0 and below 1")
    if fraction == 0:
        return samples, None
    held = max(1, round(fraction * len(samples.X)))
    if held >= len(samples.X):
        raise ValueError(
            f"validation_fraction is {fraction!r}, which leaves no row to train with of n_samples = {len(samples.X)}"
        )
    order = random.permutation(len(samples.X))
    return samples.take(np.sort(order[held:])), samples.take(np.sort(order[:held]))


def _checked(
    net: Network,
    X: ArrayLike,
    Y: ArrayLike,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
) -> tuple[Samples, Array | None]:
    """Give the training rows, and the label of each output where there are labels."""
    Y = np.asarray(Y)
    several = isinstance(net, Network) and (
        net.layer_sizes[-1] > 1 or net.activations[-1].name == "softmax"
    )
    classes: Array | None = None
    if several and (Y.ndim == 1 or (Y.ndim == 2 and Y.shape[1] == 1)):
        X, labels, classes, weights = checked_classification(net, X, Y, sample_weight, class_weight)
        targets = targets_of(classes, net.activations[-1])
        samples = Samples(X, targets.astype(float_of(X)), labels, weights)
    elif class_weight is not None:
        raise ValueError(f"class_weight is {class_weight!r}; expected None, Y holds no labels")
    else:
        X, Y, weights = checked_regression(net, X, Y, sample_weight)
        samples = Samples(X, net.activations[-1].inverse(Y), None, weights)
    if weights is None:
        return samples, classes
    if sample_weight is not None:
        total = float(np.sum(sample_weight, dtype=np.float64))
        samples = samples._replace(repetition=total / float(weights.sum(dtype=np.float64)))
    if not weights.all():
        samples = samples.take(np.flatnonzero(weights))
    return samples, classes


def targets_of(classes: Array, output: Activation) -> Array:
    """Give, in row k, what the outputs should be before their activation for class k."""
    if output.name == "softmax":  # its outputs are calibrated afterwards
        return np.eye(len(classes))
    return class_targets(len(classes), output, min(LABEL_FLOOR, 0.5 / len(classes)))


def _check_options(
    max_passes: float,
    max_sweeps: int | None,
    chunk_rows: int | None,
    output_eps: float | None,
    start: str,
    tol: float,
    patience: int,
) -> None:
    for name, number, least in (
        ("max_passes", max_passes, np.nextafter(0, 1)),
        ("output_eps", 0 if output_eps is None else output_eps, 0),
        ("tol", tol, 0),
    ):
        real = isinstance(number, (int, float, np.integer, np.floating))
        if not real or not number >= least or (name != "max_passes" and not np.isfinite(number)):
            expected = "a number above 0" if least else "a finite number >= 0"
            raise ValueError(f"{name} is {number!r}; expected {expected}")
    for name, count in (
        ("max_sweeps", max_sweeps),
        ("chunk_rows", chunk_rows),
        ("patience", patience),
    ):
        if count is None and name != "patience":
            continue
        if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{name} is {count!r}; expected a whole number >= 1")
    if start not in ("scaled", "network"):
        raise ValueError(f"start is {start!r}; expected 'scaled' or 'network'")
