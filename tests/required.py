"""Packages of the `test` extra that a test needs: it is skipped without them, but never in CI."""

import importlib
import os
from types import ModuleType

import pytest


def required(name: str) -> ModuleType:
    """Give the module; where it is not installed skip the test, or fail it in CI."""
    if os.environ.get("CI") == "true":
        return importlib.import_module(name)
    return pytest.importorskip(name)
