"""Fresh Python processes for what needs one: variables read at import, crashes, command lines.

They start in tests/, so that the source tree's own bpls_fast/ folder, which holds no compiled
extension, never shadows the installed package.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).parent


def run(*command: str, timeout: float = 120, **environment: str | None) -> "Finished":
    """Run a command with some environment variables set (None takes one away)."""
    merged = {**os.environ, **environment}
    return subprocess.run(
        command,
        cwd=TESTS,
        env={name: value for name, value in merged.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def run_python(*arguments: str, timeout: float = 120, **environment: str | None) -> "Finished":
    return run(sys.executable, *arguments, timeout=timeout, **environment)


def run_code(
    code: str, *arguments: str, timeout: float = 120, **environment: str | None
) -> "Finished":
    return run_python("-c", textwrap.dedent(code), *arguments, timeout=timeout, **environment)


def output_of(finished: "Finished") -> str:
    """Return the standard output of a process that must have ended well."""
    assert finished.returncode == 0, (
        f"exit code {finished.returncode}\n{finished.stdout}\n{finished.stderr}"
    )
    return finished.stdout


Finished = subprocess.CompletedProcess[str]
