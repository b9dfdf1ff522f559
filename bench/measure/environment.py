"""The environment of a benchmark, shown above its figures: CPU, level, compiler, versions, commit and settings."""

import contextlib
import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

import bpls_fast as bf

from .. import ROOT, SMALL
from .libraries import torch

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
    """Return the commit that is checked out, marked if files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown: not in a git checkout"
    return done.stdout.strip()


def caches() -> str:
    """Return the caches of the first core."""
    found = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (index / name).read_text().strip() for name in ("level", "type", "size")
        )
        found.append(f"L{level} {kind.lower()} {size}")
    return ", ".join(found) or "unknown"


def versions() -> str:
    """Return the versions of the libraries that are installed."""
    found = [f"bpls_fast {bf.__version__}", f"Python {platform.python_version()}"]
    for name in ("numpy", "scipy", "scikit-learn", "onnxruntime", "numkong", "pytest-benchmark"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    if torch:
        capability = torch.backends.cpu.get_cpu_capability()
        mkl = "with" if torch.backends.mkl.is_available() else "without"
        found.append(f"torch {torch.__version__} ({capability}, {mkl} MKL)")
    return ", ".join(found)


def load_average() -> str:
    """Return the load of the last 1, 5 and 15 minutes."""
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


def environment() -> dict[str, str]:
    """Return what a reader needs in order to judge the figures."""
    now = bf.config()
    blas = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    settings = [f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ]
    active = now["isa"]["active"]
    lines = {
        "CPU": f"{cpu_name()}, {os.cpu_count()} logical",
        "caches": caches(),
        "load average": load_average(),
        "level": f"{active} [{now['flags'][active]}]",
        "compiler": now["compiler"],
        "flags": now["build"],
        "versions": versions(),
        "commit": commit(),
        "BLAS": ", ".join(sorted(blas)),
        "threads": f"{now['threads']} by default",
        "settings": " ".join(settings) or "none",
    }
    if SMALL:
        lines["sizes"] = "cut down by BPLS_BENCH_SMALL: the times mean nothing"
    return lines


def header(**more: str) -> str:
    """Return the environment, and what a benchmark adds, as lines of text."""
    lines = environment() | more
    return "\n".join(f"{name:<13}{value}" for name, value in lines.items())
