"""Registers the kernels with threadpoolctl whenever that is imported, before or after this package.

threadpoolctl does not know our thread pool. It must not be imported here, for it is optional and takes time to load.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader

__all__ = ["register_with_threadpoolctl"]

_WATCHED = "threadpoolctl"


def register_with_threadpoolctl() -> None:
    """Register the kernels now if threadpoolctl is loaded, otherwise as soon as it is."""
    if _WATCHED in sys.modules:
        importlib.import_module("bpls_fast.threadpools")
    elif not any(isinstance(finder, _Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watcher())


class _Watcher:
    """A finder that finds nothing itself: it replaces the loader of threadpoolctl, once."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _WATCHED:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)  # type: ignore[assignment]
        return spec


class _RegisteringLoader:
    """Loads threadpoolctl by its own loader, and then registers the kernels."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        importlib.import_module("bpls_fast.threadpools")
