"""The compiled extension as a whole: its version, its configuration and the folder it is installed in."""

from __future__ import annotations

import os
from typing import Any

from bpls_fast import _core

__all__ = ["__version__", "config", "extension_folder"]

__version__ = _core.__version__


def config() -> dict[str, Any]:
    """Return the build and run-time configuration, see `bpls_fast.config`."""
    return _core.config()


def extension_folder() -> str:
    """Return the folder of the extension, which also holds the headers and the C++ library."""
    return os.path.dirname(os.path.abspath(str(_core.__file__)))
