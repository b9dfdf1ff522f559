"""The file that `pytest bench --benchmark-json=FILE` wrote, as groups of contenders whose first is ours.

Knows no library but the standard one: reports can be made where nothing is installed or measured.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS = "ours"
NOISY = 0.2
"""A ratio whose rounds spread by more than this part of it says who wins, but not by how much."""


def spread(samples: Sequence[float]) -> float | None:
    """Give the distance between the quartiles as a part of the median; nothing of fewer than three."""
    if len(samples) < 3:
        return None
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return (third - first) / statistics.median(samples)


@dataclass(frozen=True)
class Result:
    """What one contender of a group needed."""

    contender: str
    samples: list[float]
    info: dict[str, Any]

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float | None:
        return spread(self.samples)

    @property
    def cost(self) -> float:
        """What is compared: the best seconds, or the bytes where memory was measured."""
        return float(self.info.get("more_bytes", self.best))

    @property
    def reached(self) -> bool:
        """Whether it got to the accuracy that was asked for."""
        return bool(self.info.get("reached", True))


@dataclass(frozen=True)
class Group:
    """Contenders that did the same in the same run."""

    name: str
    suite: str
    results: dict[str, Result]

    @property
    def compared(self) -> list[str]:
        """Those that ours stands against. Curves have no ratio, and C++ without Python is no competitor."""
        if self.suite == "accuracy" or OURS not in self.results:
            return []
        return [name for name in self.results if not name.startswith(OURS) and name != "bare C++"]

    @property
    def in_bytes(self) -> bool:
        """Whether memory was measured, not time."""
        return "more_bytes" in self.results[OURS].info

    def ratio(self, contender: str, base: str = OURS) -> float | None:
        """Give how many times more a contender needs than ours; nothing where one never got there."""
        if contender not in self.results or base not in self.results:
            return None
        theirs, ours = self.results[contender], self.results[base]
        return theirs.cost / ours.cost if theirs.reached and ours.reached else None

    def lost(self, contender: str) -> bool:
        """Tell whether the contender needs less, or alone got there."""
        ratio = self.ratio(contender)
        if ratio is None:
            return self.results[contender].reached and not self.results[OURS].reached
        return ratio < 1

    def noise(self, contender: str) -> float | None:
        """Give the spread of the ratio from round to round, as a part of it."""
        theirs, ours = self.results[contender].samples, self.results[OURS].samples
        if self.in_bytes:
            return None
        if len(theirs) == len(ours):
            return spread([other / own for other, own in zip(theirs, ours, strict=True)])
        parts = [spread(theirs), spread(ours)]
        return None if None in parts else sum(part**2 for part in parts if part) ** 0.5


def moved(old: Group, new: Group, contender: str) -> bool:
    """Tell whether two runs differ in their verdict: in the winner, or in the ratio by more than NOISY."""
    before, now = old.ratio(contender), new.ratio(contender)
    if before is None or now is None:
        return before is not now
    return old.lost(contender) != new.lost(contender) or abs(now / before - 1) > NOISY


@dataclass(frozen=True)
class Run:
    """One run of the suite: when and on what, and its groups by name."""

    when: str
    environment: dict[str, str]
    groups: dict[str, Group]

    def of_suite(self, suite: str) -> list[Group]:
        return [group for group in self.groups.values() if group.suite == suite]


def load(path: Path) -> Run:
    """Read a file of pytest-benchmark; say what is wrong with one that is not ours."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content["benchmarks"]
        environment = dict(content["machine_info"]["environment"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is no result of `pytest bench --benchmark-json=FILE`: {error!r}"
        ) from error
    groups: dict[str, Group] = {}
    for row in rows:
        info = dict(row["extra_info"])
        contender, suite = info.pop("contender"), info.pop("suite")
        group = groups.setdefault(row["group"], Group(row["group"], suite, {}))
        group.results[contender] = Result(contender, row["stats"]["data"], info)
    return Run(content["datetime"], environment, groups)
