"""Print the peak of this CPU's arithmetic, by type and number of threads: `python -m bench.peak`."""

from .measure.peaks import Peaks

ROUNDS = 100


def main() -> None:
    """Print one line per type and number of threads."""
    peaks = Peaks()
    for _ in range(ROUNDS):
        for dtype in ("float32", "float64", "uint8"):
            for n_threads in (1, 2):
                peaks.measure(dtype, n_threads)
    print(peaks)


if __name__ == "__main__":
    main()
