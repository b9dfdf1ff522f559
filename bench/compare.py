"""Compare two runs of the suite: what became slower, beyond the noise.

    python -m bench.compare old.json new.json [--threshold 0.2]

The competitors of a group show how much slower the machine was; only a loss relative to them counts. A change within
the spread of the rounds is noise. The exit code is 1 if a group is slower by more than the threshold, and 2 if the
files have no group in common.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .contenders import OURS
from .report.results import NOISY, Group, Run, load, moved
from .report.text import markdown, shown

THRESHOLD = 0.2


class Change(NamedTuple):
    """A group in both runs: our cost in each, the slow-down of the machine, and the noise of our rounds."""

    group: str
    in_bytes: bool
    old: float
    new: float
    machine: float
    noise: float
    moved: list[str]
    """Contenders whose verdict changed, or whose ratio changed by more than NOISY."""

    @property
    def slower(self) -> float:
        """Return our own slow-down, without the machine's: 1.1 is 10 % slower than before."""
        return self.new / self.old / self.machine

    def verdict(self, threshold: float) -> str:
        if self.slower > 1 + threshold and self.slower > 1 + self.noise:
            return "SLOWER"
        if 1 / self.slower > 1 + threshold and 1 / self.slower > 1 + self.noise:
            return "faster"
        return "noisy" if self.noise > threshold else "same"


def change(old: Group, new: Group) -> Change:
    """Compare two runs of a group."""
    both = [name for name in new.compared if name in old.compared]
    drifts = [new.results[name].cost / old.results[name].cost for name in both]
    spreads = [group.results[OURS].spread or 0.0 for group in (old, new)]
    return Change(
        new.name,
        new.in_bytes,
        old.results[OURS].cost,
        new.results[OURS].cost,
        statistics.median(drifts) if drifts else 1.0,
        sum(spreads),
        [name for name in both if moved(old, new, name)],
    )


def changes(old: Run, new: Run) -> list[Change]:
    """Compare the groups that both runs have."""
    return [
        change(old.groups[name], group)
        for name, group in new.groups.items()
        if name in old.groups and OURS in group.results and OURS in old.groups[name].results
    ]


def table(found: Sequence[Change], threshold: float) -> str:
    lines = [
        [
            one.group,
            amount(one.old, one.in_bytes),
            amount(one.new, one.in_bytes),
            f"{one.slower - 1:+.0%}",
            f"{one.machine - 1:+.0%}",
            f"{one.noise:.0%}",
            one.verdict(threshold),
            ", ".join(one.moved),
        ]
        for one in found
    ]
    names = ["group", "old", "new", "ours", "machine", "noise", "verdict", "ratio changed against"]
    return markdown(names, lines)


def amount(cost: float, in_bytes: bool) -> str:
    return f"{cost / 2**20:.0f} MiB" if in_bytes else shown(cost)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument(
        "--threshold", type=float, default=THRESHOLD, help="0.2 allows 20 %% (default)"
    )
    options = parser.parse_args(arguments)
    try:
        old, new = load(options.old), load(options.new)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    found = changes(old, new)
    if not found:
        print("the two files have no group in common")
        return 2
    print(table(found, options.threshold))
    slower = [one.group for one in found if one.verdict(options.threshold) == "SLOWER"]
    changed = [one.group for one in found if one.moved]
    missing = [name for name in old.groups if name not in new.groups]
    print(f"\n{len(found)} groups, {len(slower)} slower than before by more than the noise")
    print(f"{len(changed)} with another winner, or a ratio that changed by more than {NOISY:.0%}")
    if missing:
        print("not in the new run: " + ", ".join(missing))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
