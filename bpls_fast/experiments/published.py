"""The paper's settings and the numbers of its tables, as published. Nothing in this file is our measurement."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ALGORITHMS", "GRADIENT_METHODS", "SETTINGS", "TABLE1", "TABLE2", "Accuracy", "Setting"]

GRADIENT_METHODS = ("Adam", "NAG", "SGD", "AdaGrad")
ALGORITHMS = ("BPLS", *GRADIENT_METHODS)


class Setting(NamedTuple):
    """A data set and the hidden layers of the network trained on it.

    Attributes
    ----------
    dataset : str
        A name that `bpls_fast.datasets.load` accepts.
    hidden : tuple of int
        Neurons of each hidden layer.
    """

    dataset: str
    hidden: tuple[int, ...]

    @property
    def layers(self) -> str:
        """The hidden layers as text, such as 100-70."""
        return "-".join(map(str, self.hidden))

    @property
    def names(self) -> tuple[str, str]:
        """The data set and the hidden layers as text, as in the tables."""
        return self.dataset, self.layers


class Accuracy(NamedTuple):
    """Accuracies in percent."""

    train: float
    test: float


SETTINGS = (
    Setting("mnist", (60,)),
    Setting("mnist", (100, 70)),
    Setting("fashion-mnist", (60,)),
    Setting("fashion-mnist", (100, 70)),
)
"""The four experiments with images: softmax in every layer, initial weights uniform on [-1, 1]."""

_ROWS = (
    ((89.77, 89.47), (94.40, 92.91), (94.40, 92.91), (90.94, 90.69), (57.72, 58.10)),
    ((88.72, 88.38), (93.96, 92.77), (93.96, 92.77), (50.50, 50.91), (91.35, 91.23)),
    ((83.25, 81.23), (87.37, 83.94), (86.93, 83.94), (62.30, 61.89), (80.71, 79.75)),
    ((82.03, 80.21), (85.67, 83.31), (85.43, 83.09), (54.95, 54.78), (82.90, 81.65)),
)

TABLE1: dict[Setting, dict[str, Accuracy]] = {
    setting: {
        algorithm: Accuracy(*percent) for algorithm, percent in zip(ALGORITHMS, row, strict=True)
    }
    for setting, row in zip(SETTINGS, _ROWS, strict=True)
}
"""Table I: the best accuracies, mean of 100 runs; the gradient methods run 40 epochs, one row per update."""


class RunningTime(NamedTuple):
    """Average seconds of one iteration (BPLS) or epoch (the others)."""

    cpu: float
    gpu: float


TABLE2: dict[str, RunningTime] = {
    "BPLS": RunningTime(0.26, 0.17),
    "Adam": RunningTime(4.93, 4.85),
    "NAG": RunningTime(4.94, 4.82),
    "SGD": RunningTime(4.83, 4.69),
    "AdaGrad": RunningTime(4.86, 4.73),
}
"""Table II: Fashion-MNIST, hidden layers 100-70, on an Intel Core i7-8700 and an NVIDIA GeForce RTX 2070 SUPER."""
