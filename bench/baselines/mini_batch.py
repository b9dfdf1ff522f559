"""Gradient methods as an expert runs them: PyTorch, fused, mini-batches, every batch size and rate of a grid.

The whole set is one float32 tensor between 0 and 1, and making it is not timed. Every epoch draws an order and gathers
its batches by `index_select`. A few steps of another network come first to warm up. All methods start from the same
weights, PyTorch's default with seed 0, and see the rows in the same order.
"""

import functools
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bpls_fast.experiments import gradient

from .. import SMALL
from ..cases.networks import Setting, Tensors
from ..measure.libraries import PAUSE_SECONDS, gradients_allowed, torch

WARM_UP_STEPS = 20


class Config(NamedTuple):
    """A gradient method, its batch size and its rate."""

    batch: int
    rate: float
    method: str = "Adam"

    @property
    def text(self) -> str:
        return f"batch {self.batch}, rate {self.rate:g}"


def grid(method: str, batches: Sequence[int], rates: Sequence[float]) -> list[Config]:
    return [Config(batch, rate, method) for batch, rate in itertools.product(batches, rates)]


GRIDS = {
    "full": grid("Adam", (128, 256, 512, 1024), (1e-3, 3e-3, 1e-2, 3e-2)),
    "small": grid("Adam", (512,), (1e-2,)),
}
"""The grids of Adam, which gets the largest."""

OTHER_RATES = {
    "relu": {"NAG": (3e-2, 1e-1, 3e-1), "SGD": (1e-1, 3e-1, 1.0), "AdaGrad": (1e-2, 3e-2, 1e-1)},
    "softmax": {"NAG": (0.3, 1.0, 2.0), "SGD": (3.0, 10.0, 20.0), "AdaGrad": (1e-2, 3e-2, 1e-1)},
}
"""Rates of the other methods at batch 128, by activation: softmax layers have small gradients."""
OTHERS = tuple(OTHER_RATES["relu"])


def other_grid(method: str, activation: str) -> list[Config]:
    rates = OTHER_RATES[activation][method]
    return grid(method, (128,), rates[1:2] if SMALL else rates)


@dataclass(frozen=True)
class Run:
    """One run: the accuracy after each epoch, and its seconds."""

    config: Config
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def epoch_seconds(runs: Sequence[Run]) -> dict[int, list[float]]:
    """Return the seconds of all epochs by batch size: the rate does not change the work."""
    times: dict[int, list[float]] = {}
    for run in runs:
        times.setdefault(run.config.batch, []).extend(run.seconds)
    return dict(sorted(times.items()))


def gradient_run(
    setting: Setting, data: Tensors, config: Config, epochs: int, *, compiled: bool = False
) -> Run:
    """Train, and measure the test accuracy after every epoch. Compiling counts as warming up."""
    x, labels, x_test, labels_test = data
    run = Run(config)
    warm_up = torch.arange(min(len(x), WARM_UP_STEPS * config.batch + len(x) % config.batch))
    with gradients_allowed():
        if compiled:
            torch.compiler.reset()
        for timed in (False, True):
            model, descent = model_and_descent(setting, config)
            step = torch.compile(model, dynamic=False) if compiled else model
            if not timed:
                train(step, descent, x, labels, warm_up, config.batch)
        for _ in range(epochs):
            time.sleep(PAUSE_SECONDS)
            began = time.perf_counter()
            train(step, descent, x, labels, torch.randperm(len(x)), config.batch)
            run.seconds.append(time.perf_counter() - began)
            with torch.inference_mode():
                hits = model(x_test).argmax(dim=1) == labels_test
            run.accuracies.append(hits.double().mean().item())
    return run


@functools.cache
def why_not_compiled() -> str | None:
    """Return why torch.compile is left out, or None if it works."""
    if SMALL:
        return "left out at small sizes: compiling takes longer than everything else"
    try:
        torch.compile(torch.sin)(torch.zeros(8))
    except Exception as error:  # a missing compiler raises another error on every system
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return None


def model_and_descent(setting: Setting, config: Config) -> tuple[Any, Any]:
    """Return a network with PyTorch's default weights, and its optimizer. The loss includes the output's softmax."""
    torch.manual_seed(0)
    layers: list[Any] = []
    for width, next_width in itertools.pairwise(setting.sizes[:-1]):
        layers.append(torch.nn.Linear(width, next_width))
        layers.append(torch.nn.ReLU() if setting.activation == "relu" else torch.nn.Softmax(dim=1))
    model = torch.nn.Sequential(*layers, torch.nn.Linear(*setting.sizes[-2:]))
    return model, gradient.optimizer(config.method, list(model.parameters()), config.rate)


def train(model: Any, descent: Any, x: Any, labels: Any, order: Any, batch: int) -> None:
    """Take one step for each batch of the rows, in this order."""
    loss = torch.nn.CrossEntropyLoss()
    for chosen in order.split(batch):
        descent.zero_grad()
        loss(model(x.index_select(0, chosen)), labels.index_select(0, chosen)).backward()
        descent.step()
