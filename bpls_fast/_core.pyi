# The compiled extension. Arguments are positional; bpls_fast.kernels is its public interface.
from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, DTypeLike, NDArray
from typing_extensions import Self

__version__: str

class NonFiniteError(ValueError): ...

def config() -> dict[str, Any]: ...
def get_num_threads() -> int: ...
def set_num_threads(n_threads: int, /) -> None: ...

# Whether a call surely runs on the CPU: its backend is "cpu", or "auto" and its other arguments are of Python's own
# types, NumPy arrays, or tuples of these. Where False, kernels.backend decides.
def on_host(backend: str, /, *arrays: Any) -> bool: ...

# A call that surely runs on the CPU goes to `core`, without `backend`, every other one to `function`; see
# kernels.function.
@final
class KernelFunction:
    __dict__: dict[str, Any]
    def __new__(
        cls,
        function: Callable[..., Any],
        core: Callable[..., Any],
        names: tuple[str, ...],
        defaults: tuple[Any, ...],
        positional: int,
        /,
    ) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __reduce__(self) -> str: ...

def gram(
    A: ArrayLike,
    B: ArrayLike | None,
    bias: bool,
    scale: ArrayLike | None,
    center: bool,
    sample_weight: ArrayLike | None,
    out: Any,
    check_finite: bool,
    n_threads: int | None,
    /,
) -> Any: ...
def cross(
    A: ArrayLike,
    D: ArrayLike,
    bias: bool,
    scale: ArrayLike | None,
    sample_weight: ArrayLike | None,
    out: NDArray[float64] | None,
    check_finite: bool,
    n_threads: int | None,
    /,
) -> NDArray[float64]: ...
def solve(
    G: ArrayLike,
    C: ArrayLike,
    eps: float,
    relative: bool,
    out: NDArray[float64] | None,
    check_finite: bool,
    n_threads: int | None,
    /,
) -> NDArray[float64]: ...
def solve_layer(
    A: ArrayLike,
    B: ArrayLike,
    bias: bool,
    eps: float,
    relative: bool,
    sample_weight: ArrayLike | None,
    out: NDArray[float64] | None,
    check_finite: bool,
    n_threads: int | None,
    /,
) -> NDArray[float64]: ...
def solve_batched(
    G: ArrayLike,
    C: ArrayLike,
    eps: float,
    relative: bool,
    out: NDArray[float64] | None,
    check_finite: bool,
    n_threads: int | None,
    /,
) -> NDArray[float64]: ...
def linear(
    A: ArrayLike,
    W: ArrayLike,
    bias: bool,
    activation: str,
    out: NDArray[Any] | None,
    check_finite: bool,
    n_threads: int | None,
    /,
) -> NDArray[Any]: ...
def tangent(
    A: ArrayLike,
    W: ArrayLike,
    N: NDArray[Any],
    bias: bool,
    activation: str,
    out: NDArray[Any] | None,
    check_finite: bool,
    n_threads: int | None,
    /,
) -> NDArray[Any]: ...
def linear_bytes(
    A: NDArray[np.uint8],
    W: NDArray[np.int8],
    scale: NDArray[np.float32],
    out: NDArray[np.float32] | None,
    n_threads: int | None,
    /,
) -> NDArray[np.float32]: ...
def take_rows(
    X: NDArray[Any], rows: NDArray[np.intp], out: NDArray[Any], n_threads: int | None, /
) -> None: ...

# None if X is not finite.
def clip_rows(
    X: NDArray[Any], limits: NDArray[Any], n_threads: int | None, /
) -> NDArray[Any] | None: ...

# Name, domain, range, and whether it is injective.
def activations() -> list[tuple[str, tuple[float, float], tuple[float, float], bool]]: ...
def forward(
    activation: str, z: ArrayLike, out: NDArray[Any] | None, n_threads: int | None, /
) -> NDArray[Any]: ...
def derivative(
    activation: str, z: ArrayLike, out: NDArray[Any] | None, n_threads: int | None, /
) -> NDArray[Any]: ...
def inverse(
    activation: str,
    n: ArrayLike,
    margin: float | None,
    out: NDArray[Any] | None,
    n_threads: int | None,
    /,
) -> NDArray[Any]: ...
def jacobian(
    activation: str,
    v: ArrayLike,
    n: ArrayLike,
    out: NDArray[Any] | None,
    n_threads: int | None,
    /,
) -> NDArray[Any]: ...
def squared_slopes(activation: str, n: ArrayLike, n_threads: int | None, /) -> NDArray[float64]: ...

class PackedNetwork:
    # Both return None for what the caller must handle: other types and layouts, rows that do not fit or are not finite.
    def __init__(
        self,
        weights: list[NDArray[float64]],
        bias: bool,
        activations: list[str],
        input_scale: float | None,
        labels: tuple[Any, ...] | None,
        input_limits: NDArray[float64] | None,
        /,
    ) -> None: ...
    def predict_one(self, x: Any, /) -> Any: ...
    def forward(self, X: Any, activated: bool, n_threads: int | None, /) -> NDArray[Any] | None: ...
    # For bench/: seconds per row in C++ alone, for the outputs and for the label.
    def time(self, x: NDArray[Any], repeats: int, /) -> tuple[float, float]: ...

# For bench/: operations per second, bytes per second, and seconds per call in C++ alone.
def peak(dtype: DTypeLike, n_threads: int | None, seconds: float, /) -> float: ...
def read_rate(bytes: int, seconds: float, /) -> float: ...
def time_gram(A: ArrayLike, n_threads: int | None, repeats: int, /) -> float: ...
def time_cross(A: ArrayLike, D: ArrayLike, n_threads: int | None, repeats: int, /) -> float: ...
def time_solve(G: ArrayLike, C: ArrayLike, n_threads: int | None, repeats: int, /) -> float: ...
def time_solve_layer(
    A: ArrayLike, B: ArrayLike, n_threads: int | None, repeats: int, /
) -> float: ...
def time_solve_batched(
    G: ArrayLike, C: ArrayLike, n_threads: int | None, repeats: int, /
) -> float: ...
def time_linear(
    A: ArrayLike, W: ArrayLike, activation: str, n_threads: int | None, repeats: int, /
) -> float: ...
def time_tangent(
    A: ArrayLike, W: ArrayLike, activation: str, n_threads: int | None, repeats: int, /
) -> float: ...

# Of forward, inverse and derivative.
def time_activation(
    activation: str, z: ArrayLike, n_threads: int | None, repeats: int, /
) -> tuple[float, float, float]: ...
