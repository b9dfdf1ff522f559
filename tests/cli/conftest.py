"""A network in a file, so small that rows for it can be made by hand."""

from pathlib import Path

import numpy as np
import pytest

import bpls_fast as bf


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Write a network of two inputs whose class is the sign of their sum."""
    net = bf.Network([2, 2], output_activation="identity", bias=False)
    net.weights = [np.array([[-1.0, 1.0], [-1.0, 1.0]])]
    net.classes = np.array([0, 1])
    net.save(tmp_path / "signs.npz")
    return tmp_path / "signs.npz"
