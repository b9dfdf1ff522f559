"""Time `import bpls_fast` once numpy is loaded, in fresh, interleaved processes: `python -m bench.import_time`."""

import statistics
import subprocess
import sys
import tempfile

ROUNDS = 15
CLOCK = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def seconds(module: str) -> float:
    """Return the seconds of one import in a fresh process."""
    code = "import numpy; " * (module != "numpy") + CLOCK.format(module)
    # In a clone the source folder would hide the installed package.
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tempfile.gettempdir(), capture_output=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    """Print one line per module."""
    times: dict[str, list[float]] = {"numpy": [], "bpls_fast": []}
    for _ in range(ROUNDS):
        for module, measured in times.items():
            measured.append(seconds(module) * 1e3)
    for module, label in (("numpy", "import numpy"), ("bpls_fast", "bpls_fast, numpy loaded")):
        best, median = min(times[module]), statistics.median(times[module])
        print(f"{label:<24} best {best:7.2f} ms   median {median:7.2f} ms")


if __name__ == "__main__":
    main()
