"""Times, ratios and tables as text."""

import statistics
from collections.abc import Mapping, Sequence

from .results import NOISY, UNSURE


def times(ratio: float) -> str:
    """Return a ratio with three digits, or all digits before the point."""
    return f"{ratio:.{2 if ratio < 10 else 1 if ratio < 100 else 0}f}x"


def summary(ratios: Sequence[tuple[float, str]]) -> list[str]:
    """Return the geometric mean, the share of at least 1x, and the worst ratio with its text, as cells."""
    values = [ratio for ratio, _ in ratios]
    won = sum(ratio >= 1 for ratio in values) / len(values)
    worst, text = min(ratios)
    mean = statistics.geometric_mean(values)
    return [times(mean), f"{won:.0%}", f"{times(worst)} {text}"]


def unsure_mark(noise: float | None) -> str:
    """Return the mark of a ratio whose rounds spread too far."""
    return f"{UNSURE} " if (noise or 0) > NOISY else ""


def times_floors(seconds: float, floors: Mapping[str, float]) -> list[str]:
    """Return the time of a call as multiples of what the hardware needs for its parts."""
    return [f"{times(seconds / least)} {name}" for name, least in floors.items()]


def shown(value: float) -> str:
    """Return a time with a unit and three digits, or all digits of seconds."""
    if value >= 1000:
        return f"{value:.0f} s"
    scale, unit = next(
        (pair for pair in ((1.0, "s"), (1e-3, "ms")) if value >= pair[0]), (1e-6, "µs")
    )
    return f"{value / scale:#.3g}".rstrip(".") + f" {unit}"


def markdown(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return lines as a Markdown table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(names, *lines, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        + " |"
        for line in (names, rule, *lines)
    )
