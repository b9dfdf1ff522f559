"""What a Gram call needs beyond its outputs: at most 16 MiB per thread, however many rows there are.

The arrays are views of one file of 1 GiB, mapped into memory, so that their own pages never count as anonymous memory.
"""

import sys
from pathlib import Path

import pytest

from tests.support.subprocesses import output_of, run_code

GIBIBYTE = 1 << 30
ALLOWED_PER_THREAD = 16 << 20

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux")
    or "RssAnon" not in Path("/proc/self/status").read_text(encoding="ascii"),
    reason="no RssAnon in /proc/self/status",
)

# Prints the largest anonymous resident memory during one call, less what was there before and the outputs.
MEASURE = """
    import sys, threading, time
    import numpy as np
    import bpls_fast as bf

    kernel, path, dtype, rows, cols, weighted, n_threads = sys.argv[1:]
    rows, cols, n_threads = int(rows), int(cols), int(n_threads)

    def mapped(dtype, *shape):
        return np.memmap(path, dtype, "r", shape=shape)

    def resident():
        with open("/proc/self/status") as status:
            line = next(line for line in status if line.startswith("RssAnon"))
        return int(line.split()[1]) * 1024

    A, B = mapped(dtype, rows, cols), mapped("float32", rows, 3)
    sample_weight = mapped(weighted, rows) if weighted else None

    def call():
        options = dict(bias=True, sample_weight=sample_weight, n_threads=n_threads)
        results = getattr(bf, kernel)(A, B, **options)
        return results if kernel == "gram" else (results,)

    # Starts the threads, with scratch memory too small to serve the call that is measured.
    bf.gram(np.zeros((200_000, 2), np.float32), n_threads=n_threads)
    before = most = resident()
    done = threading.Event()

    def watch():
        global most
        while not done.wait(0.0005):
            most = max(most, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    results = call()
    done.set()
    watcher.join()
    extra = max(most, resident()) - before - sum(result.nbytes for result in results)
    total = rows * (float(sample_weight[0]) if weighted else 1.0)
    expected = [total * float(A[0, 0]) * float(X[0, 0]) for X in (A, B)]
    for result, value in zip(reversed(results), reversed(expected)):
        np.testing.assert_allclose(result[:cols, : min(cols, result.shape[1])], value, rtol=1e-4)
    print(extra)
"""


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """Give a file of one byte, over and over: in each type one number everywhere, and none of them zero."""
    path = tmp_path_factory.mktemp("memory") / "values"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"\x3f" * (GIBIBYTE // 64))
    yield path
    path.unlink()


def extra_bytes(kernel, *arguments):
    return int(output_of(run_code(MEASURE, kernel, *map(str, arguments))))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(
    ("dtype", "cols", "weighted"),
    [
        ("uint8", 64, ""),
        ("float32", 16, ""),
        ("float64", 16, ""),
        ("float32", 16, "float32"),
        ("float64", 16, "float64"),
    ],
)
def test_a_gram_of_a_gibibyte_needs_little_memory(values, dtype, cols, weighted, n_threads):
    rows = GIBIBYTE // (cols * {"uint8": 1, "float32": 4, "float64": 8}[dtype])
    extra = extra_bytes("gram", values, dtype, rows, cols, weighted, n_threads)
    assert extra <= n_threads * ALLOWED_PER_THREAD


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("weighted", ["", "float64"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("kernel", ["gram", "cross"])
def test_many_columns_need_little_memory(values, kernel, dtype, weighted, n_threads):
    extra = extra_bytes(kernel, values, dtype, 1000, 3000, weighted, n_threads)
    assert extra <= n_threads * ALLOWED_PER_THREAD
