"""`fit_refined`: refined sweeps over chunks of the rows, or over all of them, until a stopping rule gives a reason."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bpls_fast.kernels.backend import backend_of
from bpls_fast.network import Network
from bpls_fast.training.checks import (
    ClassWeight,
    check_choice,
    check_count,
    check_number,
    checked_samples,
)
from bpls_fast.training.context import Callback, FitContext
from bpls_fast.training.data import RowSource
from bpls_fast.training.refined.calibration import correction
from bpls_fast.training.refined.chunks import hold_out
from bpls_fast.training.refined.running import DEFAULT_PASSES, PHASES, Plan, RefinedFit
from bpls_fast.training.refined.selection import (
    FOLDS,
    Part,
    candidates,
    choose,
    folds,
    length_is_found,
)
from bpls_fast.training.refined.shared_inputs import SharedInputs
from bpls_fast.training.refined.sweeps import AUTO, check_loss, check_setting, given_setting
from bpls_fast.training.report import FitReport

__all__ = ["fit_refined"]


def fit_refined(
    net: Network,
    X: ArrayLike | RowSource,
    Y: ArrayLike,
    *,
    max_passes: float | None = None,
    max_sweeps: int | None = None,
    chunk_rows: int | None = None,
    loss: str = "squared",
    eps: float | None = None,
    output_eps: float | None = None,
    decay: float | None = None,
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
        Trained in place. It stays as it was if the call raises.
    X : (d, inputs) array of uint8, float32 or float64, or RowSource
        The data; a `RowSource` is read into memory first. Bytes are read as they are. Many columns are reduced to
        components: see docs/refined.md.
    Y : (d,) array of labels, or (d, outputs) array of numbers
        A vector holds labels if the network has several outputs, or softmax outputs.
    max_passes : float, optional
        The most passes over the data, where it is cut into chunks. By default 5, or with `loss="auto"` any number.
    max_sweeps : int, optional
        The most sweeps. By default as many as `max_passes` allows; where each sees all rows, one for every 100 rows,
        but at least 3. With `loss="auto"` their number is chosen, by default up to 192.
    chunk_rows : int, optional
        Rows that a sweep sees, whatever their weights. By default all, if there are at most 5000 (or 50 for every
        neuron of the last hidden layer); else 2500 at first (or 25 for every neuron), later twice as many.
    loss : {"squared", "cross_entropy", "auto"}
        What the sweeps minimize. The squared loss takes numbers or labels; its output layer is solved exactly. The
        cross-entropy takes labels and softmax outputs; it fits many classes, and its outputs are probabilities. "auto"
        chooses the loss, `eps`, `decay` and the number of sweeps on a quarter of the rows that is held out, and then
        trains on all rows; `report.trials` says what was tried. With fewer than 40 rows it is the squared loss.
    eps : float, optional
        The ridge of the first layer, relative to the mean of its Gram matrix's diagonal. With a larger ridge the
        network generalizes better and learns more slowly. By default 7 for the squared loss, where the hidden layers
        above have a tenth of it, and 0.1 for the cross-entropy, where all layers have the same.
    output_eps : float, optional
        The ridge of the output layer under the squared loss, relative in the same way. By default it is chosen by
        generalized cross-validation on the features of the start: the chosen one where every sweep sees all rows, a
        tenth of it over chunks of labels. Over chunks of regression targets it is 1e-6.
    decay : float, optional
        The weight decay under the cross-entropy: the mean loss includes decay / 2 times the sum of the squared weights,
        biases left out. By default 1e-4.
    start : {"scaled", "network"}
        "scaled" first shifts and scales the hidden weights so that every pre-activation has a mean near 0 and standard
        deviation 1 over the data (0.8 for softmax). "network" takes them as they are, to continue training.
    standardize : bool
        Whether the first layer's ridge is that of columns with mean 0 and mean square 1, so that it does not depend on
        their units and offsets.
    tol : float
        Where every sweep sees all rows, the fit ends after three consecutive sweeps that lower the loss by less than
        this share. With `loss="auto"` it has no effect.
    validation_fraction : float
        The share of the rows to hold out for validation. If it is not 0, the network with the best validation score is
        kept.
    patience : int
        The fit ends after so many validations without a better score.
    sample_weight : (d,) array, optional
        Weights >= 0 of the rows. A weight of 2 counts a row twice, also in the default number of sweeps and size of
        chunks. For these, rows count on average as at least one and at most ten.
    class_weight : "balanced" or mapping from labels to weights, optional
        Factors of the weights of the rows.
    seed : int
        The seed of the order of the rows.
    backend : {"auto", "cpu", "cuda"}
        Where the fit runs; "auto" is the GPU if X is there, else the CPU. With "cuda", X is moved to the GPU once, or
        in parts where it does not fit.
    verbose : int
        1 displays a progress bar, or lines where tqdm is not installed.
    callback : function of one FitReport, optional
        Called after every sweep, with the network as it would be returned in `report.network`, which costs a part of a
        sweep; returning True ends the fit. With `loss="auto"` it sees the last fit, on all rows.

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
    check_setting(loss, output_eps, decay)
    samples, classes = checked_samples(net, X, Y, sample_weight, class_weight)
    check_loss(loss, net, samples)
    if max_passes is not None:
        check_number(max_passes, "max_passes", above=0, finite=False)
    check_number(tol, "tol")
    for name, count in (("max_sweeps", max_sweeps), ("chunk_rows", chunk_rows)):
        if count is not None:
            check_count(count, name)
    check_count(patience, "patience")
    check_choice(start, "start", ("scaled", "network"))
    random = np.random.default_rng(seed)
    samples = samples.to_backend(backend)
    begin = net.with_weights(net.weights)
    begin.input_scale, begin.classes = net.scale_of(samples.X), classes
    passes = np.inf if loss == AUTO else DEFAULT_PASSES
    plan = Plan(
        max_passes=passes if max_passes is None else max_passes,
        max_sweeps=max_sweeps,
        chunk_rows=chunk_rows,
        start=start,
        standardize=standardize,
        tol=tol,
        patience=patience,
    )
    settings = candidates(begin, samples, loss, eps)
    if loss != AUTO:
        settings = [given_setting(loss, eps, output_eps, decay)]
    with FitContext(
        "refined sweeps",
        settings[-1].eps,
        backend=backend_of(samples.X),
        steps=max_sweeps,
        verbose=verbose,
        callback=callback,
        phases=PHASES,
    ) as context:
        with context.phase("start"):
            samples, held = hold_out(samples, validation_fraction, random)
        setting, corrected = settings[-1], None
        parts = folds(samples, FOLDS, random) if loss == AUTO else None
        inputs = SharedInputs(
            begin,
            samples,
            context,
            parts,
            standardize=standardize,
            expected=() if parts is None else (parts[0], parts[0][:0]),
            can_reduce=start == "scaled",
            many_sweeps=loss == AUTO,
            seed=seed,
        )
        if parts is not None:
            part = Part(begin, *inputs.without(parts[0]), seed)
            setting, found = choose(part, settings, plan, context)
            if found is not None:
                plan = length_is_found(plan, found.best_sweeps)._replace(max_passes=np.inf)
                if held is not None:
                    plan = plan._replace(patience=patience)
                if found.chunks is None and chunk_rows is None:
                    plan = plan._replace(chunk_rows=len(samples.X))  # all rows, as in its sweeps
                corrected = correction(begin, found.decision(part.held), part.held)
            del part
        samples, reduced = inputs.all_rows()
        if held is not None and reduced is not None:
            held = held._replace(X=reduced.components.rows(held.X, begin.scale_of(held.X)))
        fit = RefinedFit(begin, samples, held, setting, plan, context, random, reduced=reduced)
        report = context.finish(fit.run())
        best = fit.best if corrected is None else corrected.apply(fit.best)
    net.weights, net.input_scale, net.classes = best.weights, best.input_scale, classes
    return report
