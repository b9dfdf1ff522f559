"""Packages, programs and data that a test needs: without them it is skipped, and in CI it fails."""

import functools
import importlib
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bpls_fast as bf
from harness import MUST_NOT_SKIP, missing


def required(name: str) -> ModuleType:
    """Import a module; skip the test where it is not installed, but never in CI."""
    if os.environ.get("CI") == "true":
        return importlib.import_module(name)
    return pytest.importorskip(name)


def round_trip(name: str) -> ModuleType:
    """Import the module that a format is checked with: as `required`, but GitHub's plain test jobs may lack it."""
    return importlib.import_module(name) if MUST_NOT_SKIP else pytest.importorskip(name)


def program(name: str) -> str:
    """Return the path of a program, that of Python's own folder first."""
    of_python = Path(sys.executable).with_name(name)
    found = str(of_python) if of_python.exists() else shutil.which(name)
    if found is None:
        missing(f"{name} is not installed")
    return found


def data_folder() -> Path:
    """Return the folder of the image sets."""
    folder = os.environ.get("BPLS_DATA")
    if not folder:
        missing("BPLS_DATA is not set: it names the folder of MNIST and Fashion-MNIST")
    return Path(folder)


@functools.cache
def real_images(name: str) -> "bf.datasets.DataSet":
    """Load MNIST or Fashion-MNIST."""
    try:
        return bf.datasets.load(name, root=data_folder())
    except FileNotFoundError as error:
        missing(str(error))


@functools.cache
def real_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load a table of the folder `tables`: its rows in random order, and their labels or numbers."""
    path = data_folder() / "tables" / f"{name}.npz"
    if not path.is_file():
        missing(f"{path} is not there")
    with np.load(path) as arrays:
        order = np.random.default_rng(0).permutation(len(arrays["X"]))
        return arrays["X"][order], arrays["y"][order]
