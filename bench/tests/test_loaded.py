"""Busy loops end with their block, and figures are held against their bounds."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .. import ROOT, loaded
from ..loaded import ALONE, Line, fit_lines, fork_line, train_line
from ..measure.load import at_once, busy_loops

PATIENCE_SECONDS = 30


def runs(process: int) -> bool:
    """Return whether a process runs; one that ended but is not yet reaped does not."""
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def ends(process: int) -> bool:
    until = time.monotonic() + PATIENCE_SECONDS
    while runs(process) and time.monotonic() < until:
        time.sleep(0.05)
    return not runs(process)


def test_busy_loops_run_within_the_block_and_not_after_it() -> None:
    with busy_loops(2) as processes:
        assert len(set(processes)) == 2
        assert all(map(runs, processes))
    assert not any(map(runs, processes))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_busy_loops_end_when_the_block_is_interrupted(error: type[BaseException]) -> None:
    processes: list[int] = []

    def interrupted() -> None:
        with busy_loops(1) as started:
            processes.extend(started)
            raise error

    with pytest.raises(error):
        interrupted()
    assert processes
    assert not any(map(runs, processes))


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_busy_loops_end_when_their_parent_is_killed(number: str) -> None:
    code = (
        "import time\nfrom bench.measure.load import busy_loops\n"
        "with busy_loops(1) as processes:\n    print(*processes, flush=True)\n    time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        assert parent.stdout
        loop = int(parent.stdout.readline())
        assert runs(loop)
        parent.send_signal(getattr(signal, number))
    assert ends(loop)


def test_processes_at_once_start_together_and_each_prints_its_line() -> None:
    echo = "print('ready', flush=True); print('got', input())"
    assert at_once([sys.executable, "-c", echo], 3) == ["got go"] * 3


def test_a_process_that_fails_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        at_once([sys.executable, "-c", "raise SystemExit(3)"], 1)


def test_fits_are_compared_with_the_median_of_a_process_alone() -> None:
    alone, beside, two, four = fit_lines(
        {
            ALONE: [1.0, 1.0, 9.0],
            "beside two busy loops": [2.0, 3.0, 90.0],
            "two processes at once": [2.6],
            "four processes at once": [5.0],
        }
    )
    assert alone.kept is None
    assert "1.00 s, worst 9.00 s" in alone.figure
    assert (beside.kept, two.kept, four.kept) == (True, False, True)
    assert beside.figure.startswith("3.00x alone")


def test_a_bound_that_is_not_kept_is_marked() -> None:
    assert train_line([0.04, 0.05, 0.9]).kept
    assert not train_line([0.06]).kept
    assert fork_line(2, 2).kept
    assert fork_line(2, 1).cells[-1] == "**no**"
    assert Line("a", "b", "c", None).cells[-1] == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_one_run_prints_every_figure_beside_its_bound(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPLS_BENCH_SMALL", "1")
    monkeypatch.setattr(loaded, "PAUSED_ROUNDS", 1)
    loaded.main(["--rounds", "1"])
    printed = capsys.readouterr().out
    for text in (*loaded.SCENARIOS, "after a pause", "train digits", "fork()"):
        assert text in printed
    for bound in (
        "<= 3x alone",
        "<= 2.5x alone",
        "<= 5x alone",
        "no slower than numpy",
        "<= 0.05 s",
    ):
        assert bound in printed
