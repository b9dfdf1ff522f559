"""The training methods that the estimators and the command line offer.

A new method needs its own module and an entry in `METHODS`: the values of the estimators' parameter `method`, the
choices of `bpls-fast train --method` and the options that belong to one method alone all follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bpls_fast.network import Network
from bpls_fast.training.bpls.algorithm1 import fit_injective
from bpls_fast.training.bpls.algorithm2 import DEFAULT_MAX_ITER, fit_classifier
from bpls_fast.training.bpls.backward_sweep import CHOICES, TARGETS
from bpls_fast.training.bpls.default_ridge import cross_validated_eps
from bpls_fast.training.checks import ClassWeight, class_weights
from bpls_fast.training.data import Array, Samples
from bpls_fast.training.initial_network import Start
from bpls_fast.training.refined.committee import Committee, fit_committee
from bpls_fast.training.refined.fit import fit_refined
from bpls_fast.training.refined.running import DEFAULT_PASSES
from bpls_fast.training.refined.selection import FEWEST_ROWS
from bpls_fast.training.refined.stream import Stream
from bpls_fast.training.refined.sweeps import AUTO, LOSSES
from bpls_fast.training.report import FitReport

__all__ = ["DEFAULT_METHOD", "METHODS", "Method", "Option", "Requirement", "Trained"]

Parameters = Mapping[str, Any]
"""An estimator's parameters by name; None asks for the default of the method."""


class Trained(NamedTuple):
    """A trained network, the report on its training, and the committee that it is, if it is one."""

    network: Network
    report: FitReport
    committee: Committee | None = None


Trainer = Callable[[Start, Array, Array | None, Parameters], Trained]
"""Trains the networks of a start on targets or labels and the weights of the rows."""

TRIED_ACTIVATIONS = ("relu", "tanh")
"""What a committee for numbers chooses from."""

PAPER_CLASSIFIER_EPS = 1e-5
"""The ridge of the paper's classifier where `eps` is None."""


class Requirement(NamedTuple):
    """An option that must have a certain value for another one to have an effect."""

    flag: str
    value: str
    otherwise: str
    """What is wrong with any other value, for the error message."""


@dataclass(frozen=True)
class Option:
    """An option that a method adds to `bpls-fast train`."""

    flag: str
    argument: str
    """The argument of the fit function that it sets."""
    values: type[bool] | type[int] | type[float] | tuple[str, ...]
    """What it takes: nothing (bool), a whole number >= 1 (int), a number above 0 (float), or one of some words."""
    help: str
    requires: Requirement | None = None


@dataclass(frozen=True)
class Method:
    """A way to train a network.

    Attributes
    ----------
    name : str
        The value of `method` in the estimators and of `--method` on the command line.
    title : str
        What it is, in a few words.
    fit_labels : function
        The public function that trains a network on rows and labels, with its own defaults.
    max_iter : str
        The argument of `fit_labels` that limits the sweeps.
    default_max_iter : str
        Its default on the command line, in words.
    train_classifier, train_regressor : function
        Train for an estimator. Parameters that the method has no use for are ignored.
    open_stream : function
        Return the stream that `partial_fit` adds rows to.
    can_continue : bool
        Whether `warm_start=True` is possible.
    can_join : bool
        Whether it trains committees, `n_networks > 1`.
    default_activation : mapping from output activations to names
        The hidden activation of an estimator that does not name one.
    options : tuple of Option
        What it adds to `bpls-fast train`.
    """

    name: str
    title: str
    fit_labels: Callable[..., FitReport]
    max_iter: str
    default_max_iter: str
    train_classifier: Trainer
    train_regressor: Trainer
    open_stream: Callable[[Start, Parameters], Stream]
    can_continue: bool
    can_join: bool
    default_activation: Mapping[str, str]
    options: tuple[Option, ...]


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


def _shared(start: Start, weights: Array | None, parameters: Parameters) -> dict[str, Any]:
    """Return the arguments that every fit function has."""
    return {
        "standardize": start.standardize,
        "sample_weight": weights,
        "backend": parameters["backend"],
        "verbose": parameters["verbose"],
    }


def _train_refined(
    start: Start, y: Array, weights: Array | None, parameters: Parameters
) -> Trained:
    loss = parameters.get("loss", "squared")
    class_weight = parameters.get("class_weight")
    if start.others and (
        parameters["n_networks"] != AUTO or _has_rows_enough(y, weights, class_weight)
    ):
        if parameters["early_stopping"]:
            raise ValueError("early_stopping is True; expected False with n_networks > 1")
        committee = fit_committee(
            [start.net, *start.others],
            start.X,
            y,
            loss=loss,
            eps=parameters["eps"],
            max_passes=_given(parameters["max_passes"], np.inf),
            max_sweeps=parameters["max_iter"],
            activations=_activations_to_try(start.net, parameters),
            class_weight=class_weight,
            seed=start.seed,
            **_shared(start, weights, parameters),
        )
        return Trained(committee.network, committee.report, committee)
    held_out = 0.0
    if parameters["early_stopping"]:
        held_out = parameters["validation_fraction"]
        if not held_out:
            raise ValueError(
                f"validation_fraction is {held_out!r}; expected a number above 0 and below 1"
            )
    report = fit_refined(
        start.net,
        start.X,
        y,
        max_passes=parameters["max_passes"],
        max_sweeps=parameters["max_iter"],
        loss=loss,
        eps=parameters["eps"],
        start="network" if start.is_trained else "scaled",
        validation_fraction=held_out,
        patience=parameters["n_iter_no_change"],
        class_weight=class_weight,
        seed=start.seed,
        **_shared(start, weights, parameters),
    )
    return Trained(start.net, report)


