"""Fresh Python processes for what needs one: variables read at import, crashes, command lines.

They start in a folder without Python files, so that no folder of the clone hides an installed package.
"""

import os
import subprocess
import sys
import textwrap

from tests import ROOT

FOLDER = ROOT / "tests" / "cpp"


def run(*command: str, timeout: float = 120, **environment: str | None) -> "Finished":
    """Run a command with some environment variables set (None takes one away)."""
    merged = {**os.environ, **environment}
    return subprocess.run(
        command,
        cwd=FOLDER,
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
    """Run a program that may import from `tests`: the clone's root is the last place where modules are looked for."""
    code = f"import sys; sys.path.append({str(ROOT)!r})\n{textwrap.dedent(code)}"
    return run_python("-c", code, *arguments, timeout=timeout, **environment)


def output_of(finished: "Finished") -> str:
    """Return the standard output of a process that must have ended well."""
    assert finished.returncode == 0, (
        f"exit code {finished.returncode}\n{finished.stdout}\n{finished.stderr}"
    )
    return finished.stdout


Finished = subprocess.CompletedProcess[str]
