"""What a call costs beyond its work: every hot function from Python, less the same call in C++ alone.

`python -m bench.calls` prints nanoseconds of small calls on one thread: the best of many short runs, Python and C++ by
turns.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import bpls_fast as bf
from bpls_fast import _core

LIMIT = 600
"""Nanoseconds that a call may cost more than its work."""
CALLS_PER_RUN = 200


def arguments() -> dict[str, Any]:
    """Return small arrays by the names that the calls below use."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(8, 4)).astype(np.float32), rng.normal(size=(8, 2)).astype(np.float32)
    W, N = rng.normal(size=(5, 2)).astype(np.float32), np.full((8, 2), 0.5, np.float32)
    G, C = bf.gram(A, B)
    names = {"bf": bf, "tanh": bf.activations["tanh"]}
    return names | {"A": A, "B": B, "W": W, "N": N, "G": G, "C": C, "Gs": G[None], "Cs": C[None]}


CASES: dict[str, tuple[str, Callable[..., Any]]] = {
    "gram": ("bf.gram(A, n_threads=1)", lambda a, runs: _core.time_gram(a["A"], 1, runs)),
    "cross": (
        "bf.cross(A, B, n_threads=1)",
        lambda a, runs: _core.time_cross(a["A"], a["B"], 1, runs),
    ),
    "solve": (
        "bf.solve(G, C, n_threads=1)",
        lambda a, runs: _core.time_solve(a["G"], a["C"], 1, runs),
    ),
    "solve_layer": (
        "bf.solve_layer(A, B, n_threads=1)",
        lambda a, runs: _core.time_solve_layer(a["A"], a["B"], 1, runs),
    ),
    "solve_batched": (
        "bf.solve_batched(Gs, Cs, n_threads=1)",
        lambda a, runs: _core.time_solve_batched(a["Gs"], a["Cs"], 1, runs),
    ),
    "linear": (
        "bf.linear(A, W, bias=True, activation='tanh', n_threads=1)",
        lambda a, runs: _core.time_linear(a["A"], a["W"], "tanh", 1, runs),
    ),
    "tangent": (
        "bf.tangent(A, W, N, bias=True, activation='tanh', n_threads=1)",
        lambda a, runs: _core.time_tangent(a["A"], a["W"], "tanh", 1, runs),
    ),
    "forward": (
        "tanh.forward(N, n_threads=1)",
        lambda a, runs: _core.time_activation("tanh", a["N"], 1, runs)[0],
    ),
    "inverse": (
        "tanh.inverse(N, n_threads=1)",
        lambda a, runs: _core.time_activation("tanh", a["N"], 1, runs)[1],
    ),
    "derivative": (
        "tanh.derivative(N, n_threads=1)",
        lambda a, runs: _core.time_activation("tanh", a["N"], 1, runs)[2],
    ),
}
"""The call from Python, and the seconds per call of the same work in C++."""


def nanoseconds(name: str, rounds: int) -> tuple[float, float]:
    """Return the best times of a call and of its work alone."""
    arrays = arguments()
    statement, bare = CASES[name]
    timer = timeit.Timer(statement, globals=arrays)
    calls, work = [], []
    for _ in range(rounds):
        calls.append(timer.timeit(CALLS_PER_RUN) / CALLS_PER_RUN)
        work.append(bare(arrays, CALLS_PER_RUN))
    return min(calls) * 1e9, min(work) * 1e9


def main() -> None:
    """Print a table of the times."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.calls")
    parser.add_argument("--rounds", type=int, default=300, help="short runs of each function")
    rounds = parser.parse_args().rounds
    print(f"{'nanoseconds':<14}{'call':>8}{'C++':>8}{'more':>8}   (at most {LIMIT})")
    for name in CASES:
        call, bare = nanoseconds(name, rounds)
        print(f"{name:<14}{call:>8.0f}{bare:>8.0f}{call - bare:>8.0f}")


if __name__ == "__main__":
    main()
