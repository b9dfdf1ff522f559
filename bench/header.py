"""What stands above the figures of a benchmark: CPU, level, compiler, versions, commit and settings."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import numpy as np
from kernel_cases import SMALL, scipy_linalg, torch
from threadpoolctl import threadpool_info

import bpls_fast as bf

SETTINGS = (
    "BPLS_ISA",
    "BPLS_NUM_THREADS",
    "ATEN_CPU_CAPABILITY",
    "MKL_ENABLE_INSTRUCTIONS",
    "OPENBLAS_CORETYPE",
)


def cpu_name() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def commit() -> str:
    """Name the commit that is checked out, and whether files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown: not in a git checkout"
    return done.stdout.strip()


def header(**more: str) -> str:
    """Name what a reader needs in order to judge the figures, and what a benchmark adds."""
    now = bf.config()
    versions = [f"Python {platform.python_version()}", f"numpy {np.__version__}"]
    if scipy_linalg:
        versions.append(f"scipy {version('scipy')}")
    if torch:
        capability = torch.backends.cpu.get_cpu_capability()
        mkl = "with" if torch.backends.mkl.is_available() else "without"
        versions.append(f"torch {torch.__version__} ({capability}, {mkl} MKL)")
    blas = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    settings = [f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ]
    lines = {
        "CPU": f"{cpu_name()}, {os.cpu_count()} logical",
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "level": f"{now['isa']['active']} [{now['flags'][now['isa']['active']]}]",
        "compiler": now["compiler"],
        "versions": ", ".join([f"bpls_fast {now['version']}", *versions]),
        "commit": commit(),
        "BLAS": ", ".join(sorted(blas)),
        "settings": " ".join(settings) or "none",
        **more,
    }
    if SMALL:
        lines["sizes"] = "cut down by BPLS_BENCH_SMALL: the times mean nothing"
    return "\n".join(f"{name:<13}{value}" for name, value in lines.items())
