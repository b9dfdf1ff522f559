"""Progress of a fit on the terminal: tqdm's bar, or lines where tqdm is not installed."""

from __future__ import annotations

from collections.abc import Callable

from bpls_fast.training.report import FitReport

__all__ = ["progress_display"]


def progress_display(steps: int | None, method: str) -> Callable[[FitReport | None], None]:
    """Return a function that displays one more step of a report, and with None closes the display."""
    try:
        from tqdm.auto import tqdm
    except ImportError:

        def line(report: FitReport | None) -> None:
            if report is not None:
                print(f"{method}: {report.latest()}")

        return line
    bar = tqdm(total=steps, desc=method)

    def advance(report: FitReport | None) -> None:
        if report is None:
            bar.close()
        else:
            bar.set_postfix_str(report.latest())
            bar.update()

    return advance
