"""A computation at one size, its contenders, and the check of their answers.

A competitor is what an expert would call. Where a library offers several forms of a call, the fastest on this machine
competes; its data are ready in the layout and type it likes best, and it need not do what we do on top (check the
values, mirror a triangle, accumulate in float64).
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..contenders import BARE, OURS, OURS_FLOAT32
from .libraries import INSTALLED

Array = NDArray[Any]
Call = Callable[[], Any]
Forms = Callable[..., Sequence[Call]]
"""Maps the arrays of a case, the first as floats, to the forms of a call."""
ByteForms = Callable[..., Sequence[Call]]
"""Maps the arrays of a case, as they are, and `n_threads` to the forms of a call."""


@dataclass(frozen=True, eq=False)
class Case:
    """One computation at one size."""

    kernel: str
    dtype: str
    """Type of the first array. The competitors of uint8 get a float32 copy made in advance."""
    size: str
    make_arrays: Callable[[], tuple[Array, ...]]
    ours: Callable[..., Array]
    """Takes the arrays, and `n_threads` if `takes_threads`."""
    others: Mapping[str, Forms]
    make_error: Callable[..., Callable[[Array], float]]
    """Takes the arrays; returns the function that measures a result against float64."""
    tolerance: float
    """The largest error that still counts as the same answer."""
    summed: int = 0
    """The terms of a sum. Competitors may add them in float32, one after the other."""
    of_bytes: Mapping[str, ByteForms] = field(default_factory=dict)
    """Competitors that take the bytes themselves."""
    operations: float = 0
    """Useful operations; 0 where a count would mislead, as for images, whose zeros we skip."""
    arithmetic: str = "float32"
    """Type of the arithmetic whose peak bounds the operations."""
    exact: bool = False
    """Whether our own error must be 0."""
    bare: Callable[..., float] | None = None
    """Takes the arrays, n_threads and repeats; returns the seconds of a call without Python."""
    floors: Callable[[], Mapping[str, float]] | None = None
    """Returns the seconds that the hardware needs for parts of a call; they are shown with `bare`."""
    takes_threads: bool = True
    to_float: Callable[[Array], Array] = lambda A: A.astype(np.float32)
    """Makes the float32 copy of uint8."""
    rounds: int = 15
    """The most rounds."""
    rows: int | None = None
    """Rows of the first array, where the report draws time against them."""
    cols: int | None = None

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.dtype} {self.size}"

    @property
    def contenders(self) -> list[str]:
        """All contenders, ours first."""
        ours = [OURS, *([OURS_FLOAT32] if self.dtype == "uint8" else [])]
        return [*ours, *self.others, *self.of_bytes]

    @property
    def installed_contenders(self) -> list[str]:
        return [name for name in self.contenders if INSTALLED.get(name, True)]

    @property
    def rows_of_results(self) -> list[str]:
        """The contenders and, where it is measured, the call without Python."""
        return [*self.contenders, *([BARE] if self.bare else [])]

    @functools.cached_property
    def arrays(self) -> tuple[Array, ...]:
        return self.make_arrays()

    @functools.cached_property
    def error(self) -> Callable[[Array], float]:
        return self.make_error(*self.arrays)

    def release(self) -> None:
        """Drop the arrays; the next use makes them again."""
        for name in ("arrays", "error"):
            self.__dict__.pop(name, None)

    def forms(self, contender: str, n_threads: int) -> Sequence[Call]:
        """Prepare the forms of a contender's call. Call this within `limited(n_threads)`."""
        options = {"n_threads": n_threads} if self.takes_threads else {}
        if contender == OURS:
            return [functools.partial(self.ours, *self.arrays, **options)]
        if contender in self.of_bytes:
            return self.of_bytes[contender](*self.arrays, n_threads)
        A, *others = self.arrays
        A = self.to_float(A) if self.dtype == "uint8" else A
        if contender == OURS_FLOAT32:
            return [functools.partial(self.ours, A, *others, **options)]
        return self.others[contender](A, *others)

    def checked_error(self, contender: str, result: Any) -> float:
        """Return the error of a contender's result; raise AssertionError if it exceeds the tolerance."""
        error = self.error(np.asarray(result))
        limit = self.tolerance
        if contender == OURS:
            limit = 0 if self.exact else limit
        elif self.dtype != "float64":
            limit = max(limit, self.summed * float(np.finfo(np.float32).eps) / 2)
        assert error <= limit, f"{self.name}: {contender} is off by {error:.1e}, above {limit:.0e}"
        return error


def relative_error(result: Array, exact: Array) -> float:
    """Return the largest difference, relative to the largest exact value."""
    return float(np.abs(result - exact).max() / np.abs(exact).max())
