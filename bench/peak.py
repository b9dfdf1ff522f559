"""What this CPU's arithmetic allows at most: multiply-adds in registers, of the level in use.

A burst is shorter than a time slice of the system and the best of many counts, so that they can lie between
the calls that are compared with them. `python bench/peak.py` prints the peaks alone.
"""

from bpls_fast import _core

SECONDS = 0.002
BURSTS = 5
DTYPES = ("float32", "float64", "uint8")


class Peaks:
    """The best operations per second seen so far; a multiplication and an addition are two."""

    def __init__(self) -> None:
        self._best: dict[tuple[str, int], float] = {}

    def measure(self, dtype: str, n_threads: int) -> None:
        """Measure some bursts more. uint8 stands for the exact products of bytes."""
        key = dtype, n_threads
        bursts = [_core.peak(dtype, n_threads, SECONDS) for _ in range(BURSTS)]
        self._best[key] = max(self._best.get(key, 0.0), *bursts)

    def best(self, dtype: str, n_threads: int) -> float:
        """Give the best of all bursts."""
        return self._best[dtype, n_threads]

    def __str__(self) -> str:
        return "\n".join(
            f"{f'peak {dtype}':<13}{rate / 1e9:.1f} Gop/s, {n_threads} thread(s)"
            for (dtype, n_threads), rate in sorted(self._best.items())
        )


def main() -> None:
    """Print one line per type and number of threads."""
    peaks = Peaks()
    for _ in range(100):
        for dtype in DTYPES:
            for n_threads in (1, 2):
                peaks.measure(dtype, n_threads)
    print(peaks)


if __name__ == "__main__":
    main()
