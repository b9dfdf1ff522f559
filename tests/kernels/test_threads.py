"""Kernels in several Python threads at once, without the GIL, and after a fork.

Also: who decides how many threads a call uses.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.kernels import linear_bytes
from tests.support.subprocesses import import_error, output_of, run_code, run_python

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6000, 50), dtype=np.uint8)
FEATURES = RNG.normal(size=(6000, 50)).astype(np.float32)
TARGETS = RNG.normal(size=(6000, 4)).astype(np.float32)
WEIGHTS = RNG.normal(size=(50, 20)).astype(np.float32)
INTEGERS = RNG.integers(-128, 128, (50, 20)).astype(np.int8)
SCALES = RNG.normal(size=20).astype(np.float32)
VALUES = bf.linear(FEATURES, WEIGHTS, activation="softmax")
GRAM = np.atleast_2d(np.cov(RNG.normal(size=(300, 900))))
GRAMS = np.stack([GRAM[i : i + 16, i : i + 16] for i in range(0, 280, 4)] * 30)

CALLS: dict[str, Callable[..., Any]] = {
    "gram of uint8": lambda **threads: bf.gram(PIXELS, **threads),
    "gram of float32": lambda **threads: bf.gram(FEATURES, **threads),
    "cross": lambda **threads: bf.cross(FEATURES, TARGETS, **threads),
    "solve": lambda **threads: bf.solve(GRAM, GRAM[:, :9], **threads),
    "solve_layer": lambda **threads: bf.solve_layer(FEATURES, TARGETS, bias=True, **threads),
    "solve_batched": lambda **threads: bf.solve_batched(GRAMS, GRAMS[:, :, :3], **threads),
    "linear": lambda **threads: bf.linear(FEATURES, WEIGHTS, activation="tanh", **threads),
    "linear_bytes": lambda n_threads: linear_bytes(PIXELS, INTEGERS, SCALES, n_threads=n_threads),
    "tangent": lambda **threads: bf.tangent(
        FEATURES, WEIGHTS, VALUES, activation="softmax", **threads
    ),
    "softplus": lambda **threads: bf.activations["softplus"].forward(FEATURES, **threads),
    "jacobian": lambda **threads: bf.activations["tanh"].jacobian(FEATURES, FEATURES, **threads),
    "squared_slopes": lambda **threads: bf.activations["tanh"].squared_slopes(FEATURES, **threads),
}

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")


@pytest.mark.parametrize("python_threads", [2, 4])
@pytest.mark.parametrize("n_threads", [None, 1, 2])
def test_kernels_called_at_the_same_time_give_right_answers(
    python_threads: int, n_threads: int | None
) -> None:
    alone = {name: call(n_threads=1).tobytes() for name, call in CALLS.items()}
    wide = PIXELS.astype(np.int64)
    np.testing.assert_array_equal(CALLS["gram of uint8"](n_threads=1), wide.T @ wide)
    together = threading.Barrier(python_threads)

    def wrong_answers(first: int) -> list[str]:
        names = list(CALLS)[first:] + list(CALLS)[:first]  # each thread starts with another kernel
        together.wait(timeout=60)
        return [
            name
            for _ in range(5)
            for name in names
            if CALLS[name](n_threads=n_threads).tobytes() != alone[name]
        ]

    with ThreadPoolExecutor(python_threads) as pool:
        for wrong in pool.map(wrong_answers, range(python_threads)):
            assert wrong == []


@pytest.mark.parametrize("name", CALLS)
def test_another_python_thread_runs_while_a_kernel_works(name: str) -> None:
    # With a switch interval this long nobody can take the GIL from this thread: the other one
    # gets it only from a kernel that lets go of it. A busy machine may start the other thread
    # late, hence several calls.
    gate = threading.Lock()
    steps: list[int] = []

    def count() -> None:
        with gate:
            steps.extend(range(100))

    interval = sys.getswitchinterval()
    other = threading.Thread(target=count)
    gate.acquire()
    sys.setswitchinterval(1000.0)
    try:
        other.start()
        gate.release()
        before = len(steps)
        progress = 0
        for _ in range(500):
            CALLS[name](n_threads=1)
            progress = len(steps) - before
            if progress:
                break
    finally:
        sys.setswitchinterval(interval)
        other.join()
    assert before == 0
    assert progress > 0


@pytest.mark.parametrize("name", CALLS)
def test_the_number_of_threads_changes_no_bit_of_a_kernels_answer(name: str) -> None:
    one = CALLS[name](n_threads=1)
    for n_threads in (None, 2, 3, 64):
        assert CALLS[name](n_threads=n_threads).tobytes() == one.tobytes()


# Processes. Each script runs several threads in the parent first, so that the pool is there.

WORK = """
import multiprocessing, os, signal, sys
import numpy as np
import bpls_fast as bf

rng = np.random.default_rng(0)
A = rng.integers(0, 256, (5000, 60), dtype=np.uint8)
W = rng.normal(size=(60, 8))
wide = A.astype(np.int64)
exact = (wide.T @ wide).astype(float)

