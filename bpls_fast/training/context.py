"""The state that every running fit shares: `FitContext` owns its ridge, backend, timers, progress and callback."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bpls_fast.kernels import NonFiniteError
from bpls_fast.network import Network
from bpls_fast.network.arguments import is_number
from bpls_fast.training.progress import progress_display
from bpls_fast.training.report import PHASES, FitReport

__all__ = ["Callback", "FitContext", "TooLargeError"]

Callback = Callable[[FitReport], Any]


class TooLargeError(ValueError):
    """Numbers inside a fit are not finite, or so large that their products overflow."""


class Phase:
    """A block of code that is timed.

    Everything that a caller passed in has been checked before, so a value that is not finite here has grown too large:
    it raises `TooLargeError`. Other errors are passed on.
    """

    __slots__ = ("_began", "_name", "_seconds")

    def __init__(self, seconds: dict[str, float], name: str) -> None:
        self._seconds, self._name = seconds, name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._seconds[self._name] += time.perf_counter() - self._began
        if isinstance(error, NonFiniteError):
            raise TooLargeError(
                f"the numbers of this fit grew too large ({error}); scale the columns of X and Y, use float64, "
                "or take activations of bounded range"
            ) from error


class FitContext:
    """The ridge, the backend, the timers and the callback of one fit, and the report that it writes.

    Use it in a `with` statement, which closes the progress display however the fit ends.

    Parameters
    ----------
    method : str
        The name of the algorithm, for the report.
    eps : float
        The ridge to begin with.
    backend : {"cpu", "cuda"}
        Where the fit runs.
    steps : int, optional
        The number of calls of `step` to expect, if it is known.
    verbose : int
        Whether to display progress.
    callback : function of one FitReport, optional
        Called by `step`.
    phases : tuple of str
        The phases that are timed.

    Attributes
    ----------
    eps : float
        The ridge; `grow_ridge` raises it.
    backend : str
    report : FitReport
        Written by the fit; nothing reads it to decide anything.
    """

    def __init__(
        self,
        method: str,
        eps: float,
        *,
        backend: str = "cpu",
        steps: int | None = 1,
        verbose: int = 0,
        callback: Callback | None = None,
        phases: tuple[str, ...] = PHASES,
    ) -> None:
        if not is_number(eps):
            raise TypeError(f"eps is {eps!r}; expected a number >= 0")
        if not (np.isfinite(eps) and eps >= 0):
            raise ValueError(f"eps is {eps!r}; expected a finite number >= 0")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is {callback!r}; expected a function of one FitReport")
        self.eps = self._requested_eps = float(eps)
        self.backend = backend
        self.report = FitReport(
            method, eps=self.eps, backend=backend, seconds=dict.fromkeys(phases, 0.0)
        )
        self._callback = callback
        self._reason_to_grow: Exception | None = None
        self._seconds_before = 0.0
        self._began = time.perf_counter()
        self._display = progress_display(steps, method) if verbose else None

    def __enter__(self) -> FitContext:
        return self

    def __exit__(self, *_: object) -> None:
        if self._display is not None:
            self._display(None)

    def resume(self) -> None:
        """Continue after `finish`; the time in between is not counted."""
        self._began = time.perf_counter()
        self._requested_eps, self._reason_to_grow = self.eps, None

    def trial(self) -> FitContext:
        """Return a context for a trial inside this fit: the same ridge and backend, its own report, no progress."""
        return FitContext("trial", self.eps, backend=self.backend)

    def add_times(self, trial: FitContext) -> None:
        """Count the time of a trial as time of this fit."""
        for phase, seconds in trial.report.seconds.items():
            self.report.seconds[phase] += seconds

    def phase(self, name: str) -> Phase:
        """Return a block of code, for a `with` statement, whose time is added to a phase."""
        return Phase(self.report.seconds, name)

    def grow_ridge(self, eps: float, reason: Exception) -> None:
        """Set a larger ridge for the rest of the fit; the first reason is part of the warning of `finish`."""
        self._reason_to_grow = self._reason_to_grow or reason
        self.eps = self.report.eps = eps

    def use_ridge(self, eps: float) -> None:
        """Set the ridge that was chosen for the rest of the fit."""
        self.eps = self.report.eps = self._requested_eps = eps

    @property
    def has_callback(self) -> bool:
        """Whether the caller looks at the networks of a running fit."""
        return self._callback is not None

    def step(self, network: Network | None) -> bool:
        """Report one more iteration; return whether the callback asked to stop by returning True."""
        self.report.network = network
        if self._display is not None:
            self._display(self.report)
        answer = self._callback is not None and self._callback(self.report)
        return isinstance(answer, (bool, np.bool_)) and bool(answer)

    def finish(self, stopped: str) -> FitReport:
        """Complete the report; warn, in the name of the caller's caller, if the ridge grew."""
        self.report.stopped = stopped
        self.report.network = None
        self._seconds_before += time.perf_counter() - self._began
        self.report.seconds["total"] = self._seconds_before
        if self._reason_to_grow is not None:
            warnings.warn(
                f"eps = {self._requested_eps:g} was too small and grew to {self.eps:g}: {self._reason_to_grow}",
                RuntimeWarning,
                stacklevel=3,
            )
        return self.report
