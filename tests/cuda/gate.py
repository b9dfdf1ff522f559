"""The compile gate: every kernel for every architecture, through ptxas, in a process without the simulator.

`python -m tests.cuda.gate` writes the table of registers to docs/gpu-registers.csv; with --check it compares them. It
refuses spills, stack frames, more than 48 KiB of shared memory, float64 in kernels of float32, atomic operations and
64-bit divisions, and products without dp4a, or reads of 16 bytes, where they should have them.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from tests import ROOT

TABLE = ROOT / "docs" / "gpu-registers.csv"
ARCHITECTURES = ("75", "80", "86", "89", "90", "100", "120")
PROCESSES = 2
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
    needs: tuple[str, ...] = ()  # instructions that must be in it


REFUSED = {
    "atomic operations": r"\b(atom|red)\.",
    "64-bit divisions": r"\b(div|rem)\.[su]64",
    "calls": r"\bcall(\.uni)?\b",
}
"""What no kernel may hold: sums have one order, indices no division, and device functions are part of their kernel."""


class Compiled(NamedTuple):
    registers: int
    shared: int
    problems: list[str]


def ptxas() -> str | None:
    return shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")


def variants() -> list[Variant]:
    """List every kernel; arrays of callers have any strides, our own are contiguous."""
    from numba import types

    from bpls_fast import activations
    from bpls_fast.cuda.device import elements, layers, products, systems

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

    def add(name, kernel, *arguments, threads, float32=False, needs=()):
        found.append(Variant(name, kernel.py_func, arguments, product(threads), float32, needs))

    for real, kind, short in ((np.float32, f4, "float32"), (np.float64, f8, "float64")):
        narrow = real is np.float32
        pieces = "ld.shared.v4" if narrow else "ld.shared.v2"  # 16 bytes at once
        tile = products.TILE[np.dtype(real)]
        for weighted in (False, True):
            kernel = products.floats_kernel(tile, real, weighted)
            name = f"gram {short}" + (" weighted" if weighted else "")
            for kind_of, title in ((given, name), (own, f"{name} in one piece")):
                arrays = (kind_of(kind), kind_of(kind), kind_of(kind, 1), own(kind, 3))
                options = {"float32": narrow, "needs": (pieces,)}
                add(title, kernel, *arrays, *[i8] * 5, threads=tile.threads, **options)
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
            title, numbers = f"layer {short} {ending} {name}", (i8, kind, kind)
            arrays = (given(kind), given(kind), given(kind), own(kind))
            options = {"threads": tile.threads, "float32": narrow, "needs": (pieces,)}
            add(title, kernel, *arrays, *numbers, **options)
            if ending == "forward" and name in ("identity", "softmax"):
                title, arrays = f"{title} in one piece", [own(kind)] * 4
                add(title, kernel, *arrays, *numbers, **options)
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
                    title = f"{what} {short} {name}"
                    add(title, kernel, *arrays, threads=threads, float32=narrow)
        rows = [elements.row_block(width) for width in (10, 60)]
        for block in rows:
            lanes = f"{block[0]} lanes"
            for what in ("forward", "inverse", "jacobian"):
                kernel = elements.softmax_kernel(what, real, block)
                arrays = (given(kind), given(kind), kind, own(kind))
                title = f"{what} {short} softmax {lanes}"
                add(title, kernel, *arrays, threads=block, float32=narrow)
            missed = elements.missed_kernel(real, block)
            arrays = (given(kind), own(i8, 1), own(u1, 1))
            add(f"missed {short} {lanes}", missed, *arrays, threads=block, float32=narrow)
        for what in ("add", "subtract", "multiply"):
            kernel, arrays = elements.arithmetic_kernel(what), [given(kind)] * 3
            add(f"{what} {short}", kernel, *arrays, threads=elements.THREADS, float32=narrow)
        for title, kernel, arrays in (
            ("take", elements.take_kernel(), (given(kind), own(i8, 1), own(kind))),
            ("copy", elements.copy_kernel(), (given(kind), given(kind))),
            ("fill", elements.fill_kernel(), (kind, own(kind))),
            ("not finite", elements.not_finite_kernel(), (given(kind), own(i4, 1))),
            ("clip", elements.clip_kernel(real), (given(kind), own(kind), own(kind))),
        ):
            threads = elements.THREADS
            add(f"{title} {short}", kernel, *arrays, threads=threads, float32=narrow)
        kernel, arrays = products.add_up_kernel(), (own(kind, 3), own(f8), i8)
        add(f"add up {short}", kernel, *arrays, threads=products.ADD_UP_THREADS)
        arrays = (given(kind), given(kind), given(kind, 1), own(f8, 3))
        for block in (elements.row_block(1), *rows):
            for what in ("values", "products", "slopes"):
                kernel = elements.column_sums_kernel(what, True, block, "tanh", real)
                title = f"column sums {short} of {what} {block[0]} lanes"
                add(title, kernel, *arrays, threads=block)
    take, arrays = elements.take_kernel(), (given(u1), own(i8, 1), own(u1))
    add("take uint8", take, *arrays, threads=elements.THREADS, float32=True)
    clip, arrays = elements.clip_kernel(np.float32), (given(u1), own(f4), own(f4))
    add("clip uint8", clip, *arrays, threads=elements.THREADS, float32=True)
    block = products.ADD_UP_THREADS
    add("mirror", products.mirror_kernel(block), own(f8), threads=block)
    tile = products.TILE[np.dtype(np.uint8)]
    kernel = products.bytes_kernel(tile)
    for kind_of, title in ((given, "gram uint8"), (own, "gram uint8 in one piece")):
        arrays, options = (
            (kind_of(u1), own(u4, 3)),
            {"float32": True, "needs": ("dp4a.u32.u32", "ld.shared.v4")},
        )
        add(title, kernel, *arrays, *[i8] * 3, threads=tile.threads, **options)
    add(
        "add up uint8",
        products.add_up_kernel(),
        own(u4, 3),
        own(f8),
        i8,
        threads=products.ADD_UP_THREADS,
    )
    cube, flat, failed = own(f8, 3), own(f8), own(i8, 1)
    for block in systems.BLOCKS:
        kernel, side = systems.small_kernel(block), block.size
        add(f"small {side}", kernel, cube, flat, f8, failed, threads=block.threads)
        arrays = (given(f8, 3), given(f8, 3), own(f8, 1), cube, flat)
        add(f"assemble {side}", systems.assemble_kernel(block), *arrays, threads=block.threads)
        add(f"solution {side}", systems.solution_kernel(block), cube, cube, threads=block.threads)
    panel = systems.panel_kernel(block)
    add("panel", panel, cube, flat, f8, i8, cube, failed, threads=block.threads)
    per = systems.PER_THREAD
    add("update", systems.update_kernel(side, per), cube, i8, threads=(side // per) ** 2)
    add("back", systems.back_kernel(block), cube, cube, threads=block.threads)
    ridge = systems.ridge_kernel(systems.RIDGE_THREADS)
    add("ridge", ridge, given(f8, 3), f8, i8, own(f8, 1), threads=systems.RIDGE_THREADS)
    return found


def layer_endings(activations):
    """List what a layer can end with."""
    yield "residual", "identity"
    for name in activations:
        yield "forward", name
        yield "tangent", name
        yield "target", name


def ptx_of(variant: Variant, architectures: Sequence[str] = ARCHITECTURES) -> dict[str, str]:
    """Compile a kernel to PTX for each architecture, as for a device of it; none of them need be here."""
    from numba.cuda import compiler, dispatcher

    capabilities = {arch: (int(arch[:-1]), int(arch[-1])) for arch in architectures}
    first = capabilities[architectures[0]]
    # Device functions ask the device for its architecture.
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=first)
    library, _ = compiler._compile_pyfunc_with_fixup(
        variant.function, variant.types, cc=first, abi="numba", device=False
    )
    found = {arch: str(library.get_asm_str(cc=cc)) for arch, cc in capabilities.items()}
    for arch, ptx in found.items():
        assert f".target sm_{arch}" in ptx
    return found


def assembled(variant: Variant, path: Path, ptx: str, arch: str) -> Compiled:
    """Assemble a kernel for one architecture and read what ptxas says of it."""
    command = [str(ptxas()), "-v", f"-arch=sm_{arch}", "-o", os.devnull, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr
    if done.returncode:
        return Compiled(0, 0, [f"ptxas: {' '.join(said.split())}"])
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
    problems += [name for name, pattern in REFUSED.items() if re.search(pattern, ptx)]
    problems += [f"no {needed}" for needed in variant.needs if needed not in ptx]
    return Compiled(int(registers[1]), shared_bytes, problems)


def occupancy(arch: str, registers: int, threads: int, shared: int) -> float:
    """Return the share of a multiprocessor's threads that registers, threads and shared memory let be resident.

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


