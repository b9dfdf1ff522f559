"""The kernels and sizes that are compared, and with what: the one table of ratios.py and test_kernels.py.

CASES are those of training and prediction; SCALING shows how time grows with rows and columns; AT_EVERY_LEVEL runs at
every instruction set of the CPU (see levels.py).

A competitor is what an expert would call. Where a library offers several forms of a call, the fastest on this machine
competes; its data lie ready in the layout and type it likes best, and it need not do what we do on top (check the
values, mirror a triangle, accumulate in float64). BPLS_BENCH_SMALL=1 cuts the sizes down to a smoke test.
"""

import functools
import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import images
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import bpls_fast as bf
from bpls_fast import _core

Array = NDArray[Any]
Call = Callable[[], Any]
Forms = Callable[..., Sequence[Call]]  # of a case's arrays, A in floats


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


scipy_linalg = _optional("scipy.linalg")
torch = _optional("torch")
INSTALLED = {"numpy": True, "scipy": scipy_linalg is not None, "torch": torch is not None}

SMALL = os.environ.get("BPLS_BENCH_SMALL") == "1"
ROWS = 600 if SMALL else images.ROWS
SYSTEMS = 64 if SMALL else 4096
LARGE = 256 if SMALL else 4096
OUTPUTS = 60
COMPONENTS = 192
OURS = "ours"
OURS_FLOAT32 = "ours, float32 copy"
# OpenMP and OpenBLAS workers spin for a while after a call, on the core that the next contender needs.
PAUSE_SECONDS = 0.02
LONG_SECONDS = 0.2