def _has_rows_enough(y: Array, weights: Array | None, class_weight: ClassWeight) -> bool:
    """Return whether there are enough rows for several networks; those of weight 0 do not count."""
    weight = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    if isinstance(class_weight, Mapping):
        classes, index = np.unique(y, return_inverse=True)
        weight = weight * class_weights(class_weight, classes, index, np.ones(len(classes)))[index]
    weight = weight[weight > 0]
    return Samples(weight, weight, None, weight).planned_rows() >= FEWEST_ROWS


def _activations_to_try(net: Network, parameters: Parameters) -> tuple[str, ...]:
    """Return the activations that a committee chooses from; none where it has no choice."""
    is_chosen = isinstance(parameters["activation"], str) and parameters["activation"] == AUTO
    return TRIED_ACTIVATIONS if is_chosen and net.activations[-1].name != "softmax" else ()


def _open_refined_stream(start: Start, parameters: Parameters) -> Stream:
    return Stream(
        start.net,
        start="network" if start.is_trained else "scaled",
        loss=parameters.get("loss", "squared"),
        eps=parameters["eps"],
        forgetting=parameters["forgetting"],
        standardize=start.standardize,
        seed=start.seed,
    )


def _train_algorithm2(
    start: Start, labels: Array, weights: Array | None, parameters: Parameters
) -> Trained:
    report = fit_classifier(
        start.net,
        start.X,
        labels,
        max_iter=_given(parameters["max_iter"], DEFAULT_MAX_ITER),
        eps=_given(parameters["eps"], PAPER_CLASSIFIER_EPS),
        class_weight=parameters["class_weight"],
        **_targets(parameters),
        **_shared(start, weights, parameters),
    )
    return Trained(start.net, report)


def _train_algorithm1(
    start: Start, Y: Array, weights: Array | None, parameters: Parameters
) -> Trained:
    eps = parameters["eps"]
    report = fit_injective(
        start.net,
        start.X,
        Y,
        eps=cross_validated_eps(start, Y, weights) if eps is None else eps,
        safeguard=parameters["safeguard"],
        **_targets(parameters),
        **_shared(start, weights, parameters),
    )
    return Trained(start.net, report)


def _targets(parameters: Parameters) -> dict[str, Any]:
    return {name: parameters[name] for name in ("target", "choose_output", "margin")}


REFINED = Method(
    name="refined",
    title="refined sweeps",
    fit_labels=fit_refined,
    max_iter="max_sweeps",
    default_max_iter="as many as --passes allows",
    train_classifier=_train_refined,
    train_regressor=_train_refined,
    open_stream=_open_refined_stream,
    can_continue=True,
    can_join=True,
    default_activation={"softmax": "tanh", "identity": "tanh"},
    options=(
        Option(
            "--passes",
            "max_passes",
            float,
            f"passes over the data at most; {DEFAULT_PASSES:g} by default",
        ),
        Option(
            "--loss", "loss", LOSSES, "what the sweeps minimize; squared by default, auto chooses"
        ),
    ),
)

PAPER = Method(
    name="paper",
    title="the paper's Algorithm 2",
    fit_labels=fit_classifier,
    max_iter="max_iter",
    default_max_iter=str(DEFAULT_MAX_ITER),
    train_classifier=_train_algorithm2,
    train_regressor=_train_algorithm1,
    open_stream=_open_refined_stream,
    can_continue=False,
    can_join=False,
    default_activation={"softmax": "softmax", "identity": "tanh"},
    options=(
        Option(
            "--full-sweeps",
            "full_sweeps",
            int,
            "sweeps over all rows; 3 by default, the paper has 1",
        ),
        Option(
            "--resolve",
            "resolve",
            bool,
            "solve each layer except the first again on its updated matrix, as the paper does",
        ),
        Option(
            "--target",
            "target",
            TARGETS,
            "the target of hidden layers: from all outputs at once (joint, the default), or from one by the paper's "
            "formula",
        ),
        Option(
            "--choose-output",
            "choose_output",
            CHOICES,
            "the output that per_output takes; mean by default",
            Requirement("--target", "per_output", "--target is joint, which takes all outputs"),
        ),
    ),
)

METHODS: Mapping[str, Method] = {method.name: method for method in (REFINED, PAPER)}

DEFAULT_METHOD = REFINED.name
