"""Refined sweeps over chunks of the rows: `fit_refined`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import column_sums, gram, linear, take_rows
from bpls_fast.kernels.activations import Activation, activations
from bpls_fast.kernels.backend import arrays_to_numpy, empty, on_device, to_backend, to_numpy
from bpls_fast.network.network import Network, scaled_inputs
from bpls_fast.training.data import (
    Array,
    ClassWeight,
    check_count,
    checked_classification,
    checked_regression,
    class_targets,
    float_of,
)
from bpls_fast.training.refined.components import Components, leading_components, variance
from bpls_fast.training.refined.sweep import LATER_RIDGE, Refinement, Rows, Weights
from bpls_fast.training.report import Callback, FitReport, Recorder, TooLargeError

__all__ = ["fit_refined"]

PHASES = ("start", "forward", "gram", "solve", "target", "step")

FIRST_CHUNK, SWEEPS_OF_A_SIZE, DOUBLINGS = 2500, 12, 1
"""Chunks begin small, when any rows show the way, and double after some sweeps."""

ROWS_PER_NEURON = 25
"""A first chunk has at least so many rows for each neuron of the last hidden layer: they determine the output layer."""

ROWS_PER_SWEEP, FEWEST_SWEEPS = 100, 3
"""Where each sweep sees all rows there is one for so many of them: fewer rows are learnt by heart in fewer sweeps."""

CALIBRATION_ROWS = 1000
"""At most so many rows are used to calibrate probabilities."""

TRIAL_SHARE = 4
"""Of a chunk, one row in so many is used to find and try the lengths of steps."""

SOFTMAX_SPREAD = 0.8
"""The standard deviation of pre-activations of softmax at the start; of other activations it is 1."""

OFFSET = 0.5
"""How far from 0 the mean of a pre-activation is at the start, at most, in standard deviations."""

SAMPLE = 5_000
"""At most so many rows are used to scale the start, and for the Gram matrix of the inputs."""

MANY_SWEEPS = 10_000
"""Fits of so many sweeps have time for all inputs."""

MOST_BYTES = 1 << 30
"""So much memory at most is taken for components of the rows."""

LEAST_VARIANCE = 0.9
"""Components keep at least this share of the variance of the start's pre-activations: else they leave out too much."""

FINDING = 0.05
"""Finding components may take this share of the multiply-adds of the sweeps' products with all inputs."""

LEAST_KEPT, WINDOW = 0.8, 0.25
"""How much of the mean of the weights a sweep over a chunk keeps: at least so much, and such that the mean reaches back
over this share of the sweeps."""

FAILURES, FAILURES_OF_ALL = 5, 2
"""So many sweeps in a row without a step that lowers the loss end a fit: over chunks, and over all rows."""

