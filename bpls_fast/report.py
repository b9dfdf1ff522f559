"""What a fit tells about itself: `FitReport`, and the `Recorder` that the sweeps write it with."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bpls_fast.network import Network

__all__ = ["FitReport", "Recorder"]

PHASES = ("forward", "gram", "solve", "target")

Callback = Callable[["FitReport"], Any]


@dataclass
class FitReport:
    """How a fit went; it prints as a small table.

    Attributes
    ----------
    method : str
        Which algorithm ran.
    iterations : int
        Iterations done after the first estimate; a fit without iterations has 0.
    misses : list of int
        Wrongly classified training rows: after the first estimate, then after each iteration.
    accuracy : list of float
        Share of the training weight that is classified rightly, in the same order.
    loss : list of float
        Root-mean-square training error of each candidate, where numbers are fitted instead of classes.
    seconds : dict of str to float
        Seconds spent in each phase: forward, gram, solve, target, and in all: total.
    eps : float
        The ridge that was used: the one asked for unless a factorisation failed and it had to grow.
    margins : list of float
        How far inside the range of its activation the target of each hidden layer was kept.
    best : int
        The index, in `misses` or `loss`, of the weights that were kept.
    stopped : str
        Why the fit ended.
    network : Network or None
        While the fit runs, the network of the latest estimate, for a callback to look at; None when it has ended.
    """

    method: str
    iterations: int = 0
    misses: list[int] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    eps: float = 0.0
    margins: list[float] = field(default_factory=list)
    best: int = 0
    stopped: str = ""
    network: Network | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.stopped}" if self.stopped else self.method]
        if self.misses:
            lines.append("iteration   misses  accuracy")
            lines += [
                f"{index:9}{misses:9}{accuracy:10.2%}{'  kept' if index == self.best else ''}"
                for index, (misses, accuracy) in enumerate(
                    zip(self.misses, self.accuracy, strict=True)
                )
            ]
        if self.loss:
            lines.append("candidate  training error")
            lines += [
                f"{index:9}{loss:16.6g}{'  kept' if index == self.best else ''}"
                for index, loss in enumerate(self.loss)
            ]
        margins = " ".join(f"{margin:g}" for margin in self.margins)
        lines.append(f"eps {self.eps:g}, margins {margins}" if margins else f"eps {self.eps:g}")
        lines.append(
            ", ".join(f"{phase} {seconds:.3f} s" for phase, seconds in self.seconds.items())
        )
        return "\n".join(lines)


class Recorder:
    """Writes the report of one fit: times of phases, the ridge, progress, the caller's callback."""

    def __init__(
        self,
        method: str,
        eps: float,
        *,
        verbose: int = 0,
        callback: Callback | None = None,
        steps: int = 1,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is {callback!r}; expected a function of one FitReport")
        self.report = FitReport(method, eps=eps)
        self._callback = callback
        self._bar = _progress_bar(steps, method) if verbose else None
        self._began = time.perf_counter()
        self._warned = False

    def trial(self) -> Recorder:
        """Give a recorder for a trial inside this fit: the same ridge, a report of its own, no warnings."""
        trial = Recorder("trial", self.report.eps)
        trial._warned = True
        return trial

    def add_times(self, trial: Recorder) -> None:
        """Count the time of a trial as time of this fit."""
        for phase in PHASES:
            self.report.seconds[phase] += trial.report.seconds[phase]

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.report.seconds[name] += time.perf_counter() - began

    def grow_eps(self, eps: float, reason: Exception) -> None:
        """Note a larger ridge; warn the first time."""
        if not self._warned:
            warnings.warn(
                f"the ridge eps = {self.report.eps:g} was too small and grows to {eps:g}: {reason}",
                RuntimeWarning,
                stacklevel=4,
            )
        self._warned = True
        self.report.eps = eps

    def step(self) -> bool:
        """Tell the caller of one more estimate; give whether the callback asked to stop by returning True."""
        if self._bar is not None:
            self._bar(self.report)
        return self._callback is not None and self._callback(self.report) is True

    def finish(self, stopped: str) -> FitReport:
        """Close the report."""
        self.report.stopped = stopped
        self.report.network = None
        self.report.seconds["total"] = time.perf_counter() - self._began
        if self._bar is not None:
            self._bar(None)
        return self.report


def _progress_bar(steps: int, method: str) -> Callable[[FitReport | None], None]:
    """Give a function that shows one more step, and with None the end: tqdm's bar, or lines without it."""
    try:
        from tqdm.auto import tqdm
    except ImportError:

        def line(report: FitReport | None) -> None:
            if report is not None:
                print(f"{method}: {_latest(report)}")

        return line
    bar = tqdm(total=steps, desc=method)

    def advance(report: FitReport | None) -> None:
        if report is None:
            bar.close()
        else:
            bar.set_postfix_str(_latest(report))
            bar.update()

    return advance


def _latest(report: FitReport) -> str:
    if report.misses:
        return f"{report.misses[-1]} misses, accuracy {report.accuracy[-1]:.2%}"
    return f"training error {report.loss[-1]:.4g}"
