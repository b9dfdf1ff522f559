"""The networks that learn MNIST and Fashion-MNIST in the benchmarks, and the images as each library takes them."""

from typing import Any, NamedTuple

import numpy as np

import bpls_fast as bf
from bpls_fast.datasets import DataSet

from .. import SMALL
from ..measure.libraries import torch
from . import images

Tensors = tuple[Any, Any, Any, Any]  # in the order of a DataSet

DATA = {"mnist": "mnist", "fashion": "fashion-mnist"}
ROWS = 6000 if SMALL else images.ROWS
CLASSES = 10


class Setting(NamedTuple):
    """A network and the images that it learns."""

    data: str
    hidden: tuple[int, ...]
    activation: str

    @property
    def name(self) -> str:
        return f"{self.data} {'-'.join(map(str, self.hidden))} {self.activation}"

    @property
    def sizes(self) -> list[int]:
        return [images.PIXELS, *self.hidden, CLASSES]


SETTINGS = [
    Setting(data, hidden, activation)
    for data in DATA
    for hidden, activation in (((60,), "softmax"), ((100, 70), "softmax"), ((100, 70), "relu"))
]
PAPERS = Setting("fashion", (100, 70), "softmax")
"""The setting of the paper's Table II and of its last figure."""
EXPERTS = Setting("mnist", (100, 70), "relu")
"""The choice of somebody who is not bound to invertible activations."""


def load(name: str) -> DataSet:
    """Load a data set; the training part has at most ROWS images."""
    x, labels, x_test, labels_test = bf.datasets.load(DATA[name])
    return DataSet(x[:ROWS], labels[:ROWS], x_test, labels_test)


def as_tensors(data: DataSet) -> Tensors:
    """Return the data as tensors of PyTorch, images as float32 between 0 and 1."""
    x, labels, x_test, labels_test = map(torch.tensor, data)
    return x / 255, labels, x_test / 255, labels_test


def as_floats(data: DataSet) -> DataSet:
    """Return the data with images as float32 between 0 and 1."""
    scaled = [np.divide(x, 255, dtype=np.float32) for x in (data.x_train, data.x_test)]
    return data._replace(x_train=scaled[0], x_test=scaled[1])
