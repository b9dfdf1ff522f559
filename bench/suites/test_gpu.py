"""The GPU's kernels and the CPU's; every row asserts its answer.

They need an NVIDIA GPU or, at small sizes, numba-cuda's simulator, and are skipped otherwise.
"""

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from .. import SMALL, gpu
from ..cases.gpu import CASES, GpuCase
from ..gpu import main, on_gpu, table


@pytest.fixture
def device(request: pytest.FixtureRequest) -> None:
    try:
        from bpls_fast.cuda import runtime
    except ImportError as error:
        pytest.skip(str(error))
    if not runtime.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    if runtime.simulated:
        if not SMALL:
            pytest.skip("the simulator is for small sizes: BPLS_BENCH_SMALL=1")
        request.getfixturevalue("simulator_scheduler")


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("backend", ["cuda", "cpu"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gpu_kernel(benchmark: BenchmarkFixture, case: GpuCase, backend: str) -> None:
    benchmark.group = f"GPU: {case.name}"
    call = on_gpu(case) if backend == "cuda" else lambda: case.call(*case.arrays)

    def finished() -> object:
        result = call()
        if backend == "cuda":
            from bpls_fast.cuda import runtime

            runtime.synchronize()
        return result

    error = case.error(benchmark(finished))
    assert error <= case.tolerance
    benchmark.extra_info["error"] = error


def test_every_kernel_has_a_row_of_the_computed_table() -> None:
    assert len(table()) == len(CASES) + 2


@pytest.mark.usefixtures("device")
def test_on_a_gpu_one_command_fills_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "gpu.md"
    page.write_text(
        "before\n<!-- measured -->\nnothing\n<!-- to here -->\nafter\n", encoding="utf-8"
    )
    monkeypatch.setattr(gpu, "PAGE", page)
    main(["--fill"])
    computed, _, measured = capsys.readouterr().out.partition("Measured here")
    text = page.read_text(encoding="utf-8")
    assert "nothing" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    for case in CASES:
        assert f"| {case.name} |" in computed
        assert f"| {case.name} |" in measured
        assert f"| {case.name} |" in text
    assert "| fit_refined |" in text
