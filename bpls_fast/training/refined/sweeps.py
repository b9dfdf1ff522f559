"""The losses by name: the sweep that minimizes each, its defaults, and where it starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpls_fast.network import Network
from bpls_fast.training.checks import check_choice, check_number
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Samples, Weights
from bpls_fast.training.refined.cross_entropy import CrossEntropySweep
from bpls_fast.training.refined.losses import LEAST_OUTPUT_EPS
from bpls_fast.training.refined.start import scaled_start
from bpls_fast.training.refined.sweep import RefinedSweep

__all__ = [
    "AUTO",
    "LOSSES",
    "Setting",
    "Sweep",
    "check_loss",
    "check_setting",
    "given_setting",
    "new_sweep",
    "start_weights",
]

Sweep = RefinedSweep | CrossEntropySweep

AUTO = "auto"
"""What is chosen: a loss, with its regularization, by rows that are held out (see `selection.py`); other parameters of
the estimators by the data, or by what goes with the rest."""

LOSSES = ("squared", "cross_entropy", AUTO)

DEFAULT_EPS = {"squared": 7.0, "cross_entropy": 0.1}
"""The ridge of the first layer."""

DEFAULT_DECAY = 1e-4
"""The weight decay of the cross-entropy."""


class Setting(NamedTuple):
    """What sweeps minimize, and their regularization; the fields are arguments of `fit_refined`."""

    loss: str
    eps: float
    output_eps: float | None = None
    decay: float | None = None
    activation: str | None = None  # of all hidden layers, where it is chosen, too


def check_setting(loss: str, output_eps: float | None, decay: float | None) -> None:
    """Refuse an unknown loss, and options that belong to another one."""
    check_choice(loss, "loss", LOSSES)
    for name, value, owner in (
        ("output_eps", output_eps, "squared"),
        ("decay", decay, "cross_entropy"),
    ):
        if value is not None:
            check_number(value, name)
            if loss != owner:
                raise ValueError(f"{name} is {value!r}; expected None with loss={loss!r}")


def given_setting(
    loss: str, eps: float | None, output_eps: float | None = None, decay: float | None = None
) -> Setting:
    """Return the setting of a loss that is not AUTO."""
    return Setting(loss, DEFAULT_EPS[loss] if eps is None else eps, output_eps, decay)


def check_loss(loss: str, net: Network, samples: Samples) -> None:
    """Refuse a cross-entropy of numbers, or of outputs that are not probabilities."""
    if loss != "cross_entropy":
        return
    output = net.activations[-1].name
    if output != "softmax":
        raise ValueError(f"loss is {loss!r} and the outputs are {output}; expected softmax outputs")
    if samples.labels is None:
        raise ValueError(f"loss is {loss!r} and Y holds numbers; expected a label for each row")


def new_sweep(setting: Setting, net: Network, context: FitContext, *, standardize: bool) -> Sweep:
    """Return the sweep of a setting."""
    if setting.loss == "squared":
        eps = LEAST_OUTPUT_EPS if setting.output_eps is None else setting.output_eps
        return RefinedSweep(net, context, output_eps=eps, standardize=standardize)
    decay = DEFAULT_DECAY if setting.decay is None else setting.decay
    return CrossEntropySweep(net, context, decay=decay, standardize=standardize)


def start_weights(
    loss: str, net: Network, samples: Samples, random: np.random.Generator
) -> Weights:
    """Return the weights that the sweeps of a loss start with, scaled to some rows."""
    *hidden, output = scaled_start(net, samples, random)
    if loss == "cross_entropy":
        output = np.zeros_like(output)  # all classes are equally likely
    return [*hidden, output]
