"""The results of `pytest bench --benchmark-json=FILE`, as groups of contenders.

Imports only the standard library, so that reports can be made where nothing else is installed.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..contenders import OURS, competitors

NOISY = 0.2
"""A ratio whose relative spread over the rounds is larger tells who wins, but not by how much."""
UNSURE = "≈"
"""The mark of such a ratio."""


def spread(samples: Sequence[float]) -> float | None:
    """Return the distance between the quartiles relative to the median, or None for fewer than three samples."""
    if len(samples) < 3:
        return None
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return (third - first) / statistics.median(samples)


def ratio_spread(theirs: Sequence[float], ours: Sequence[float]) -> float | None:
    """Return the spread of the ratio over the rounds, from the same rounds of both or else from both spreads."""
    if len(theirs) == len(ours):
        return spread([other / own for other, own in zip(theirs, ours, strict=True)])
    parts = [spread(theirs), spread(ours)]
    return None if None in parts else sum(part**2 for part in parts if part) ** 0.5


@dataclass(frozen=True)
class Timed:
    """Something that was timed: the seconds of every sample."""

    samples: list[float]

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float | None:
        return spread(self.samples)


@dataclass(frozen=True)
class Result(Timed):
    """The samples of one contender of a group."""

    contender: str
    info: dict[str, Any]

    @property
    def cost(self) -> float:
        """The value that is compared: the best seconds, the median of first calls, or the bytes of memory."""
        seconds = self.median if self.info.get("cold") else self.best
        return float(self.info.get("more_bytes", seconds))

    @property
    def reached(self) -> bool:
        """Whether it reached the required accuracy."""
        return bool(self.info.get("reached", True))


@dataclass(frozen=True)
class Group:
    """Contenders of the same task in the same run."""

    name: str
    suite: str
    results: dict[str, Result]

    @property
    def compared(self) -> list[str]:
        """The competitors. Curves have no ratio, and a call without Python is not a competitor."""
        if self.suite == "accuracy" or OURS not in self.results:
            return []
        return competitors(self.results)

    @property
    def in_bytes(self) -> bool:
        """Whether memory was measured, not time."""
        return "more_bytes" in self.results[OURS].info

    def ratio(self, contender: str, base: str = OURS) -> float | None:
        """Return the competitor's cost divided by ours, or None if one of them never reached the accuracy."""
        if contender not in self.results or base not in self.results:
            return None
        theirs, ours = self.results[contender], self.results[base]
        return theirs.cost / ours.cost if theirs.reached and ours.reached else None

    @property
    def strongest(self) -> str | None:
        """The competitor that needs the least, of those that reached the accuracy."""
        ratios = {name: ratio for name in self.compared if (ratio := self.ratio(name)) is not None}
        return min(ratios, key=ratios.__getitem__, default=None)

    def lost(self, contender: str) -> bool:
        """Return whether the contender needs less, or alone reached the accuracy."""
        ratio = self.ratio(contender)
        if ratio is None:
            return self.results[contender].reached and not self.results[OURS].reached
        return ratio < 1

    def noise(self, contender: str) -> float | None:
        """Return the relative spread of the ratio over the rounds."""
        if self.in_bytes:
            return None
        return ratio_spread(self.results[contender].samples, self.results[OURS].samples)


def moved(old: Group, new: Group, contender: str) -> bool:
    """Return whether two runs differ: in the winner, or in the ratio by more than NOISY."""
    before, now = old.ratio(contender), new.ratio(contender)
    if before is None or now is None:
        return before is not now
    return old.lost(contender) != new.lost(contender) or abs(now / before - 1) > NOISY


@dataclass(frozen=True)
class Run:
    """One run of the suite: its date, its environment, and its groups by name."""

    when: str
    environment: dict[str, str]
    groups: dict[str, Group]
    skipped: dict[str, int] = field(default_factory=dict)
    """The number of rows that were not measured, by file and reason."""

    def of_suite(self, suite: str) -> list[Group]:
        return [group for group in self.groups.values() if group.suite == suite]


def load(path: Path) -> Run:
    """Read a file of results; raise ValueError if it is another file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content["benchmarks"]
        environment = dict(content["machine_info"]["environment"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is not a result of `pytest bench --benchmark-json=FILE`: {error!r}"
        ) from error
    groups: dict[str, Group] = {}
    for row in rows:
        info = dict(row["extra_info"])
        contender, suite = info.pop("contender"), info.pop("suite")
        group = groups.setdefault(row["group"], Group(row["group"], suite, {}))
        group.results[contender] = Result(row["stats"]["data"], contender, info)
    return Run(content["datetime"], environment, groups, content.get("skipped", {}))
