"""Fresh processes, for peak memory and for the instruction set that a library picks when it is loaded."""

import os
import subprocess
import sys
from pathlib import Path

from .. import ROOT


def run_module(
    name: str, *arguments: object, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run `python -m bench.<name>` at the root of the clone, with some environment variables set."""
    merged = os.environ | environment
    if merged.get("BPLS_DATA"):
        merged["BPLS_DATA"] = str(Path(merged["BPLS_DATA"]).expanduser().resolve())
    return subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *map(str, arguments)],
        cwd=ROOT,
        env=merged,
        capture_output=True,
        text=True,
    )


def output_of_module(name: str, *arguments: object, **environment: str) -> str:
    """Return what `run_module` prints; raise RuntimeError if the process fails."""
    done = run_module(name, *arguments, **environment)
    if done.returncode:
        command = " ".join(["bench." + name, *map(str, arguments)])
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout
