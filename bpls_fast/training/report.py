"""What a fit tells about itself: `FitReport`. Fits write it and never read it to decide anything."""

from __future__ import annotations

from dataclasses import dataclass, field

from bpls_fast.network import Network

__all__ = ["FitReport"]

PHASES = ("forward", "gram", "solve", "target")
"""The phases that every fit reports its time for."""


@dataclass
class FitReport:
    """What happened in a fit; it prints as a small table.

    Lists have one entry per sweep, or per candidate of Algorithm 1, and stay empty where a method does not measure the
    quantity. After `partial_fit`, `rows` and `loss` hold the sweeps of the latest call.

    Attributes
    ----------
    method : str
        The algorithm that ran.
    iterations : int
        The number of sweeps.
    misses : list of int
        Misclassified training rows.
    accuracy : list of float
        Training accuracy, weighted by `sample_weight`.
    loss : list of float
        Training loss: the root-mean-square error of each candidate of Algorithm 1; in refined sweeps, the mean squared
        error before each step, ridge included, or the mean cross-entropy, weight decay included.
    candidates : list of str
        Names of the candidates of Algorithm 1.
    rows : list of int
        Rows that a refined sweep saw.
    validation : list of (int, float)
        Pairs of the sweeps done so far and the score on the validation rows: accuracy or R².
    seconds : dict of str to float
        Seconds spent in each phase (forward, gram, solve, target; in refined sweeps also start and step) and in total.
    eps : float
        The ridge that was used: the requested one, unless a factorization failed and it had to grow.
    backend : str
        Where the fit ran: "cpu" or "cuda".
    trials : list of str
        The settings that were tried on held-out rows, in words; the last one was chosen.
    margins : list of float
        Distance of each hidden layer's target from the ends of the range of its activation.
    best : int
        The sweep or candidate whose weights were kept, counted from 0.
    stopped : str
        Why the fit ended.
    network : Network or None
        While the fit runs, the latest network, for a callback; None when the fit has ended.

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
    trials: list[str] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    best: int = 0
    stopped: str = ""
    network: Network | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.stopped}" if self.stopped else self.method]
        lines += [f"tried {trial}" for trial in self.trials[:-1]]
        lines += [f"chosen {trial}" for trial in self.trials[-1:]]
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
                + self._kept(sweep - 1)
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

    def latest(self) -> str:
        """Describe the latest iteration in a few words, for progress displays."""
        if self.misses:
            return f"{self.misses[-1]} misses, accuracy {self.accuracy[-1]:.2%}"
        return f"{'loss' if self.rows else 'training error'} {self.loss[-1]:.4g}"

    def _kept(self, iteration: int) -> str:
        return "  kept" if iteration == self.best else ""
