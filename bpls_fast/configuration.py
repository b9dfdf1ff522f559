"""What was built and what is in use, and where the C++ library lies."""

import os
from typing import Any

from bpls_fast import _core

__all__ = ["config", "get_cmake_dir", "get_include", "get_libs", "show_config"]


def config() -> dict[str, Any]:
    """Give the build and run-time configuration.

    Returns
    -------
    dict
        `version`, `compiler`, `build` (its type and flags), `flags` (of each level, beyond those), `isa` (the levels
        `compiled`, those this CPU has `supported`, and the `active` one), `openmp`, and `threads` (of a
        call that does not name a number, as of now).

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.config()["isa"]["compiled"][0]
    'generic'
    """
    return _core.config()


def show_config() -> None:
    """Print the configuration.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.show_config()  # doctest: +ELLIPSIS
    bpls_fast ...
    """
    now = config()
    isa = now["isa"]
    threads = "OpenMP" if now["openmp"] else "std::thread"
    print(f"bpls_fast {now['version']}")
    print(f"compiler   {now['compiler']}")
    print(f"build      {now['build']}")
    print("levels")
    for level in isa["compiled"]:
        state = "in use" if level == isa["active"] else "supported"
        state = state if level in isa["supported"] else "not supported by this CPU"
        flags = f"  [{now['flags'][level]}]" if now["flags"][level] else ""
        print(f"  {level:<10} {state}{flags}")
    print(f"threads    {now['threads']} ({threads})")


def get_include() -> str:
    """Give the folder of the C++ headers, for `#include <bpls/bpls.hpp>`.

    Examples
    --------
    >>> import os
    >>> import bpls_fast as bf
    >>> os.listdir(bf.get_include())
    ['bpls']
    """
    return os.path.join(_installed(), "include")


def get_cmake_dir() -> str:
    """Give the folder of the CMake package, for `find_package(bpls_fast CONFIG)`.

    Examples
    --------
    >>> import os
    >>> import bpls_fast as bf
    >>> "bpls_fastConfig.cmake" in os.listdir(bf.get_cmake_dir())
    True
    """
    return os.path.join(_installed(), "lib", "cmake", "bpls_fast")


def get_libs() -> str:
    """Give the linker's options for a program on the shared C++ library, which it then finds when it runs.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.get_libs().split()[-1]
    '-lbpls'
    """
    folder = os.path.join(_installed(), "lib")
    return f"-L{folder} -Wl,-rpath,{folder} -lbpls"


def _installed() -> str:
    # Beside the extension: in an editable install the Python files lie elsewhere.
    return os.path.dirname(os.path.abspath(str(_core.__file__)))
