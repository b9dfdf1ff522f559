"""The peak of this CPU's arithmetic: multiply-adds in registers at the instruction set in use.

A burst is shorter than a time slice of the system, and the best of many counts, so that bursts can be interleaved with
the calls that are compared with them.
"""

from bpls_fast import _core

SECONDS = 0.002
BURSTS = 5


def burst_peak(dtype: str, n_threads: int) -> float:
    """Return the best operations per second of a few bursts. uint8 stands for the exact products of bytes."""
    return max(_core.peak(dtype, n_threads, SECONDS) for _ in range(BURSTS))


def read_rate(size: int) -> float:
    """Return the bytes per second of reading `size` bytes again and again, the best of a few bursts."""
    return max(_core.read_rate(size, SECONDS) for _ in range(BURSTS))


class Peaks:
    """The best operations per second seen so far; a multiply-add counts as two."""

    def __init__(self) -> None:
        self._best: dict[tuple[str, int], float] = {}

    def measure(self, dtype: str, n_threads: int) -> None:
        """Measure a few more bursts."""
        key = dtype, n_threads
        self._best[key] = max(self._best.get(key, 0.0), burst_peak(dtype, n_threads))

    def best(self, dtype: str, n_threads: int) -> float:
        """Return the best of all bursts so far."""
        return self._best[dtype, n_threads]

    def __str__(self) -> str:
        return "\n".join(
            f"{f'peak {dtype}':<13}{rate / 1e9:.1f} Gop/s, {n_threads} thread(s)"
            for (dtype, n_threads), rate in sorted(self._best.items())
        )