SMALL_STEPS = 3
"""So do so many sweeps over all rows that barely lower it."""

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
    backend: str = "auto",
    verbose: int = 0,
    callback: Callback | None = None,
) -> FitReport:
    """Train a network by refined sweeps: closed-form steps of the hidden layers under an output layer that is solved.

    Parameters
    ----------
    net : Network
        Trained in place. If the call raises it is left as it was.
    X : (d, inputs) array of uint8, float32 or float64
        The data; bytes are read as they are. Of many columns over many rows, components are kept: see docs/refined.md.
    Y : (d,) array of labels, or (d, outputs) array of numbers
        A vector is labels if the network has more than one output, or softmax for its activation.
    max_passes : float
        Passes over the data at most, where it is cut into chunks.
    max_sweeps : int, optional
        Sweeps at most. By default as many as `max_passes` allows; where each sees all rows, one for every 100 of them,
        3 at least.
    chunk_rows : int, optional
        Rows that a sweep sees. By default all, up to 5000 (or 50 for every neuron of the last hidden layer); of more,
        2500 at first (or 25 for every neuron), then twice as many.
    eps : float
        The ridge of the first layer, relative to the mean of its Gram's diagonal; the hidden layers above have a tenth
        of it. The larger, the better the network generalizes, and the slower it learns.
    output_eps : float, optional
        The ridge of the output layer, relative in the same way. By default, where every sweep sees all rows, the one
        that generalized cross-validation prefers for the start; over chunks, of labels a tenth of that, but not less
        than rounding asks for, else 1e-6.
    start : {"scaled", "network"}
        Whether the hidden weights are first shifted and scaled so that every pre-activation has a mean near 0 and
        standard deviation 1 over the data (0.8 of softmax), or taken as they are, to go on with a network that was
        trained before.
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
    backend : {"auto", "cpu", "cuda"}
        Where the fit runs: "auto" on the GPU if X is there, else on the CPU. With "cuda" X is moved to the GPU once, or
        part by part where it does not fit.
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
    samples = samples.to_backend(backend)
    begin = net.with_weights(net.weights)
    begin.input_scale, begin.classes = net.scale_of(samples.X), classes
    with Recorder(
        "refined sweeps",
        eps,
        steps=max_sweeps,
        verbose=verbose,
        callback=callback,
        phases=PHASES,
    ) as record:
        record.report.backend = "cuda" if on_device(samples.X) else "cpu"
        with record.phase("start"):
            samples, held = _hold_out(samples, validation_fraction, random)
            sample = samples.take(_some(len(samples.X), random))
            if start == "scaled":
                begin.weights = scaled_start(begin, sample, random)
        limits = _Limits(max_passes, max_sweeps, tol, patience)
        sizes, planned = (
            _chunk_sizes(len(samples.X), first_chunk(net), chunk_rows) for _ in range(2)
        )
        inputs = _Inputs(begin, sample, record)
        del sample
        if planned is not None and start == "scaled" and not standardize:
            plan = limits.plan(planned, len(samples.X))
            samples, held = inputs.reduced(plan, samples, held, random)
        chunks = None if sizes is None else _Chunks(samples, sizes, random)
        fit = _Fit(inputs, record, samples, held, chunks, output_eps, standardize)
        report = record.finish(fit.run(limits))
        best = inputs.whole(fit.best)
    net.weights, net.input_scale, net.classes = best.weights, best.input_scale, classes
    return report


class Samples(NamedTuple):
    """Rows. Of labels, `targets` has a row for each class and `labels` says which; of numbers, one for each row."""

    X: Array
    targets: Array
    labels: NDArray[np.intp] | None
    weights: Array | None
    repetition: float = 1.0  # of rows, that a weight of 1 stands for on average

    def total_weight(self) -> float:
        """Give the number of rows, or the sum of their weights."""
        return len(self.X) if self.weights is None else float(self.weights.sum(dtype=np.float64))

    def repetitions(self) -> float:
        """Give how many rows there are if weights are repetitions, and never fewer than there are."""
        return max(len(self.X), self.repetition * self.total_weight())

    def mean_square(self) -> float:
        """Give the mean of |T|², of labels over the classes."""
        return float(column_sums(self.targets, self.targets).sum()) / len(self.targets)

    def take(self, chosen: NDArray[np.intp] | slice) -> Samples:
        """Give some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        if self.labels is None:
            return Samples(self.X[chosen], self.targets[chosen], None, weights, self.repetition)
        return Samples(self.X[chosen], self.targets, self.labels[chosen], weights, self.repetition)

    def to_backend(self, backend: str) -> Samples:
        """Give the rows where a fit on this backend needs them; labels stay on the host."""
        X, targets, weights = to_backend(backend, self.X, self.targets, self.weights)
        return self._replace(X=X, targets=targets, weights=weights)

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
        outputs, weights = (
            to_numpy(outputs),
            None if self.weights is None else to_numpy(self.weights),
        )
        if self.labels is not None:
            return float(np.average(outputs.argmax(axis=1) == self.labels, weights=weights))
        T = to_numpy(self.targets).astype(np.float64)
        mean = np.average(T, axis=0, weights=weights)
        spread = np.average((T - mean) ** 2, axis=0, weights=weights)
        error = np.average((T - outputs) ** 2, axis=0, weights=weights)
        return float(np.mean(1 - error / np.where(spread > 0, spread, 1)))