@contextmanager
def limited(n_threads: int) -> Iterator[None]:
    """Keep every library to this many threads."""
    if torch is None:
        with threadpool_limits(n_threads):
            yield
        return
    before = torch.get_num_threads()
    with threadpool_limits(n_threads), torch.inference_mode():
        torch.set_num_threads(n_threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def gradients_allowed() -> Any:
    """Give the context in which PyTorch can train, within `limited`."""
    return torch.inference_mode(False) if torch else nullcontext()


def seconds(call: Call, repeats: int = 1) -> float:
    """Time one call, as the mean of some in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def fastest(forms: Sequence[Call]) -> Call:
    """Pick a form by its best call: the first, and two more where that was short."""
    if len(forms) == 1:
        return forms[0]

    def best(form: Call) -> float:
        first = seconds(form)
        return first if first > LONG_SECONDS else min(first, seconds(form), seconds(form))

    return min(forms, key=best)


@dataclass(frozen=True, eq=False)
class Case:
    """One kernel at one size."""

    kernel: str
    dtype: str
    """Of the first array. The competitors of uint8 get a ready float32 copy."""
    size: str
    make_arrays: Callable[[], tuple[Array, ...]]
    ours: Callable[..., Array]
    """Of the arrays, and of n_threads where it takes that."""
    others: Mapping[str, Forms]
    make_error: Callable[..., Callable[[Array], float]]
    """Of the arrays: gives the function that measures a result against float64."""
    tolerance: float
    """The largest error that still counts as the same answer."""
    operations: float = 0
    """The useful ones; 0 where counting them says nothing, as of images, whose zeros we leave out."""
    arithmetic: str = "float32"
    """Whose peak bounds them."""
    exact: bool = False
    """Whether our own error must be 0."""
    bare: Callable[..., float] | None = None
    """Of the arrays, n_threads and repeats: seconds of a call without Python."""
    floors: Callable[[], Mapping[str, float]] | None = None
    """Seconds that the hardware needs for parts of a call, measured as everyone is; `bare` stands beside them."""
    takes_threads: bool = True
    """Whether ours has a number of threads to choose."""
    to_float: Callable[[Array], Array] = lambda A: A.astype(np.float32)
    """Makes the float32 copy of uint8."""
    rounds: int = 15
    """At most."""
    rows: int | None = None
    """Of the first array, where time is drawn against it."""
    cols: int | None = None

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.dtype} {self.size}"

    @property
    def contenders(self) -> list[str]:
        """Everyone who runs, we first."""
        return [OURS, *([OURS_FLOAT32] if self.dtype == "uint8" else []), *self.others]

    @functools.cached_property
    def arrays(self) -> tuple[Array, ...]:
        return self.make_arrays()

    @functools.cached_property
    def error(self) -> Callable[[Array], float]:
        return self.make_error(*self.arrays)

    def release(self) -> None:
        """Forget the arrays; they are made again when they are needed."""
        for name in ("arrays", "error"):
            self.__dict__.pop(name, None)

    def call(self, contender: str, n_threads: int) -> Call:
        """Make a contender ready to be timed, within `limited(n_threads)`."""
        options = {"n_threads": n_threads} if self.takes_threads else {}
        if contender == OURS:
            return functools.partial(self.ours, *self.arrays, **options)
        A, *others = self.arrays
        A = self.to_float(A) if self.dtype == "uint8" else A
        if contender == OURS_FLOAT32:
            return functools.partial(self.ours, A, *others, **options)
        return fastest(self.others[contender](A, *others))

    def checked_error(self, contender: str, result: Any) -> float:
        """Give the error of a contender's result; raise if it is another answer than the right one."""
        error = self.error(np.asarray(result))
        limit = 0 if self.exact and contender == OURS else self.tolerance
        assert error <= limit, f"{self.name}: {contender} is off by {error:.1e}, above {limit:.0e}"
        return error


def largest(difference: Array, reference: Array) -> float:
    """Give the largest difference, as a part of the largest value."""
    return float(np.abs(difference).max() / np.abs(reference).max())


# ---- gram and cross


def gram_error(A: Array) -> Callable[[Array], float]:
    exact = np.zeros((A.shape[1], A.shape[1]))
    for first in range(0, len(A), images.ROWS):
        wide = A[first : first + images.ROWS].astype(np.float64)
        exact += wide.T @ wide
    # syrk fills one triangle only.
    return lambda G: largest(np.triu(G - exact), exact)


def numpy_gram(A: Array) -> Sequence[Call]:
    return [lambda: A.T @ A]


def scipy_gram(A: Array) -> Sequence[Call]:
    by_columns = np.asfortranarray(A)
    syrk = scipy_linalg.blas.ssyrk if A.dtype == np.float32 else scipy_linalg.blas.dsyrk
    return [lambda: syrk(1.0, A.T), lambda: syrk(1.0, by_columns, trans=1)]


def torch_gram(A: Array) -> Sequence[Call]:
    X = torch.from_numpy(A)
    G = torch.empty((A.shape[1], A.shape[1]), dtype=X.dtype)
    return [lambda: X.T @ X, lambda: torch.mm(X.T, X, out=G)]


def dense_rows(dtype: str, rows: int, cols: int) -> Array:
    """Give values without zeros to leave out: bytes, or between 0 and 1."""
    random = np.random.default_rng(0)
    if dtype == "uint8":
        return random.integers(0, 256, (rows, cols), dtype=np.uint8)
    return random.random((rows, cols), np.float32).astype(dtype)


def gram_case(
    dtype: str,
    rows: int,
    cols: int,
    *,
    of_images: bool = False,
    bare: bool = False,
    rounds: int = 15,
) -> Case:
    def arrays() -> tuple[Array, ...]:
        return (images.load(dtype, rows) if of_images else dense_rows(dtype, rows, cols),)

    return Case(
        kernel="gram",
        dtype=dtype,
        size=f"{rows} x {cols}{' images' if of_images else ''}",
        make_arrays=arrays,
        ours=bf.gram,
        others={"numpy": numpy_gram, "scipy": scipy_gram, "torch": torch_gram},
        make_error=gram_error,
        tolerance=1e-12 if dtype == "float64" else 1e-4,
        operations=0 if of_images else rows * cols * cols,
        arithmetic=dtype,
        exact=dtype == "uint8",
        bare=_core.time_gram if bare else None,
        rounds=rounds,
        rows=None if of_images else rows,
        cols=None if of_images else cols,
    )


def cross_error(A: Array, D: Array) -> Callable[[Array], float]:
    exact = A.T.astype(np.float64) @ D
    return lambda C: largest(C - exact, exact)


def numpy_cross(A: Array, D: Array) -> Sequence[Call]:
    return [lambda: A.T @ D, lambda: (D.T @ A).T]


def torch_cross(A: Array, D: Array) -> Sequence[Call]:
    X, Y = torch.from_numpy(A), torch.from_numpy(D)
    return [lambda: X.T @ Y, lambda: (Y.T @ X).T]


def cross_case(dtype: str, *, of_images: bool = True) -> Case:
    def arrays() -> tuple[Array, ...]:
        A = images.load(dtype, ROWS) if of_images else dense_rows(dtype, ROWS, images.PIXELS)
        return A, np.random.default_rng(1).standard_normal((ROWS, OUTPUTS), np.float32)

    return Case(
        kernel="cross",
        dtype=dtype,
        size=f"{ROWS} x {images.PIXELS}{' images' if of_images else ''}, {OUTPUTS} columns",
        make_arrays=arrays,
        ours=bf.cross,
        others={"numpy": numpy_cross, "torch": torch_cross},
        make_error=cross_error,
        tolerance=1e-4,
        operations=0 if of_images else 2 * ROWS * images.PIXELS * OUTPUTS,
    )


# ---- components of images: bytes times int8, in units for each column


def integer_product(A: Array, W: Array, units: Array, floats: Array, n_threads: int) -> Array:
    if A.dtype == np.uint8:
        return _core.linear_bytes(A, W, units, n_threads)
    return bf.linear(A, floats, n_threads=n_threads)


def numpy_components(A: Array, W: Array, units: Array, floats: Array) -> Sequence[Call]:
    return [lambda: A @ floats]


def torch_components(A: Array, W: Array, units: Array, floats: Array) -> Sequence[Call]:
    X, V = torch.from_numpy(A), torch.from_numpy(floats)
    return [lambda: X @ V]


def components_error(A: Array, W: Array, units: Array, floats: Array) -> Callable[[Array], float]:
    exact = (A.astype(np.float64) @ W) * units
    return lambda P: largest(P - exact, exact)


def components_case(*, of_images: bool = True) -> Case:
    def arrays() -> tuple[Array, ...]:
        A = images.load("uint8", ROWS) if of_images else dense_rows("uint8", ROWS, images.PIXELS)
        random = np.random.default_rng(1)
        W = random.integers(-127, 128, (images.PIXELS, COMPONENTS)).astype(np.int8)
        units = random.uniform(0.5, 1.5, COMPONENTS).astype(np.float32)
        return A, W, units, W * units

    return Case(
        kernel="components",
        dtype="uint8",
        size=f"{ROWS} x {images.PIXELS}{' images' if of_images else ''} -> {COMPONENTS}",
        make_arrays=arrays,
        ours=integer_product,
        others={"numpy": numpy_components, "torch": torch_components},
        make_error=components_error,
        tolerance=1e-4,
        operations=0 if of_images else 2 * ROWS * images.PIXELS * COMPONENTS,
        arithmetic="uint8",
    )


# ---- activations, and linear with them. NumPy works in place where it can.


def numpy_sigmoid(z: Array) -> Array:
    n: Array = np.negative(z)
    np.exp(n, out=n)
    n += 1
    return np.reciprocal(n, out=n)


def numpy_logit(n: Array) -> Array:
    z: Array = 1 - n
    np.divide(n, z, out=z)
    return np.log(z, out=z)


def numpy_softmax(z: Array) -> Array:
    n: Array = z - z.max(1, keepdims=True)
    np.exp(n, out=n)
    n /= n.sum(1, keepdims=True)
    return n


def numpy_centred_log(n: Array) -> Array:
    z: Array = np.log(n)
    z -= z.mean(1, keepdims=True)
    return z


def torch_centred_log(n: Any) -> Any:
    z = n.log()
    return z.sub_(z.mean(1, keepdim=True))


@dataclass(frozen=True)
class Elementwise:
    """An activation in the two libraries. They need not clip what goes into an inverse."""

    numpy_forward: Callable[[Array], Array]
    numpy_inverse: Callable[[Array], Array]
    torch_forward: Callable[[Any], Any]
    torch_inverse: Callable[[Any], Any]


ACTIVATIONS = {
    "sigmoid": Elementwise(
        numpy_sigmoid, numpy_logit, lambda z: torch.sigmoid(z), lambda n: torch.logit(n)
    ),
    "tanh": Elementwise(np.tanh, np.arctanh, lambda z: torch.tanh(z), lambda n: torch.atanh(n)),
    "softmax": Elementwise(
        numpy_softmax, numpy_centred_log, lambda z: torch.softmax(z, 1), torch_centred_log
    ),
}


def activation_case(name: str, *, inverse: bool) -> Case:
    library = ACTIVATIONS[name]
    in_numpy = library.numpy_inverse if inverse else library.numpy_forward
    in_torch = library.torch_inverse if inverse else library.torch_forward
    ours = bf.activations[name]

    def arrays() -> tuple[Array, ...]:
        z = np.random.default_rng(0).standard_normal((ROWS, OUTPUTS), np.float32)
        return (library.numpy_forward(z) if inverse else z,)

    def error(values: Array) -> Callable[[Array], float]:
        exact = in_numpy(values.astype(np.float64))
        return lambda result: largest(result - exact, exact)

    def torch_forms(values: Array) -> Sequence[Call]:
        return [functools.partial(in_torch, torch.from_numpy(values))]

    return Case(
        kernel=f"{name} {'inverse' if inverse else 'forward'}",
        dtype="float32",
        size=f"{ROWS} x {OUTPUTS}",
        make_arrays=arrays,
        ours=ours.inverse if inverse else ours.forward,
        others={
            "numpy": lambda values: [functools.partial(in_numpy, values)],
            "torch": torch_forms,
        },
        make_error=error,
        tolerance=1e-5,
    )


def linear_case(
    dtype: str, activation: str, rows: int, *, of_images: bool = True, bare: bool = False
) -> Case:
    library = ACTIVATIONS[activation]

    def arrays() -> tuple[Array, ...]:
        scale = 0.1 / 255 if dtype == "uint8" else 0.1
        W = np.random.default_rng(0).standard_normal((images.PIXELS + 1, OUTPUTS), np.float32)
        if of_images:
            return images.load(dtype, ROWS)[:rows], W * np.float32(scale)
        return dense_rows(dtype, rows, images.PIXELS), W * np.float32(scale)

    def error(A: Array, W: Array) -> Callable[[Array], float]:
        exact = library.numpy_forward(A.astype(np.float64) @ W[:-1] + W[-1])
        return lambda result: largest(result - exact, exact)

    def numpy_forms(A: Array, W: Array) -> Sequence[Call]:
        def call() -> Array:
            Z = A @ W[:-1]
            Z += W[-1]
            return library.numpy_forward(Z)

        return [call]

    def torch_forms(A: Array, W: Array) -> Sequence[Call]:
        X, weight, bias = torch.from_numpy(A), torch.from_numpy(W[:-1]), torch.from_numpy(W[-1])
        by_outputs = weight.T.contiguous()  # as torch.nn.Linear keeps it
        linear = torch.nn.functional.linear
        return [
            lambda: library.torch_forward(linear(X, by_outputs, bias)),
            lambda: library.torch_forward(torch.addmm(bias, X, weight)),
        ]

    def bare_call(A: Array, W: Array, n_threads: int, repeats: int) -> float:
        return _core.time_linear(A, W, activation, n_threads, repeats)

    return Case(
        kernel=f"linear {activation}",
        dtype=dtype,
        size=f"{rows} x {images.PIXELS}{' images' if of_images else ''} -> {OUTPUTS}",
        make_arrays=arrays,
        ours=functools.partial(bf.linear, bias=True, activation=activation),
        others={"numpy": numpy_forms, "torch": torch_forms},
        make_error=error,
        tolerance=1e-4,
        operations=0 if of_images else 2 * rows * images.PIXELS * OUTPUTS,
        bare=bare_call if bare else None,
    )


# ---- solve. The ridge is in G already, for everyone.


def solve_error(G: Array, C: Array) -> Callable[[Array], float]:
    def largest_row(M: Array) -> Any:
        return np.abs(M).sum(-1).max(-1)

    def backward_error(W: Array) -> float:
        residual = largest_row(G @ W - C)
        return float((residual / (largest_row(G) * largest_row(W) + largest_row(C))).max())

    return backward_error


def numpy_solve(G: Array, C: Array) -> Sequence[Call]:
    return [lambda: np.linalg.solve(G, C)]


def scipy_solve(G: Array, C: Array) -> Sequence[Call]:
    A, B = np.asfortranarray(G), np.asfortranarray(C)

    def solve(lower: bool) -> Any:
        factor = scipy_linalg.cho_factor(A, lower=lower, check_finite=False)
        return scipy_linalg.cho_solve(factor, B, check_finite=False)

    return [lambda: solve(False), lambda: solve(True)]


def torch_cholesky(G: Array, C: Array) -> Sequence[Call]:
    X, Y = torch.from_numpy(G), torch.from_numpy(C)
    return [lambda: torch.cholesky_solve(Y, torch.linalg.cholesky(X))]


def torch_solve(G: Array, C: Array) -> Sequence[Call]:
    X, Y = torch.from_numpy(G), torch.from_numpy(C)
    return [lambda: torch.linalg.solve(X, Y), *torch_cholesky(G, C)]


def with_ridge(G: Array) -> Array:
    mean = np.einsum("...ii", G)[..., None, None] / G.shape[-1]
    ridge: Array = 1e-6 * mean * np.eye(G.shape[-1])
    return G + ridge


def solve_case(n: int, *, rounds: int = 15) -> Case:
    def arrays() -> tuple[Array, ...]:
        rng = np.random.default_rng(0)
        if n == images.PIXELS + 1:
            G = bf.gram(images.load("uint8", ROWS), bias=True)
        else:
            G = bf.gram(rng.standard_normal((2 * n, n)))
        return with_ridge(G), G @ rng.standard_normal((n, OUTPUTS))

    return Case(
        kernel="solve",
        dtype="float64",
        size=f"n = {n}, {OUTPUTS} columns",
        make_arrays=arrays,
        ours=functools.partial(bf.solve, eps=0),
        others={"numpy": numpy_solve, "scipy": scipy_solve, "torch": torch_cholesky},
        make_error=solve_error,
        tolerance=1e-12,
        operations=n**3 / 3 + 2 * n * n * OUTPUTS,
        arithmetic="float64",
        rounds=rounds,
        rows=n,
        cols=n,
    )


def solve_batched_case(n: int) -> Case:
    def arrays() -> tuple[Array, ...]:
        X = np.random.default_rng(0).standard_normal((SYSTEMS, 2 * n, n))
        G = with_ridge(X.transpose(0, 2, 1) @ X)
        return G, G.sum(-1, keepdims=True)

    return Case(
        kernel="solve_batched",
        dtype="float64",
        size=f"{SYSTEMS} of n = {n}",
        make_arrays=arrays,
        ours=functools.partial(bf.solve_batched, eps=0),
        others={"numpy": numpy_solve, "torch": torch_solve},
        make_error=solve_error,
        tolerance=1e-12,
        operations=SYSTEMS * (n**3 / 3 + 2 * n * n),
        arithmetic="float64",
    )


DTYPES = ("float32", "float64", "uint8")

CASES = [
    *(gram_case(dtype, ROWS, images.PIXELS) for dtype in DTYPES),
    *(gram_case(dtype, ROWS, images.PIXELS, of_images=True) for dtype in DTYPES),
    gram_case("float32", ROWS, 100),
    gram_case("float32", ROWS, 60),
    gram_case("float32", 32, 8, bare=True),
    *(
        linear_case(dtype, activation, ROWS)
        for dtype in ("float32", "uint8")
        for activation in ("softmax", "tanh")
    ),
    linear_case("float32", "softmax", ROWS, of_images=False),
    linear_case("float32", "softmax", 1, bare=True),
    linear_case("float32", "softmax", 8),
    cross_case("float32"),
    cross_case("float32", of_images=False),
    cross_case("uint8"),
    components_case(),
    components_case(of_images=False),
    solve_case(images.PIXELS + 1),
    solve_batched_case(16),
    solve_batched_case(32),
    *(activation_case(name, inverse=inverse) for name in ACTIVATIONS for inverse in (False, True)),
]

MANY_ROWS = 1000 if SMALL else 1_000_000
SCALED_COLS = 16 if SMALL else 256
SCALED_ROWS = 100 if SMALL else 10_000
SCALING = [
    *(gram_case(dtype, 8, 4, bare=True) for dtype in DTYPES),
    *(
        gram_case(dtype, rows, SCALED_COLS, rounds=3 if rows == 1_000_000 else 9)
        for dtype in DTYPES
        for rows in (100, 1000, 10_000, 100_000, 1_000_000)
        if rows <= MANY_ROWS
    ),
    *(
        gram_case(dtype, SCALED_ROWS, cols, rounds=9)
        for dtype in DTYPES
        for cols in (4, 16, 64, 1024)
        if cols != SCALED_COLS
    ),
    *(solve_case(n, rounds=9) for n in (64, 128, 256, 512, 1024, 2048) if n <= LARGE),
    *([] if SMALL else [solve_case(LARGE, rounds=5)]),
]

AT_EVERY_LEVEL = [
    *(gram_case(dtype, 100 if SMALL else 1000, images.PIXELS, rounds=9) for dtype in DTYPES),
    linear_case("float32", "softmax", ROWS // 6),
    activation_case("tanh", inverse=False),
    solve_case(64 if SMALL else 512),
]
