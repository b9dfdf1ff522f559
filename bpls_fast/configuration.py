"""The configuration of the build and of this process, and the folders of the C++ library."""

import os
from importlib.util import find_spec
from typing import Any

from bpls_fast.kernels import extension

__all__ = ["config", "get_cmake_dir", "get_include", "get_libs", "show_config"]


_CUDA_PACKAGES = {"numba-cuda": "numba_cuda", "CuPy": "cupy"}


def config() -> dict[str, Any]:
    """Return the build and run-time configuration.

    Returns
    -------
    dict
        `version`, `compiler`, `build` (type and flags), `flags` (the additional flags of each level), `isa` (the levels
        `compiled`, those `supported` by this CPU, and the `active` one), and `threads` (the current default).

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.config()["isa"]["compiled"][0]
    'generic'
    """
    return extension.config()


def show_config() -> None:
    """Print the configuration, including the packages, driver, devices and libraries of the GPU backend.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.show_config()  # doctest: +ELLIPSIS
    bpls_fast ...
    """
    now = config()
    isa = now["isa"]
    print(f"bpls_fast {now['version']}")
    print(f"compiler   {now['compiler']}")
    print(f"build      {now['build']}")
    print("levels")
    for level in isa["compiled"]:
        state = "in use" if level == isa["active"] else "supported"
        state = state if level in isa["supported"] else "not supported by this CPU"
        flags = f"  [{now['flags'][level]}]" if now["flags"][level] else ""
        print(f"  {level:<10} {state}{flags}")
    print(f"threads    {now['threads']}")
    _show_cuda()


def _show_cuda() -> None:
    packages = {name: find_spec(module) for name, module in _CUDA_PACKAGES.items()}
    states = [name if found else f"{name} missing" for name, found in packages.items()]
    print(f"cuda       {', '.join(states)}")
    if packages["numba-cuda"] is None:
        print('  for NVIDIA GPUs: pip install "bpls_fast[cuda]"')
        return
    from bpls_fast.cuda import libraries, runtime

    print(f"  driver     {runtime.driver()}")
    for number, device in enumerate(runtime.devices()):
        print(f"  device {number}   {', '.join(device.values())}")
    for what, by in libraries.chosen_libraries().items():
        print(f"  {what:<10} {by}")


def get_include() -> str:
    """Return the folder of the C++ headers, for `#include <bpls/bpls.hpp>`.

    Examples
    --------
    >>> import os
    >>> import bpls_fast as bf
    >>> os.listdir(bf.get_include())
    ['bpls']
    """
    return os.path.join(_installed(), "include")


def get_cmake_dir() -> str:
    """Return the folder of the CMake package, for `find_package(bpls_fast CONFIG)`.

    Examples
    --------
    >>> import os
    >>> import bpls_fast as bf
    >>> "bpls_fastConfig.cmake" in os.listdir(bf.get_cmake_dir())
    True
    """
    return os.path.join(_installed(), "lib", "cmake", "bpls_fast")


def get_libs() -> str:
    """Return the linker options for the shared C++ library, including its run-time path.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.get_libs().split()[-1]
    '-lbpls'
    """
    folder = os.path.join(_installed(), "lib")
    return f"-L{folder} -Wl,-rpath,{folder} -lbpls"


def _installed() -> str:
    # In an editable install the Python files are elsewhere.
    return extension.extension_folder()
