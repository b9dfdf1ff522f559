"""Cases at one instruction set, in a process of its own, since every library picks its level when it is loaded.

`rows_at(level)` starts the process and returns what it measured. The competitors are limited to the same level where
their library allows it, to show what an older CPU would give.
"""

import functools
import json
from typing import Any

import bpls_fast as bf

from ..cases.kernels import AT_EVERY_LEVEL
from ..contenders import OURS
from ..measure.peaks import Peaks
from ..measure.processes import output_of_module
from ..measure.rounds import group_of, measure
from .parameters import THREADS

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
    """Measure all cases at a level; return the arguments of `record` by case, number of threads and contender."""
    printed = output_of_module("suites.levels", BPLS_ISA=level, **_OTHERS_AT.get(level, {}))
    rows: dict[str, Any] = json.loads(printed)
    return rows


def main() -> None:
    """Print the measured rows as JSON."""
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