def right(n_threads):
    G = bf.gram(A, n_threads=n_threads)
    X = bf.solve(G, G[:, :3], n_threads=n_threads)
    Z = bf.linear(A, W, n_threads=n_threads)
    return bool(
        np.array_equal(G, exact)
        and np.abs(X - np.eye(60, 3)).max() < 1e-3
        and np.abs(Z - np.stack([(A * w).sum(axis=1) for w in W.T], axis=1)).max() < 1e-8
    )
"""

FORK = """
assert right(2) and right(3)
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends a child that hangs, by a signal that the parent sees
    try:
        ok = right(None) and right(2) and right(3)
        if os.path.isdir("/proc/self/task"):
            ok = ok and len(os.listdir("/proc/self/task")) == 3
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        ok = False
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert right(2)
sys.exit(abs(os.waitstatus_to_exitcode(status)))
"""

POOL = """
if __name__ == "__main__":
    assert right(2) and right(3)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        answers = pool.map_async(right, [None, 1, 2, None]).get(timeout=90)
    assert answers == [True] * 4, answers
"""


@needs_fork
def test_a_kernel_after_fork_gives_the_right_answer_on_all_threads() -> None:
    output_of(run_code(WORK + FORK, BPLS_NUM_THREADS=None))


@pytest.mark.parametrize("method", [pytest.param("fork", marks=needs_fork), "spawn"])
def test_kernels_in_a_process_pool_give_right_answers(method: str, tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(WORK + POOL)
    output_of(run_python(str(script), method))


# How many threads.

THREADS = "import bpls_fast; print(bpls_fast.config()['threads'])"


def test_at_least_one_thread_is_used() -> None:
    assert bf.config()["threads"] >= 1


@pytest.mark.parametrize("value", ["1", "2", "3"])
@pytest.mark.parametrize("shared", [None, "4"])
def test_bpls_num_threads_sets_the_number_of_threads(value: str, shared: str | None) -> None:
    finished = run_code(THREADS, BPLS_NUM_THREADS=value, OMP_NUM_THREADS=shared)
    assert output_of(finished) == f"{value}\n"


def test_an_empty_bpls_num_threads_counts_as_not_set() -> None:
    empty = output_of(run_code(THREADS, BPLS_NUM_THREADS=""))
    assert empty == output_of(run_code(THREADS, BPLS_NUM_THREADS=None))


@pytest.mark.parametrize(("value", "threads"), [("3", 3), ("5,2", 5)])
def test_without_bpls_num_threads_that_of_openmp_holds(value: str, threads: int) -> None:
    finished = run_code(THREADS, BPLS_NUM_THREADS=None, OMP_NUM_THREADS=value)
    assert output_of(finished) == f"{threads}\n"


@pytest.mark.parametrize("value", ["", "0", "x", "-3"])
def test_a_variable_of_openmp_that_is_no_number_is_left_to_openmp(value: str) -> None:
    without = output_of(run_code(THREADS, BPLS_NUM_THREADS=None, OMP_NUM_THREADS=None))
    assert output_of(run_code(THREADS, BPLS_NUM_THREADS=None, OMP_NUM_THREADS=value)) == without


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_by_default_there_is_a_thread_for_each_cpu_of_the_process() -> None:
    code = """
    import os
    import bpls_fast

    allowed = len(os.sched_getaffinity(0))
    assert 1 <= bpls_fast.config()["threads"] <= allowed
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    assert bpls_fast.config()["threads"] == 1
    """
    output_of(run_code(code, BPLS_NUM_THREADS=None, OMP_NUM_THREADS=None))


def test_no_openmp_library_is_loaded() -> None:
    code = """
    import pathlib
    import numpy, bpls_fast

    maps = pathlib.Path("/proc/self/maps")
    loaded = maps.read_text() if maps.exists() else ""
    assert "gomp" not in loaded and "libomp" not in loaded and "iomp" not in loaded, loaded
    """
    output_of(run_code(code))


@pytest.mark.parametrize("value", ["0", "-1", "x", "2.5"])
def test_a_wrong_bpls_num_threads_is_an_import_error_naming_it(value: str) -> None:
    message = import_error(BPLS_NUM_THREADS=value)
    assert "BPLS_NUM_THREADS" in message
    assert value in message


@pytest.mark.parametrize("bpls_num_threads", [None, "2"])
def test_a_limit_of_threadpoolctl_holds_while_it_lasts(bpls_num_threads: str | None) -> None:
    pytest.importorskip("threadpoolctl")
    finished = run_code(
        """
        import bpls_fast, threadpoolctl

        print(bpls_fast.config()["threads"])
        with threadpoolctl.threadpool_limits(1):
            print(bpls_fast.config()["threads"])
        print(bpls_fast.config()["threads"])
        """,
        OMP_NUM_THREADS="2",
        BPLS_NUM_THREADS=bpls_num_threads,
    )
    assert output_of(finished).split() == ["2", "1", "2"]