class _Limits(NamedTuple):
    """What ends a fit, besides having nothing left to do; as in `fit_refined`."""

    max_passes: float
    max_sweeps: int | None
    tol: float
    patience: int

    def reached(self, sweeps: int, seen: int, count: int) -> str:
        """Say which limit another sweep over a chunk would exceed, after which `seen` rows are seen, of `count`."""
        if sweeps == self.max_sweeps:
            return f"{sweeps} sweeps"
        if sweeps and seen > self.max_passes * count + 0.5:
            return f"{self.max_passes:g} passes over the data"
        return ""

    def plan(self, sizes: Iterator[int], count: int) -> tuple[int, float] | None:
        """Give the sweeps and the passes over the data that are allowed, or None if there are MANY_SWEEPS."""
        sweeps = seen = 0
        for size in islice(sizes, MANY_SWEEPS):
            if self.reached(sweeps, seen + size, count):
                return sweeps, seen / count
            sweeps, seen = sweeps + 1, seen + size
        return None


class _Inputs:
    """What enters the network that the sweeps see, `net`: all inputs, or the components that they have time to learn.

    `G` is the Gram matrix of a sample of it, whose weight is `total`; `ridge` is the ridge where that is no multiple of
    the identity.
    """

    def __init__(self, net: Network, sample: Samples, record: Recorder) -> None:
        self.net = self._outer = net
        self.total = sample.total_weight()
        self.G: Array = np.empty((0, 0))
        self.ridge: Array | None = None
        self._record = record
        self._components: Components | None = None
        if len(net.layer_sizes) > 2:
            with record.phase("gram"):
                X, scale = sample.X, net.scale_of(sample.X)
                self.G = to_numpy(gram(X, bias=net.bias, scale=scale, sample_weight=sample.weights))

    def reduced(
        self,
        plan: tuple[int, float] | None,
        samples: Samples,
        held: Samples | None,
        random: np.random.Generator,
    ) -> tuple[Samples, Samples | None]:
        """Go over to components if, for so many sweeps and passes, that saves time; give the rows as they enter."""
        count, net, G = len(samples.X) + (len(held.X) if held else 0), self.net, self.G
        if plan is None or not G.size:
            return samples, held
        (sweeps, passes), (inputs, neurons) = plan, net.layer_sizes[:2]
        # Passes multiply rows with as many columns as there are neurons, twice and for the trial; components are a
        # product with as many columns as there are of them, once.
        columns = passes * neurons * (2 + 1 / TRIAL_SHARE)
        most = min(inputs // 2, int(columns * inputs / (columns + inputs)))
        most = min(most, MOST_BYTES // (count * np.dtype(float_of(samples.X)).itemsize))
        if inputs * (inputs / 6 + 2 * most) + 2 * most**2 > FINDING * columns * count:
            return samples, held
        with self._record.phase("start"):
            ridge = self._record.report.eps * float(G.diagonal().mean())
            dtype = samples.X.dtype
            found = leading_components(G, net.bias, ridge, sweeps, most, random, dtype)
            if found is None:
                return samples, held
            try:
                inner, small_G = found.network(net, G)
            except np.linalg.LinAlgError:  # of inputs far from 0 little but rounding is left
                return samples, held
            left = variance(small_G, inner.weights[0], net.bias)
            if not left > LEAST_VARIANCE * max(variance(G, net.weights[0], net.bias), 0.0):
                return samples, held
            try:
                scale = net.scale_of(samples.X)
                small = samples._replace(X=found.rows(samples.X, scale))
                small_held = held and held._replace(X=found.rows(held.X, scale))
            except MemoryError:
                return samples, held
            self._components, self.net = found, inner
            self.G, self.ridge = small_G, ridge * gram(found.M)
            return small, small_held

    def whole(self, network: Network) -> Network:
        """Give a network that the sweeps left as one on all inputs."""
        if self._components is None:
            return network
        return self._components.whole(network, self._outer)


class _Fit:
    """One fit: the sweeps, the mean of their weights, the best network so far.

    Every sweep sees all rows if `chunks` is None.
    """

    def __init__(
        self,
        inputs: _Inputs,
        record: Recorder,
        samples: Samples,
        held: Samples | None,
        chunks: _Chunks | None,
        output_eps: float | None,
        standardize: bool,
    ) -> None:
        self.inputs = inputs
        self.begin = begin = inputs.net
        self.record = record
        self.samples = samples
        self.held = held
        self.chunks = chunks
        self.cross_validates = output_eps is None and (chunks is None or samples.labels is not None)
        self.refinement = Refinement(
            begin,
            record,
            output_eps=1e-6 if output_eps is None else output_eps,
            standardize=standardize,
        )
        self.mean = self.refinement.hidden
        self.best = begin
        self._rows = samples.take(slice(0)).whole()  # of the latest sweep
        self._exact = EXACT * samples.mean_square()
        self._failures = self._small_steps = self._since_best = 0
        self._best_score = -np.inf
        if self.refinement.hidden:
            self.refinement.learn_inputs(
                inputs.G, inputs.total, samples.X, samples.weights, inputs.ridge
            )

    def run(self, limits: _Limits) -> str:
        """Sweep until there is a reason to end, which is given."""
        if not self.refinement.hidden:
            return self._solve_only()
        report, stopped = self.record.report, self._reached(limits)
        while not stopped:
            try:
                self._sweep()
            except (TooLargeError, np.linalg.LinAlgError) as error:
                if report.iterations == 0:
                    raise
                stopped = f"a sweep failed: {error}"
                break
            stopped = self._stagnation(limits.tol)
            is_due = self._is_due()
            network = self._network() if is_due or self.record.has_callback else None
            if is_due and network and self._look(network) == limits.patience:
                looks = f"{limits.patience} looks at the rows held out"
                stopped = stopped or f"{looks} without a better network"
            shown = self.inputs.whole(network) if network and self.record.has_callback else None
            if self.record.step(shown):
                stopped = "the callback asked to stop"
            stopped = stopped or self._reached(limits)
        if not self._is_due():
            self._look(self._network())
        return stopped

    def _reached(self, limits: _Limits) -> str:
        """Say which limit the next sweep would exceed, if one."""
        report, count = self.record.report, len(self.samples.X)
        if self.chunks is not None:
            return limits.reached(report.iterations, sum(report.rows) + self.chunks.size, count)
        max_sweeps = limits.max_sweeps or max(FEWEST_SWEEPS, count // ROWS_PER_SWEEP)
        return f"{max_sweeps} sweeps" if report.iterations == max_sweeps else ""

    def _sweep(self) -> None:
        report = self.record.report
        with self.record.phase("start"):
            if self.chunks is not None:
                self._rows = self.chunks.next()
            elif report.iterations == 0:
                self._rows = self.samples.whole()
        known = self.chunks is None
        if self.cross_validates and report.iterations == 0:
            repetitions = self.samples.repetitions() * len(self._rows.X) / len(self.samples.X)
            share = LATER_RIDGE if self.chunks else 1.0
            self.refinement.cross_validate(self._rows, repetitions, share)
            known = True
        loss = self.refinement.sweep(self._rows, again=known)
        if not np.isfinite(loss):
            raise TooLargeError("the numbers of a sweep grew too large; scale X and Y")
        report.iterations += 1
        report.rows.append(len(self._rows.X))
        report.loss.append(loss)
        kept = 0.0
        if self.chunks is not None:
            kept = max(LEAST_KEPT, 1 - 1 / (WINDOW * report.iterations))
        self.mean = averaged(self.mean, self.refinement.hidden, kept)

    def _stagnation(self, tol: float) -> str:
        """Say why more sweeps would be of no use, if so."""
        self._failures = self._failures + 1 if self.refinement.failed else 0
        if self.chunks is not None:
            return "no step lowers the loss" if self._failures == FAILURES else ""
        *_, before, loss = [np.inf, *self.record.report.loss]
        self._small_steps = self._small_steps + 1 if before - loss < tol * before else 0
        if self._failures == FAILURES_OF_ALL:
            return "no step lowers the loss"
        if loss < self._exact:
            return "the rows are fitted"
        if self._small_steps == SMALL_STEPS:
            return f"the loss falls by less than tol = {tol:g}"
        return ""

    def _is_due(self) -> bool:
        """Give whether this sweep is followed by a look at the rows that are held out."""
        turn = self.chunks is None or self.record.report.iterations % VALIDATE_EVERY == 0
        return self.held is not None and turn

    def _look(self, network: Network) -> int:
        """Keep a network if none was better on the rows held out; give how many looks ago that one was."""
        report = self.record.report
        self._since_best += 1
        if self.held is not None:
            with self.record.phase("forward"):
                score = self.held.score(network.decision(self.held.X))
            report.validation.append((report.iterations, score))
            if score <= self._best_score:
                return self._since_best
            self._best_score = score
        self.best, report.best, self._since_best = network, report.iterations, 0
        return 0

    def _solve_only(self) -> str:
        """Solve a network that is nothing but an output layer."""
        rows, scale = self.samples.whole(), self.begin.scale_of(self.samples.X)
        with self.record.phase("gram"):
            G, C = arrays_to_numpy(
                gram(rows.X, rows.T, bias=self.begin.bias, scale=scale, sample_weight=rows.weights)
            )
        output = self.refinement.solve_on_inputs(G, C, rows)
        report = self.record.report
        report.iterations = 1
        report.rows, report.loss = [len(rows.X)], [output.loss / rows.total_weight()]
        self._look(self._finished([], output.W, rows))
        self.record.step(self.best if self.record.has_callback else None)
        return "there are no hidden layers"

    def _network(self) -> Network:
        """Give the network as it is: the mean of the hidden weights, the output layer solved for them."""
        known, rows = self.refinement.known, self._rows
        if self.chunks is not None or known is None:
            known = self.refinement.forward(rows, self.mean)
        return self._finished(self.mean, known.output.W, rows)

    def _finished(self, hidden: Weights, output: NDArray[np.float64], rows: Rows) -> Network:
        network = self.begin.with_weights([*hidden, output])
        return calibrated(network, self.samples.labels is not None, rows, self.record)


def averaged(mean: Weights, latest: Weights, kept: float) -> Weights:
    """Give a mean of weights that keeps a share of the one before."""
    pairs = zip(mean, latest, strict=True)
    return [kept * earlier + (1 - kept) * later for earlier, later in pairs] if kept else latest


def calibrated(network: Network, has_labels: bool, rows: Rows, record: Recorder) -> Network:
    """Give a network whose softmax outputs are probabilities, for what they are at the rows for trial."""
    if not has_labels or network.activations[-1].name != "softmax":
        return network
    few = rows._replace(trial=min(rows.trial, CALIBRATION_ROWS)).for_trial()
    with record.phase("forward"):
        *hidden, output = network.weights
        return network.with_weights([*hidden, output * _temperature(network.decision(few.X), few)])


class _Chunks:
    """Cuts rows into chunks, in a random order, and copies each into memory that the next one reuses.

    `size` is how many rows the next one has.
    """

    def __init__(self, samples: Samples, sizes: Iterator[int], random: np.random.Generator) -> None:
        self.samples = samples
        self.sizes = sizes
        self.size = next(sizes)
        self.random = random
        self.order: NDArray[np.intp] = np.empty(0, np.intp)
        self.room = 0

    def next(self) -> Rows:
        samples, size = self.samples, self.size
        self.size = next(self.sizes)
        if len(self.order) < size:
            self.order = self.random.permutation(len(samples.X))
        chosen, self.order = self.order[:size], self.order[size:]
        trial = -(-size // TRIAL_SHARE)
        # Both parts are random; in order each is read faster.
        chosen = np.concatenate([np.sort(chosen[:trial]), np.sort(chosen[trial:])])
        if self.room < size:
            backend = "cuda" if on_device(samples.X) else "cpu"
            self.X, self.T = (
                empty((size, values.shape[1]), values.dtype, backend)
                for values in (samples.X, samples.targets)
            )
            self.room = size
        X = take_rows(samples.X, chosen, self.X[:size])
        of_rows = chosen if samples.labels is None else samples.labels[chosen]
        T = take_rows(samples.targets, of_rows, self.T[:size])
        return Rows(X, T, None if samples.weights is None else samples.weights[chosen], trial)


def scaled_start(net: Network, samples: Samples, random: np.random.Generator) -> Weights:
    """Give the weights of a network, those of hidden layers scaled: over some rows their pre-activations spread alike.

    With a bias they also have random means, within OFFSET spreads of 0: of symmetric data and a mean of 0, tanh would
    give odd functions alone.
    """
    X, dtype = samples.X, float_of(samples.X)
    shares = np.full(len(X), 1 / len(X))
    if samples.weights is not None:
        shares = to_numpy(samples.weights) / samples.weights.sum(dtype=np.float64)
    *hidden, output = net.weights
    scaled: Weights = []
    A = X
    for W, activation in zip(hidden, net.activations, strict=False):
        from_inputs = W if scaled else scaled_inputs(W, net.scale_of(X), net.bias)
        Z = linear(A, from_inputs.astype(dtype), bias=net.bias)
        mean = np.zeros(Z.shape[1])
        if net.bias:
            mean = column_sums(Z, None, shares)
            Z -= mean.astype(dtype)
        spread = np.sqrt(column_sums(Z, Z, shares))
        varies = spread > 100 * np.finfo(dtype).eps * np.hypot(spread, mean)  # else it is rounding
        size = SOFTMAX_SPREAD if activation.name == "softmax" else 1.0
        factor = size / np.where(varies, spread, 1.0)
        W = W * factor
        np.multiply(Z, factor.astype(dtype), out=Z)
        if net.bias:
            offset = size * random.uniform(-OFFSET, OFFSET, len(factor))
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
    outputs = to_numpy(outputs).astype(np.float64)
    right = np.take_along_axis(outputs, to_numpy(rows.T).argmax(axis=1)[:, np.newaxis], axis=1)
    outputs -= right
    weights = np.ones(len(outputs))
    if rows.weights is not None:
        weights = to_numpy(rows.weights).astype(np.float64)
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


def _chunk_sizes(count: int, first: int, chunk_rows: int | None) -> Iterator[int] | None:
    """Give the rows of every sweep, or None where each sees all."""
    if chunk_rows is not None:
        return repeat(chunk_rows) if chunk_rows < count else None
    if count <= 2 * first:
        return None
    sizes = [min(first << doubling, count // 2) for doubling in range(DOUBLINGS + 1)]
    return chain(*([size] * SWEEPS_OF_A_SIZE for size in sizes[:-1]), repeat(sizes[-1]))


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
    given = to_numpy(Y)
    several = isinstance(net, Network) and (
        net.layer_sizes[-1] > 1 or net.activations[-1].name == "softmax"
    )
    classes: Array | None = None
    if several and (given.ndim == 1 or (given.ndim == 2 and given.shape[1] == 1)):
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
        total = float(np.sum(to_numpy(sample_weight), dtype=np.float64))
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
    for name, count in (("max_sweeps", max_sweeps), ("chunk_rows", chunk_rows)):
        if count is not None:
            check_count(count, name)
    check_count(patience, "patience")
    if start not in ("scaled", "network"):
        raise ValueError(f"start is {start!r}; expected 'scaled' or 'network'")
