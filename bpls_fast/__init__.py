"""Closed-form training of neural networks: back-propagating least squares on compiled kernels.

Importing this package loads NumPy and the compiled extension, nothing else; `datasets` loads when it is first used.
"""

from typing import TYPE_CHECKING, Any

from bpls_fast._core import __version__
from bpls_fast.activations import Activation, activations
from bpls_fast.configuration import config, get_cmake_dir, get_include, show_config
from bpls_fast.kernels import cross, gram, linear, solve, solve_batched, solve_layer

if TYPE_CHECKING:
    from bpls_fast import datasets as datasets

__all__ = [
    "Activation",
    "__version__",
    "activations",
    "config",
    "cross",
    "datasets",
    "get_cmake_dir",
    "get_include",
    "gram",
    "linear",
    "show_config",
    "solve",
    "solve_batched",
    "solve_layer",
]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        import importlib

        return importlib.import_module("bpls_fast.datasets")
    raise AttributeError(f"module 'bpls_fast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
