"""What a fit tells about itself: `FitReport`, and the `Recorder` that the sweeps write it with."""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bpls_fast.network import Network

__all__ = ["FitReport", "Recorder", "TooLargeError"]

PHASES = ("forward", "gram", "solve", "target")
"""What every fit spends its time on."""

NOT_FINITE = re.compile("(contains|holds) (NaN|infinity)|overflow")
"""What kernels and networks say of numbers that are no numbers any more."""

Callback = Callable[["FitReport"], Any]


@dataclass
class FitReport:
    """How a fit went; it prints as a small table.

    Attributes
    ----------
    method : str
        Which algorithm ran.
    iterations : int
        Sweeps done.
    misses : list of int
        Wrongly classified training rows after each sweep.
    accuracy : list of float
        Share of the training weight that is classified rightly, in the same order.
    loss : list of float
        Root-mean-square training error of each candidate, where numbers are fitted instead of classes. Of refined
        sweeps, the mean over rows of the squared error before the step of each sweep, ridge included.
    candidates : list of str
        What each of them is, in the same order.
    rows : list of int
        Rows that each refined sweep saw; of a stream, like `loss`, those of the latest call.
    validation : list of (int, float)
        How many sweeps had been done when a network was tried on the rows that were held out, and its score: the share
        of the weight that is classified rightly, or R².
    seconds : dict of str to float
        Seconds spent in each phase: forward, gram, solve, target, in refined sweeps also start and step, and in all:
        total.
    eps : float
        The ridge that was used: the one asked for unless a factorisation failed and it had to grow.
    backend : str
        Where it ran: "cpu" or "cuda".
    margins : list of float
        How far inside the range of its activation the target of each hidden layer was kept.
    best : int
        The index, in `misses` or `loss`, of the weights that were kept; after refined sweeps, how many of them the
        weights that were kept had seen.
    stopped : str
        Why the fit ended.
    network : Network or None
        While the fit runs, the network of the latest estimate, for a callback to look at; None when it has ended.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> net = bf.Network([1, 2], output_activation="identity")
    >>> report = bf.fit_classifier(net, np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"])
    >>> print(report)
    Algorithm 2: no row is missed
    iteration   misses  accuracy
            1        0   100.00%  kept
    eps 1e-06
    forward ... s, gram ... s, solve ... s, target ... s, total ... s
    """

    method: str
    iterations: int = 0
    misses: list[int] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    eps: float = 0.0
    backend: str = "cpu"
    margins: list[float] = field(default_factory=list)
    best: int = 0
    stopped: str = ""
    network: Network | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.stopped}" if self.stopped else self.method]
        if self.misses:
            lines.append("iteration   misses  accuracy")
            lines += [
                f"{index + 1:9}{misses:9}{accuracy:10.2%}{self._kept(index)}"
                for index, (misses, accuracy) in enumerate(
                    zip(self.misses, self.accuracy, strict=True)
                )
            ]
        if self.rows:
            lines.append("sweep    rows        loss" + ("  validation" if self.validation else ""))
            scores = dict(self.validation)
            lines += [
                f"{sweep:5}{rows:8}{loss:12.6g}"
                + (f"{scores[sweep]:12.2%}" if sweep in scores else "")
                + ("  kept" if sweep == self.best else "")
                for sweep, (rows, loss) in enumerate(
                    zip(self.rows, self.loss, strict=True), self.iterations - len(self.rows) + 1
                )
            ]
        elif self.loss:
            lines.append("training error  candidate")
            lines += [
                f"{loss:14.6g}  {candidate}{self._kept(index)}"
                for index, (loss, candidate) in enumerate(
                    zip(self.loss, self.candidates, strict=True)
                )
            ]
        margins = " ".join(f"{margin:g}" for margin in self.margins)
        lines.append(f"eps {self.eps:g}, margins {margins}" if margins else f"eps {self.eps:g}")
        lines.append(
            ", ".join(f"{phase} {seconds:.3f} s" for phase, seconds in self.seconds.items())
        )
        return "\n".join(lines)

    def _kept(self, index: int) -> str:
        return "  kept" if index == self.best else ""


