"""A machine that others use too: busy loops, and processes that work at once. They end with the block that starts them.

Ended means killed, also on Ctrl-C or an error. A busy loop that outlives its parent, because that was killed itself,
sees this and ends; in any case it ends after MOST_SECONDS.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from .. import ROOT

MOST_SECONDS = 600
BUSY = """
import os, sys, time
parent, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
print("busy", flush=True)
while os.getppid() == parent and time.monotonic() < end:
    for _ in range(100_000):
        pass
"""


@contextlib.contextmanager
def started(commands: Sequence[Sequence[str]]) -> Iterator[list["subprocess.Popen[str]"]]:
    """Start commands at the root of the clone, with pipes; kill those that still run at the end of the block."""
    with contextlib.ExitStack() as stack:
        processes = []
        for command in commands:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.callback(end, process)
            processes.append(process)
        yield processes


def end(process: "subprocess.Popen[str]") -> None:
    """Kill a process if it still runs, wait for it, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def expect(process: "subprocess.Popen[str]") -> str:
    """Return the next line that a process prints; raise RuntimeError if it ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
    return line.strip()


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[list[int]]:
    """Keep `count` cores busy within the block; give the ids of the processes."""
    loop = [sys.executable, "-c", BUSY, str(os.getpid()), str(MOST_SECONDS)]
    with started([loop] * count) as processes:
        for process in processes:
            expect(process)
        yield [process.pid for process in processes]


def at_once(command: Sequence[str], count: int) -> list[str]:
    """Run a command in `count` processes at once; return the line that each prints.

    The command prints a line when it is ready, reads one, works, and prints the line that is returned.
    """
    with started([command] * count) as processes:
        for process in processes:
            expect(process)
        for process in processes:
            assert process.stdin is not None
            print("go", file=process.stdin, flush=True)
        return [expect(process) for process in processes]
