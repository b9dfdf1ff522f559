"""The compile gate: every kernel for every architecture, through ptxas, in a process without the simulator.

`python cuda_gate.py` writes the table of registers to docs/gpu-registers.csv; with --check it compares. It refuses
spills, stack frames, more than 48 KiB of shared memory, and float64 in kernels of float32.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

TABLE = Path(__file__).parent.parent / "docs" / "gpu-registers.csv"
ASSEMBLED = {"75": ("75", "80", "86", "89", "90"), "100": ("100", "120")}
"""Numba compiles to PTX for the first of a family; of that ptxas makes machine code for each, as a driver would."""

ARCHITECTURES = tuple(arch for family in ASSEMBLED.values() for arch in family)
SHARED_BYTES = 48 * 1024
COLUMNS = ("kernel", "threads", "shared bytes", *(f"sm_{arch}" for arch in ARCHITECTURES))

# Registers, threads, blocks and shared bytes of a multiprocessor, by compute capability, as in the
# CUDA toolkit's programming guide and cuda_occupancy.h.
REGISTERS = 65536
THREADS = dict.fromkeys(ARCHITECTURES, 1536) | {"75": 1024, "80": 2048, "90": 2048, "100": 2048}
BLOCKS = {"75": 16, "80": 32, "86": 16, "89": 24, "90": 32, "100": 32, "120": 24}
SHARED = {"75": 64, "80": 164, "86": 100, "89": 100, "90": 228, "100": 228, "120": 100}  # KiB


class Variant(NamedTuple):
    """A kernel with the types of its arguments and the threads of its blocks."""

    name: str
    function: object
    types: tuple[object, ...]
    threads: int
    float32: bool  # no float64 may be in it


class Compiled(NamedTuple):
    registers: int
    shared: int
    problems: list[str]


def ptxas() -> str | None:
    return shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")


def variants() -> list[Variant]:
    """Give every kernel; arrays of callers have any strides, our own lie in one piece."""
    from numba import types

    from bpls_fast import activations
    from bpls_fast.cuda import elements, layers, products, systems

    f4, f8, u1, u4, i8, i4 = (
        types.float32,
        types.float64,
        types.uint8,
        types.uint32,
        types.int64,
        types.int32,
    )

    def given(kind, ndim=2):
        return types.Array(kind, ndim, "A")

    def own(kind, ndim=2):
        return types.Array(kind, ndim, "C")

    def product(max_threads):
        return int(np.prod(max_threads))

    found = []

    def add(name, kernel, *arguments, threads, float32=False):
        found.append(Variant(name, kernel.py_func, arguments, product(threads), float32))

    for real, kind, short in ((np.float32, f4, "float32"), (np.float64, f8, "float64")):
        narrow = real is np.float32
        tile = products.TILE[np.dtype(real)]
        for weighted in (False, True):
            kernel = products.floats_kernel(tile, real, weighted)
            name = f"gram {short}" + (" weighted" if weighted else "")
            arrays = (given(kind), given(kind), given(kind, 1), own(kind, 3))
            add(name, kernel, *arrays, *[i8] * 5, threads=tile.threads, float32=narrow)
        if narrow:
            arrays = (given(u1), given(kind), given(kind), own(kind, 3))
            kernel = products.floats_kernel(tile, real, False)
            add(
                "cross uint8 float32",
                kernel,
                *arrays,
                *[i8] * 5,
                threads=tile.threads,
                float32=True,
            )
        tile = layers.TILE[np.dtype(real)]
        for ending, name in layer_endings(activations):
            kernel = layers.layer_kernel(tile, real, ending, name)
            arrays = (given(kind), given(kind), given(kind), own(kind))
            title = f"layer {short} {ending} {name}"
            add(title, kernel, *arrays, i8, kind, kind, threads=tile.threads, float32=narrow)
        if narrow:
            kernel = layers.layer_kernel(tile, real, "forward", "identity")
            arrays = (given(u1), given(kind), own(kind), own(kind))
            title = "layer uint8 forward identity"
            add(title, kernel, *arrays, i8, kind, kind, threads=tile.threads, float32=True)
        for what in ("forward", "inverse", "derivative", "jacobian"):
            for name in activations:
                arrays = (given(kind), given(kind), kind, own(kind))
                if name != "softmax":
                    kernel, threads = elements.activation_kernel(what, name, real), elements.THREADS
                elif what != "derivative":
                    threads = elements.ROW_BLOCK
                    kernel = elements.softmax_kernel(what, real, threads)
                else:
                    continue
                title = f"{what} {short} {name}"
                add(title, kernel, *arrays, threads=threads, float32=narrow)
        for what in ("add", "subtract", "multiply"):
            kernel = elements.arithmetic_kernel(what)
            add(
                f"{what} {short}",
                kernel,
                *[given(kind)] * 3,
                threads=elements.THREADS,
                float32=narrow,
            )
        take = elements.take_kernel()
        arrays = (given(kind), own(i8, 1), own(kind))
        add(f"take {short}", take, *arrays, threads=elements.THREADS, float32=narrow)
        missed = elements.missed_kernel()
        arrays = (given(kind), own(i8, 1), own(u1, 1))
        add(f"missed {short}", missed, *arrays, threads=elements.THREADS, float32=narrow)
        finite = elements.not_finite_kernel()
        arrays = (given(kind), own(i4, 1))
        add(f"not finite {short}", finite, *arrays, threads=elements.THREADS, float32=narrow)
        add(
            f"add up {short}",
            products.add_up_kernel(),
            *(own(kind, 3), own(f8), i8),
            threads=products.ADD_UP_THREADS,
        )
        for weighted in (False, True):
            kernel = elements.column_sums_kernel(True, weighted, elements.ROW_BLOCK)
            title = f"column sums {short}" + (" weighted" if weighted else "")
            arrays = (given(kind), given(kind), given(kind, 1), own(f8, 3))
            add(title, kernel, *arrays, threads=elements.ROW_BLOCK)
    add(
        "copy", elements.copy_kernel(), given(f4), given(f4), threads=elements.THREADS, float32=True
    )
    add(
        "take uint8",
        elements.take_kernel(),
        given(u1),
        own(i8, 1),
        own(u1),
        threads=elements.THREADS,
        float32=True,
    )
    tile = products.TILE[np.dtype(np.uint8)]
    kernel = products.bytes_kernel(tile)
    add("gram uint8", kernel, given(u1), own(u4, 3), *[i8] * 3, threads=tile.threads, float32=True)
    add(
        "add up uint8",
        products.add_up_kernel(),
        own(u4, 3),
        own(f8),
        i8,
        threads=products.ADD_UP_THREADS,
    )
    size, rows, per = systems.BLOCK, systems.ROWS, systems.PER_THREAD
    whole, tail = own(f8), (i8, i8)
    add(
        "diagonal",
        systems.diagonal_kernel(size),
        whole,
        own(f8, 1),
        f8,
        *tail,
        own(i8, 1),
        threads=size,
    )
    add("panel", systems.panel_kernel(size, rows), whole, *tail, threads=rows)
    add("update", systems.update_kernel(size, per), whole, *tail, threads=(size // per) ** 2)
    add("back", systems.back_kernel(size, rows), whole, *tail, threads=rows)
    add(
        "back update",
        systems.back_update_kernel(size, per),
        whole,
        *tail,
        threads=(size // per) ** 2,
    )
    batch = systems.batch_kernel(systems.BATCH_THREADS)
    add("batch", batch, own(f8, 3), own(f8), f8, own(i8, 1), threads=systems.BATCH_THREADS)
    add("ridge", systems.ridge_kernel(), given(f8, 3), f8, i8, own(f8, 1), threads=elements.THREADS)
    arrays = (given(f8, 3), given(f8, 3), own(f8, 1), own(f8, 3), own(f8))
    add("assemble", systems.assemble_kernel(), *arrays, threads=elements.THREADS)
    add("solution", systems.solution_kernel(), own(f8, 3), own(f8, 3), threads=elements.THREADS)
    return found


def layer_endings(activations):
    """Give what a layer can end with; softmax ends with the identity and a kernel of its own."""
    names = [name for name in activations if name != "softmax"]
    yield "residual", "identity"
    for name in names:
        yield "forward", name
        yield "tangent", name
        yield "target", name


def ptx_of(variant: Variant, arch: str) -> str:
    """Compile a kernel to PTX; device functions, too, are then made for an architecture that is not here."""
    from numba import cuda
    from numba.cuda import dispatcher

    capability = (int(arch[:-1]), int(arch[-1]))
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    ptx, _ = cuda.compile(
        variant.function, variant.types, cc=capability, output="ptx", abi="numba", device=False
    )
    assert f".target sm_{arch}" in ptx
    return str(ptx)


def assembled(variant: Variant, path: Path, ptx: str, arch: str) -> Compiled:
    """Assemble a kernel for one architecture and read what ptxas says of it."""
    command = [str(ptxas()), "-v", f"-arch=sm_{arch}", "-o", os.devnull, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr
    if done.returncode:
        return Compiled(0, 0, [f"ptxas: {said.strip()}"])
    bytes_ = re.search(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill", said
    )
    registers = re.search(r"Used (\d+) registers", said)
    assert bytes_, said
    assert registers, said
    shared = re.search(r"(\d+) bytes smem", said)
    shared_bytes = int(shared[1]) if shared else 0
    names = ("stack frame", "spill stores", "spill loads")
    problems = [
        f"{count} bytes of {name}"
        for name, count in zip(names, bytes_.groups(), strict=True)
        if int(count)
    ]
    if shared_bytes > SHARED_BYTES:
        problems.append(f"{shared_bytes} bytes of shared memory")
    if variant.float32 and ".f64" in ptx:
        problems.append("float64 instructions")
    return Compiled(int(registers[1]), shared_bytes, problems)


def occupancy(arch: str, registers: int, threads: int, shared: int) -> float:
    """Give the share of a multiprocessor's threads that can be resident, by registers, threads and shared memory.

    The rules of cuda_occupancy.h: registers are given to a warp 256 at a time, in each quarter of a multiprocessor, and
    shared memory to a block 128 bytes at a time, with 1 KiB on top (sm_75: 256 bytes, nothing on top).
    """
    warps = -(-threads // 32)
    of_warp = -(-registers * 32 // 256) * 256
    by_registers = 4 * (REGISTERS // 4 // of_warp) // warps
    step, system = (256, 0) if arch == "75" else (128, 1024)
    of_block = -(-(shared + system) // step) * step
    by_shared = SHARED[arch] * 1024 // of_block if of_block else BLOCKS[arch]
    blocks = min(THREADS[arch] // (32 * warps), by_registers, by_shared, BLOCKS[arch])
    return blocks * 32 * warps / THREADS[arch]


def family(first: str) -> dict[str, dict[str, Compiled]]:
    """Compile every kernel for a family of architectures: by kernel and architecture."""
    found: dict[str, dict[str, Compiled]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        waiting = {}
        for number, variant in enumerate(variants()):
            ptx = ptx_of(variant, first)
            path = Path(folder) / f"{number}.ptx"
            path.write_text(ptx)
            for arch in ASSEMBLED[first]:
                waiting[variant.name, arch] = pool.submit(assembled, variant, path, ptx, arch)
        for (name, arch), result in waiting.items():
            found.setdefault(name, {})[arch] = result.result()
    return found


def gate() -> tuple[list[list[str]], list[str]]:
    """Give the table and what is wrong; the families are compiled in processes of their own, at the same time."""
    command = [sys.executable, __file__, "--family"]
    running = [
        subprocess.Popen([*command, first], stdout=subprocess.PIPE, text=True)
        for first in ASSEMBLED
    ]
    families = [json.loads(process.communicate()[0]) for process in running]
    rows, problems = [], []
    for variant in variants():
        cells = []
        of_archs = {arch: found for each in families for arch, found in each[variant.name].items()}
        for arch in ARCHITECTURES:
            registers, shared, wrong = of_archs[arch]
            problems += [f"{variant.name} on sm_{arch}: {problem}" for problem in wrong]
            share = occupancy(arch, registers, variant.threads, shared) if registers else 0.0
            cells.append(f"{registers} ({share:.0%})")
        shared = str(of_archs[ARCHITECTURES[0]][1])
        rows.append([variant.name, str(variant.threads), shared, *cells])
    return rows, problems


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--family"]:
        print(json.dumps(family(arguments[1])))
        return 0
    if ptxas() is None:
        print("ptxas is neither on PATH nor in /usr/local/cuda/bin: it comes with the CUDA toolkit")
        return 2
    rows, problems = gate()
    if "--check" in arguments:
        with TABLE.open(encoding="utf-8", newline="") as file:
            committed = list(csv.reader(file))
        if committed != [list(COLUMNS), *rows]:
            changed = [new for new in rows if new not in committed]
            problems += [f"not as in {TABLE.name}: {', '.join(row)}" for row in changed[:10]]
            problems += (
                [] if changed else [f"{TABLE.name} has rows or columns that are none any more"]
            )
    else:
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([list(COLUMNS), *rows])
    print(
        "\n".join(problems)
        or f"{len(rows)} kernels, {len(ARCHITECTURES)} architectures: no problem"
    )
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
