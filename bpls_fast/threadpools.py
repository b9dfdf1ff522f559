"""How threadpoolctl sees the kernels. Importing this module registers them with it.

`threadpool_info` then lists the extension, and a C++ library beside it, as "bpls", and `threadpool_limits` sets their
threads. The package imports this module itself where threadpoolctl was loaded first, as it is by scikit-learn.
"""

from __future__ import annotations

import ctypes

from threadpoolctl import LibController, register

__all__ = ["BplsController"]


class BplsController(LibController):  # type: ignore[misc]  # threadpoolctl has no types
    """The number of threads of calls that do not name one, for the whole process."""

    user_api = "bpls"
    internal_api = "bpls"
    filename_prefixes = ("_core", "libbpls")
    check_symbols = ("bpls_get_num_threads", "bpls_set_num_threads")

    def get_num_threads(self) -> int:
        """Give the threads of the next call."""
        return int(self.dynlib.bpls_get_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        """Set the threads of the next calls."""
        self.dynlib.bpls_set_num_threads(num_threads)

    def get_version(self) -> str | None:
        """Give the version; None for other libraries of such names, which are asked before they are told apart."""
        version = getattr(self.dynlib, "bpls_version", None)
        if version is None:
            return None
        version.restype = ctypes.c_char_p
        return bytes(version()).decode()


register(BplsController)
