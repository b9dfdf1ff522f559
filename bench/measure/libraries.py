"""The libraries that compete, where they are installed, and the number of threads they may use."""

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from threadpoolctl import threadpool_limits

from .. import SMALL
from ..contenders import NUMKONG, NUMKONG_TRANSPOSING


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


scipy_linalg = _optional("scipy.linalg")
torch = _optional("torch")
numkong = _optional("numkong")
INSTALLED = {
    "numpy": True,
    "scipy": scipy_linalg is not None,
    "torch": torch is not None,
    NUMKONG: numkong is not None,
    NUMKONG_TRANSPOSING: numkong is not None,
    "TorchScript": torch is not None,
    "onnxruntime": importlib.util.find_spec("onnxruntime") is not None,
    "MLPClassifier": importlib.util.find_spec("sklearn") is not None,
}
"""Whether a contender can run. Those not listed need nothing but this package."""

PAUSE_SECONDS = 0.0 if SMALL else 0.04
"""Wait this long before each contender: threads of OpenBLAS and OpenMP spin for some 25 ms after a call, on a core
that the next contender would use."""


@contextmanager
def limited(n_threads: int) -> Iterator[None]:
    """Limit every library to `n_threads` threads."""
    if torch is None:
        with threadpool_limits(n_threads):
            yield
        return
    before = torch.get_num_threads()
    with threadpool_limits(n_threads), torch.inference_mode():
        torch.set_num_threads(n_threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def blas(name: str, dtype: Any) -> Any:
    """Return SciPy's BLAS routine of a name without its letter, as "syrk", for float32 or float64."""
    return getattr(scipy_linalg.blas, f"{'d' if dtype == 'float64' else 's'}{name}")


def gradients_allowed() -> Any:
    """Return the context in which PyTorch can train, for use within `limited`."""
    return torch.inference_mode(False) if torch else nullcontext()
