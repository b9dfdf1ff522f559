"""The GPU backend on a machine without one: what is loaded, what is said, what its kernels compile to."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.kernels.backend as backend
from tests import ROOT
from tests.cuda import gate
from tests.support.subprocesses import output_of, run_code, run_python

PACKAGE = Path(bf.__file__).parent
HAS_NUMBA = find_spec("numba_cuda") is not None

needs_numba = pytest.mark.skipif(
    not HAS_NUMBA and os.environ.get("BPLS_CUDA") != "1", reason="numba-cuda is not installed"
)


def test_one_module_imports_numba() -> None:
    importing = re.compile(r"^\s*(from|import) (numba|llvmlite)", re.MULTILINE)
    sources = PACKAGE.rglob("*.py")
    found = [path for path in sources if importing.search(path.read_text("utf-8"))]
    assert found == [PACKAGE / "cuda" / "runtime.py"]


def test_nothing_of_the_gpu_is_loaded_unless_asked_for() -> None:
    finished = run_code("""
        import sys
        import numpy as np
        import bpls_fast as bf
        x = np.random.default_rng(0).normal(size=(30, 2))
        net = bf.Network([2, 3, 2])
        bf.fit_refined(net, x, x[:, 0] > 0, max_sweeps=1)
        bf.gram(x, backend="cpu")
        net.to("cpu").predict(x)
        print([name for name in sys.modules if name.startswith(("numba", "cupy", "bpls_fast.cuda."))])
    """)
    assert output_of(finished).strip() == "[]"


def test_without_numba_one_sentence_names_the_command() -> None:
    finished = run_code("""
        import sys
        import importlib.metadata as metadata
        import numpy as np
        sys.modules["numba"] = None
        real = metadata.version
        def version(name):
            if name == "numba-cuda":
                raise metadata.PackageNotFoundError(name)
            return real(name)
        metadata.version = version
        import bpls_fast as bf
        for call in (
            lambda: bf.gram(np.eye(2), backend="cuda"),
            lambda: bf.Network([2, 2]).to("cuda"),
            lambda: bf.fit_classifier(bf.Network([2, 2]), np.eye(2), [0, 1], backend="cuda"),
            lambda: bf.fit_refined(bf.Network([2, 2]), np.eye(2), [0, 1], backend="cuda"),
            lambda: bf.fit_injective(bf.Network([2, 2]), np.eye(2), np.eye(2), backend="cuda"),
            lambda: bf.BPLSClassifier(backend="cuda").fit(np.eye(2), [0, 1]),
        ):
            try:
                call()
            except ImportError as error:
                print(error)
    """)
    sentence = "backend 'cuda' needs the package numba-cuda: pip install \"bpls_fast[cuda]\""
    assert output_of(finished).splitlines() == [sentence] * 6


@needs_numba
def test_without_a_device_one_sentence_says_so() -> None:
    finished = run_code("""
        import numpy as np
        import bpls_fast as bf
        from numba import cuda
        if cuda.is_available():
            raise SystemExit(print("a device is there"))
        for call in (
            lambda: bf.solve(np.eye(2), np.eye(2), backend="cuda"),
            lambda: bf.Network([2, 2]).to("cuda"),
        ):
            try:
                call()
            except RuntimeError as error:
                print(error)
    """)
    for line in output_of(finished).splitlines():
        assert re.fullmatch(
            r"backend 'cuda' finds no NVIDIA GPU \(.*\); on a machine with one: pip install .*|a device is there",
            line,
        )


def test_the_command_line_tells_of_the_gpu() -> None:
    shown = output_of(run_python("-m", "bpls_fast", "info"))
    line = next(line for line in shown.splitlines() if line.startswith("cuda"))
    assert ("numba-cuda missing" in line) == (not HAS_NUMBA)
    assert ("pip install" in shown) == (not HAS_NUMBA)


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(ValueError, match="backend is 'tpu'; expected one of auto, cpu, cuda"):
        bf.gram(np.eye(2), backend="tpu")
    net = bf.Network([2, 2])
    for fit in (bf.fit_refined, bf.fit_classifier):
        with pytest.raises(ValueError, match="backend is 'tpu'"):
            fit(net, np.eye(2), [0, 1], backend="tpu")


def test_arrays_of_the_cpu_are_no_device_arrays() -> None:
    assert backend.on_device(SimpleNamespace(__cuda_array_interface__={"shape": (1,)}))
    for values in (np.eye(2), [1.0], None, 3, "text"):
        assert not backend.on_device(values)


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared", "share"),
    [
        ("80", 32, 256, 0, 1.0),  # 8 blocks of 8 warps
        ("80", 128, 256, 0, 0.25),  # 65,536 registers hold 2 blocks
        (
            "80",
            118,
            32,
            0,
            0.25,
        ),  # 16 warps, four in each quarter, though 65,536 registers would hold 17
        ("75", 32, 64, 0, 1.0),  # 16 blocks of 64 are all of its threads
        ("75", 32, 32, 0, 0.5),  # 16 blocks of 32 are half
        ("90", 32, 128, 48 * 1024, 0.25),  # 228 KiB hold 4 blocks of 49 KiB
    ],
)
def test_occupancy_is_what_registers_threads_and_shared_memory_allow(
    arch: str, registers: int, threads: int, shared: int, share: float
) -> None:
    assert gate.occupancy(arch, registers, threads, shared) == share


def test_the_gate_has_every_kernel() -> None:
    source = Path(gate.__file__).read_text(encoding="utf-8")
    names = [
        name
        for source in (PACKAGE / "cuda").rglob("*.py")
        for name in re.findall(r"^def (\w+_kernel)\(", source.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(names) > 15
    for name in names:
        assert f".{name}(" in source


@needs_numba
@pytest.mark.skipif(
    gate.ptxas() is None and os.environ.get("BPLS_CUDA") != "1", reason="there is no ptxas"
)
def test_the_gate_refuses_what_it_must() -> None:
    finished = run_code(
        """
        import tempfile
        from pathlib import Path
        from tests.cuda import gate
        import numpy as np
        from numba import cuda, types

        def promoted(out):
            out[0] = out[0] * 0.1
        def stacked(out):
            kept = cuda.local.array(64, np.float32)
            for k in range(64):
                kept[k] = out[k]
            out[0] = kept[int(out[1])]
        def crowded(out):
            shared = cuda.shared.array((49, 256), np.float32)
            shared[cuda.threadIdx.x, 0] = out[0]
            cuda.syncthreads()
            out[1] = shared[3, 0]
        def atomic(out):
            cuda.atomic.add(out, 0, np.float32(1))
        def divided(out):
            out[0] = out[out.shape[0] // out.strides[0]]
        def fine(out):
            out[cuda.threadIdx.x] += np.float32(1)

        kinds = (types.Array(types.float32, 1, "A"),)
        for function in (promoted, stacked, crowded, atomic, divided, fine):
            variant = gate.Variant("", function, kinds, 32, True)
            if function is fine:
                variant = variant._replace(needs=("dp4a",))
            ptx = gate.ptx_of(variant, ["80"])["80"]
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "kernel.ptx"
                path.write_text(ptx)
                print(*gate.assembled(variant, path, ptx, "80").problems, sep=", ")
        """,
        NUMBA_ENABLE_CUDASIM="0",
    )
    expected = (
        "float64 instructions",
        "256 bytes of stack frame",
        "too much shared data",
        "atomic operations",
        "64-bit divisions",
        "no dp4a",
    )
    for line, problem in zip(output_of(finished).splitlines(), expected, strict=True):
        assert problem in line


@pytest.mark.skipif(not (ROOT / "docs" / "gpu.md").is_file(), reason="not in a checkout")
def test_the_documentation_has_the_computed_table() -> None:
    command = [sys.executable, "-m", "bench.gpu"]
    environment = {name: value for name, value in os.environ.items() if name != "BPLS_BENCH_SMALL"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    computed, _, _ = done.stdout.partition("Measured here")
    rows = [line for line in computed.splitlines() if line.startswith("|")]
    assert len(rows) > 10
    assert "\n".join(rows) in (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not (ROOT / "docs" / "gpu.md").is_file(), reason="not in a checkout")
@needs_numba
def test_the_table_of_registers_has_every_kernel() -> None:
    code = "from tests.cuda import gate; print('\\n'.join(v.name for v in gate.variants()))"
    names = output_of(run_code(code, NUMBA_ENABLE_CUDASIM="0")).splitlines()
    committed = gate.TABLE.read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[0] for row in committed[1:]] == names
