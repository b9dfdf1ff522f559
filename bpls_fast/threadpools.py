"""The controller that shows the kernels to threadpoolctl. Importing this module registers it.

`threadpool_info` then lists the extension, and the C++ library if it is loaded, as "bpls"; `threadpool_limits` sets
their threads. `bpls_fast.import_hook` imports this module when threadpoolctl is imported.
"""

from __future__ import annotations

import ctypes

from threadpoolctl import LibController, register

__all__ = ["BplsController"]


class BplsController(LibController):  # type: ignore[misc]  # threadpoolctl has no types
    """Controls the default number of threads of the whole process."""

    user_api = "bpls"
    internal_api = "bpls"
    filename_prefixes = ("_core", "libbpls")
    check_symbols = ("bpls_get_num_threads", "bpls_set_num_threads")

    def get_num_threads(self) -> int:
        """Return the default number of threads."""
        return int(self.dynlib.bpls_get_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        """Set the default number of threads."""
        self.dynlib.bpls_set_num_threads(num_threads)

    def get_version(self) -> str | None:
        """Return the version, or None for another library: threadpoolctl asks every library with such a file name."""
        version = getattr(self.dynlib, "bpls_version", None)
        if version is None:
            return None
        version.restype = ctypes.c_char_p
        return bytes(version()).decode()


register(BplsController)