def share(number: int) -> dict[str, dict[str, Compiled]]:
    """Compile a process's share of the kernels: by kernel and architecture."""
    found: dict[str, dict[str, Compiled]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        waiting = {}
        for place, variant in enumerate(variants()[number::PROCESSES]):
            for arch, ptx in ptx_of(variant).items():
                path = Path(folder) / f"{place}-{arch}.ptx"
                path.write_text(ptx)
                waiting[variant.name, arch] = pool.submit(assembled, variant, path, ptx, arch)
        for (name, arch), result in waiting.items():
            found.setdefault(name, {})[arch] = result.result()
    return found


def gate() -> tuple[list[list[str]], list[str]]:
    """Return the table and what is wrong; several processes compile the kernels at the same time."""
    command = [sys.executable, "-m", "tests.cuda.gate", "--share"]
    running = [
        subprocess.Popen([*command, str(number)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    found = {}
    for process in running:
        found.update(json.loads(process.communicate()[0]))
    rows, problems = [], []
    for variant in variants():
        cells = []
        of_archs = found[variant.name]
        for arch in ARCHITECTURES:
            registers, shared, wrong = of_archs[arch]
            problems += [f"{variant.name} on sm_{arch}: {problem}" for problem in wrong]
            share = occupancy(arch, registers, variant.threads, shared) if registers else 0.0
            cells.append(f"{registers} ({share:.0%})")
        shared = str(of_archs[ARCHITECTURES[0]][1])
        rows.append([variant.name, str(variant.threads), shared, *cells])
    return rows, problems


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--share"]:
        print(json.dumps(share(int(arguments[1]))))
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
                [] if changed else [f"{TABLE.name} has rows or columns that no longer exist"]
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