class TooLargeError(ValueError):
    """Numbers inside a fit left the range of floats, or came so close to its end that their products would."""


class Recorder:
    """Writes the report of one fit: times of phases, the ridge, progress, the caller's callback.

    Used in a `with` statement, which closes the progress bar however the fit ends. `steps` may be unknown: None.
    """

    def __init__(
        self,
        method: str,
        eps: float,
        *,
        verbose: int = 0,
        callback: Callback | None = None,
        steps: int | None = 1,
        phases: tuple[str, ...] = PHASES,
    ) -> None:
        if not isinstance(eps, (int, float, np.integer, np.floating)):
            raise TypeError(f"eps is {eps!r}; expected a number >= 0")
        if not (np.isfinite(eps) and eps >= 0):
            raise ValueError(f"eps is {eps!r}; expected a finite number >= 0")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback is {callback!r}; expected a function of one FitReport")
        self.report = FitReport(method, eps=float(eps), seconds=dict.fromkeys(phases, 0.0))
        self._callback = callback
        self._asked = float(eps)
        self._reason: Exception | None = None
        self._began = time.perf_counter()
        self._bar = _progress_bar(steps, method) if verbose else None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar(None)

    def resume(self) -> None:
        """Go on with a report that was finished: the time between is not counted."""
        self._began = time.perf_counter() - self.report.seconds.get("total", 0.0)
        self._asked, self._reason = self.report.eps, None

    def trial(self) -> Recorder:
        """Give a recorder for a trial inside this fit: the same ridge, a report of its own, no progress."""
        return Recorder("trial", self.report.eps)

    def add_times(self, trial: Recorder) -> None:
        """Count the time of a trial as time of this fit."""
        for phase in PHASES:
            self.report.seconds[phase] += trial.report.seconds[phase]

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase.

        All that a caller gave was checked before, so NaN, infinities and overflows that are refused here come from
        numbers that grew too large. Any other error is passed on.
        """
        began = time.perf_counter()
        try:
            yield
        except ValueError as error:
            if not NOT_FINITE.search(str(error)):
                raise
            raise TooLargeError(
                f"the numbers of this fit grew too large ({error}); scale the columns of X and Y, use float64, "
                "or take activations of bounded range"
            ) from error
        finally:
            self.report.seconds[name] += time.perf_counter() - began

    def grow_eps(self, eps: float, reason: Exception) -> None:
        """Note a larger ridge, and what made it necessary the first time."""
        self._reason = self._reason or reason
        self.report.eps = eps

    @property
    def has_callback(self) -> bool:
        """Whether anybody looks at the networks on the way."""
        return self._callback is not None

    def step(self, network: Network | None) -> bool:
        """Tell the caller of one more estimate; give whether the callback asked to stop by returning True."""
        self.report.network = network
        if self._bar is not None:
            self._bar(self.report)
        asked = self._callback is not None and self._callback(self.report)
        return isinstance(asked, (bool, np.bool_)) and bool(asked)

    def finish(self, stopped: str) -> FitReport:
        """Close the report; warn, in the name of the caller's caller, if the ridge grew."""
        self.report.stopped = stopped
        self.report.network = None
        self.report.seconds["total"] = time.perf_counter() - self._began
        if self._reason is not None:
            warnings.warn(
                f"eps = {self._asked:g} was too small and grew to {self.report.eps:g}: {self._reason}",
                RuntimeWarning,
                stacklevel=3,
            )
        return self.report


def _progress_bar(steps: int | None, method: str) -> Callable[[FitReport | None], None]:
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
    return f"{'loss' if report.rows else 'training error'} {report.loss[-1]:.4g}"
