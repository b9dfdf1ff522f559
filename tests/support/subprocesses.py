"""Fresh Python processes for what needs one: variables read at import, crashes, command lines.

They start in a folder without Python files, so that no folder of the clone hides an installed package.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests import ROOT

FOLDER = ROOT / "tests" / "cpp"
TIMEOUT = 300.0  # seconds: a busy machine is no failure


def run(
    *command: str, folder: Path = FOLDER, timeout: float = TIMEOUT, **environment: str | None
) -> "Finished":
    """Run a command in a folder with some environment variables set (None takes one away)."""
    merged = {**os.environ, **environment}
    return subprocess.run(
        command,
        cwd=folder,
        env={name: value for name, value in merged.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def run_python(*arguments: str, timeout: float = TIMEOUT, **environment: str | None) -> "Finished":
    return run(sys.executable, *arguments, timeout=timeout, **environment)


def run_code(
    code: str, *arguments: str, timeout: float = TIMEOUT, **environment: str | None
) -> "Finished":
    """Run a program that may import from `tests`: the clone's root is the last place where modules are looked for."""
    code = f"import sys; sys.path.append({str(ROOT)!r})\n{textwrap.dedent(code)}"
    return run_python("-c", code, *arguments, timeout=timeout, **environment)


def output_of(finished: "Finished") -> str:
    """Return the standard output of a process that must have ended well."""
    assert finished.returncode == 0, (
        f"exit code {finished.returncode}\n{finished.stdout}\n{finished.stderr}"
    )
    return finished.stdout


def import_error(**environment: str | None) -> str:
    """Return the sentence of the ImportError that the package must end with in this environment."""
    finished = run_code("import bpls_fast", **environment)
    assert finished.returncode == 1, f"{finished.returncode}\n{finished.stderr}"
    message = finished.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError")
    return message


def assert_same_output_at_every_thread_count(program: str) -> None:
    """Run a program with one, two and three threads, twice with two: it must print the same every time."""
    runs = [output_of(run_code(program, BPLS_NUM_THREADS=threads)) for threads in "1223"]
    assert len(set(runs)) == 1


Finished = subprocess.CompletedProcess[str]
