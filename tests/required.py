"""Packages and images that a test needs: it is skipped without them, but never in CI."""

import functools
import importlib
import os
from types import ModuleType
from typing import Any

import pytest

import bpls_fast as bf
from tests.support import images


def required(name: str) -> ModuleType:
    """Give the module; where it is not installed skip the test, or fail it in CI."""
    if os.environ.get("CI") == "true":
        return importlib.import_module(name)
    return pytest.importorskip(name)


@functools.cache
def real_images(name: str) -> Any:
    """Give MNIST or Fashion-MNIST; where it is not there skip the test, or fail it in CI."""
    try:
        return bf.datasets.load(name, root=images.ROOT)
    except FileNotFoundError as error:
        if os.environ.get("CI") == "true" and os.environ.get("GITHUB_ACTIONS") != "true":
            raise
        pytest.skip(f"{error}; BPLS_DATA can name another folder than {images.ROOT}")


def round_trip(name: str) -> ModuleType:
    """Give the module that a format is checked with: as `required`, but GitHub's plain test jobs may lack it."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return pytest.importorskip(name)
    return required(name)
