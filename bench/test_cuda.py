"""The kernels on a GPU, beside PyTorch's on the same rows: skipped with a reason where there is none."""

from types import ModuleType

import numpy as np
import pytest
from interleaved import FEWEST_ROUNDS, record, recorded, take_turns
from kernel_cases import OURS, SMALL, gram_error, torch
from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = recorded

ROWS, COLS = (100, 16) if SMALL else (60_000, 784)
TOLERANCE = 1e-4


@pytest.mark.parametrize("contender", [OURS, "torch"])
def test_gram(benchmark: BenchmarkFixture, cuda: ModuleType, contender: str) -> None:
    if torch is None or not torch.cuda.is_available():
        pytest.skip("torch has no CUDA device to compare with")
    A = np.random.default_rng(0).random((ROWS, COLS), np.float32)
    on_device = torch.from_numpy(A).cuda()

    def ours() -> object:
        G = cuda.gram(on_device)
        torch.cuda.synchronize()
        return G

    def theirs() -> object:
        G = on_device.T @ on_device
        torch.cuda.synchronize()
        return G

    calls = {OURS: ours, "torch": theirs}
    error = gram_error(A)(torch.as_tensor(calls[contender]()).cpu().numpy())
    assert error <= TOLERANCE
    samples = take_turns(calls, FEWEST_ROUNDS)[contender]
    group = f"GPU: gram float32 {ROWS} x {COLS}"
    record(benchmark, group, contender, samples, suite="GPU", error=error)
