"""Cases at one instruction set: a process of its own, since every library picks its level when it is loaded.

`rows_at(level)` starts it and gives what it measured. The competitors are kept to the same level where they can be: an
older CPU is what is asked for.
"""

import functools
import json
import os
import subprocess
import sys
from typing import Any

from interleaved import group_of, measure
from kernel_cases import AT_EVERY_LEVEL, OURS
from parameters import THREADS
from peak import Peaks

import bpls_fast as bf

LEVELS: list[str] = bf.config()["isa"]["supported"]
_OTHERS_AT = {
    "generic": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Prescott",
    },
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
}


@functools.cache
def rows_at(level: str) -> dict[str, Any]:
    """Measure all cases at a level; by case and number of threads, what `record` takes of every contender."""
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {"BPLS_ISA": level} | _OTHERS_AT.get(level, {}),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"the process at level {level} ended with {done.stderr}")
    rows: dict[str, Any] = json.loads(done.stdout)
    return rows


def main() -> None:
    """Print what was measured, as JSON."""
    peaks = Peaks()
    rows = {}
    for case in AT_EVERY_LEVEL:
        for n_threads in THREADS:
            row = measure(case, n_threads, None, peaks)
            for name, samples in row.samples.items():
                part = row.part_of_peak(peaks) if name == OURS else None
                rows[f"{group_of(case, n_threads)}, {name}"] = {
                    "samples": samples,
                    "error": row.errors[name],
                    "part_of_peak": part,
                }
        case.release()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
