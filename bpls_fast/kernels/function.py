"""The decorator of kernel functions: calls with NumPy's arrays go to the compiled core without running Python code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from bpls_fast import _core

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(core: Callable[..., Any]) -> Callable[[Function], Function]:
    """Send the calls of a function whose arguments are all on the host straight to `core`.

    `core` takes the function's parameters in their order, without `backend`, the last but one. The function itself
    runs for all other arguments: arrays of the GPU, sequences, subclasses. Its name, signature and docstring remain.
    """

    def with_core(function: Function) -> Function:
        python = cast(FunctionType, function)
        code = python.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = (*(python.__defaults__ or ()), *(python.__kwdefaults__ or {}).values())
        direct = _core.KernelFunction(python, core, names, values, code.co_argcount)
        return cast(Function, functools.update_wrapper(direct, python))

    return with_core
