"""Gradient methods as an expert runs them: PyTorch, fused, mini-batches; every batch size and rate of a grid is tried.

The whole set is one float32 tensor between 0 and 1, and making it is not timed; every epoch draws an order and gathers
its batches by `index_select`; some steps of another network come first to warm up. All methods start from the same
weights, PyTorch's default of seed 0, and see the rows in the same order.
"""

import functools
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kernel_cases import PAUSE_SECONDS, SMALL, gradients_allowed, torch
from settings import Setting, Tensors

from bpls_fast.experiments import gradient

WARM_UP_STEPS = 20


class Config(NamedTuple):
    """How a method runs."""

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
"""Of Adam, which gets the largest."""

OTHER_RATES = {
    "relu": {"NAG": (3e-2, 1e-1, 3e-1), "SGD": (1e-1, 3e-1, 1.0), "AdaGrad": (1e-2, 3e-2, 1e-1)},
    "softmax": {"NAG": (0.3, 1.0, 2.0), "SGD": (3.0, 10.0, 20.0), "AdaGrad": (1e-2, 3e-2, 1e-1)},
}
"""Of the other methods, at batch 128, by activation: softmax layers pass on small gradients."""
OTHERS = tuple(OTHER_RATES["relu"])


def other_grid(method: str, activation: str) -> list[Config]:
    rates = OTHER_RATES[activation][method]
    return grid(method, (128,), rates[1:2] if SMALL else rates)


@dataclass(frozen=True)
class Run:
    """One run: accuracies after, and seconds of, every epoch."""

    config: Config
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def epoch_seconds(runs: Sequence[Run]) -> dict[int, list[float]]:
    """Give the seconds of all epochs by batch size: the rate does not change the work."""
    times: dict[int, list[float]] = {}
    for run in runs:
        times.setdefault(run.config.batch, []).extend(run.seconds)
    return dict(sorted(times.items()))


def gradient_run(
    setting: Setting, data: Tensors, config: Config, epochs: int, *, compiled: bool = False
) -> Run:
    """Train, looking at the test rows after every epoch. Compiling counts as warming up."""
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
    """Say why torch.compile is left out; None if it works."""
    if SMALL:
        return "left out at small sizes: it takes longer than all else"
    try:
        torch.compile(torch.sin)(torch.zeros(8))
    except Exception as error:  # what is missing differs from system to system
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return None


def model_and_descent(setting: Setting, config: Config) -> tuple[Any, Any]:
    """Make a network as PyTorch does by default, and its optimizer. The loss has the softmax of the outputs in it."""
    torch.manual_seed(0)
    layers: list[Any] = []
    for width, next_width in itertools.pairwise(setting.sizes[:-1]):
        layers.append(torch.nn.Linear(width, next_width))
        layers.append(torch.nn.ReLU() if setting.activation == "relu" else torch.nn.Softmax(dim=1))
    model = torch.nn.Sequential(*layers, torch.nn.Linear(*setting.sizes[-2:]))
    return model, gradient.optimizer(config.method, list(model.parameters()), config.rate)


def train(model: Any, descent: Any, x: Any, labels: Any, order: Any, batch: int) -> None:
    """Make a step for every batch of the rows in this order."""
    loss = torch.nn.CrossEntropyLoss()
    for chosen in order.split(batch):
        descent.zero_grad()
        loss(model(x.index_select(0, chosen)), labels.index_select(0, chosen)).backward()
        descent.step()
