"""Streams, errors of the driver, descriptions of devices, and the libraries of CUDA."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast import cuda
from bpls_fast.cuda import libraries, runtime
from bpls_fast.cuda.array import Array, asarray
from tests.support.device_arrays import VALUES


def test_the_package_offers_arrays_and_streams():
    assert cuda.Array is Array
    assert cuda.asarray is asarray
    with pytest.raises(AttributeError, match="no attribute 'tensor'"):
        cuda.tensor  # noqa: B018


def test_kernels_run_on_the_stream_of_the_block(monkeypatch):
    launched = []

    class Kernel:
        def __getitem__(self, configuration):
            launched.append(configuration[2])
            return lambda *_: None

    stream = SimpleNamespace(
        synchronize=lambda: launched.append("waited"), handle=SimpleNamespace(value=42)
    )
    monkeypatch.setattr(runtime.cuda, "external_stream", lambda handle: ("external", handle))
    for given, expected in (
        (stream, stream),
        (SimpleNamespace(cuda_stream=5), ("external", 5)),
        (SimpleNamespace(ptr=6), ("external", 6)),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 7)), ("external", 7)),
        (8, ("external", 8)),
        (0, 0),
    ):
        with cuda.stream(given):
            runtime.launch(Kernel(), 1, 1)
        assert launched.pop() == expected
    with cuda.stream(stream):
        assert runtime.stream_handle() == 42
        assert asarray(VALUES).__cuda_array_interface__["stream"] == 42
        np.asarray(asarray(VALUES))
    assert launched == ["waited"]
    assert runtime.stream_handle() == 0


def test_other_errors_of_the_driver_pass_through(monkeypatch):
    def failing(*_, **__):
        raise ValueError("CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(runtime.cuda, "to_device", failing)
    with pytest.raises(runtime.OutOfMemoryError):
        runtime.upload(VALUES)
    monkeypatch.setattr(runtime.cuda, "device_array", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        runtime.empty(3, float)


def test_the_simulator_is_a_device():
    assert runtime.devices() == [{"name": "simulator"}]
    assert runtime.driver() == "simulator"
    assert runtime.dp4a(0x01020304, 0x01010101, 5) == 15
    with pytest.raises(OverflowError):
        runtime.dp4a(0xFFFFFFFF, 0xFFFFFFFF, 2**32 - 1)


def test_a_real_device_is_described(monkeypatch):
    class Device(nullcontext):
        name, compute_capability, MULTIPROCESSOR_COUNT, id = b"NVIDIA A100", (8, 0), 108, 1

    memory = SimpleNamespace(total=40 * 2**30, free=39 * 2**30)
    version = SimpleNamespace(driver=SimpleNamespace(get_version=lambda: (12, 4)))
    monkeypatch.setattr(runtime, "simulated", False)
    monkeypatch.setattr(
        runtime,
        "cuda",
        SimpleNamespace(
            is_available=lambda: True,
            gpus=[Device()],
            get_current_device=Device,
            current_context=lambda: SimpleNamespace(get_memory_info=lambda: memory),
            cudadrv=SimpleNamespace(driver=version),
        ),
    )
    assert runtime.driver() == "12.4"
    (described,) = runtime.devices()
    assert list(described.values()) == [
        "NVIDIA A100",
        "compute capability 8.0",
        "40.0 GiB, 39.0 free",
        "108 multiprocessors",
    ]
    assert runtime.device_number() == 1
    assert runtime.free_bytes() == 39 * 2**30


def test_without_a_device_one_sentence_says_so(monkeypatch):
    monkeypatch.setattr(runtime.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"finds no NVIDIA GPU \(.*\); .*: pip install"):
        bf.gram(VALUES, backend="cuda")
    assert runtime.devices() == []
    assert runtime.driver()


def test_the_configuration_shows_device_and_libraries(capsys):
    bf.show_config()
    shown = capsys.readouterr().out
    assert "simulator" in shown
    assert "our kernels" in shown


class NumpyAsCupy:
    """NumPy by the names of CuPy: what is tested is what we ask of it."""

    ones, matmul, tril, linalg = np.ones, np.matmul, np.tril, np.linalg
    asarray = np.asarray
    cuda = SimpleNamespace(ExternalStream=lambda _: nullcontext())


@pytest.fixture
def cupy(monkeypatch):
    linalg = pytest.importorskip("scipy.linalg")
    monkeypatch.setattr(libraries, "cupy", lambda: NumpyAsCupy)
    monkeypatch.setattr(libraries, "triangular_solver", lambda: linalg.solve_triangular)
    monkeypatch.setattr(libraries, "raise_on_failure", nullcontext)
    monkeypatch.setattr(libraries, "SMALLEST_PRODUCT", 2)
    monkeypatch.setattr(libraries, "SMALLEST_SYSTEM", 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_libraries_make_the_same_products(cupy, weighted, monkeypatch):
    A, B = VALUES / 7, VALUES[:, :2]
    weight = np.arange(1.0, 5) if weighted else None
    monkeypatch.setattr(libraries, "products", recorded(libraries.products))
    G, C = bf.gram(A, B, bias=True, sample_weight=weight, backend="cuda")
    assert libraries.products.said == [True, True]
    expected = bf.gram(A, B, bias=True, sample_weight=weight)
    np.testing.assert_allclose(G, expected[0], rtol=1e-12)
    np.testing.assert_allclose(C, expected[1], rtol=1e-12)


def test_the_libraries_solve_the_same_systems(cupy, monkeypatch):
    assert "cuSOLVER" in libraries.chosen_libraries()["solve"]
    monkeypatch.setattr(libraries, "solve", recorded(libraries.solve))
    C = np.arange(12.0).reshape(6, 2)
    G = C @ C.T + np.eye(6)
    np.testing.assert_allclose(bf.solve(G, C, backend="cuda"), bf.solve(G, C), rtol=1e-10)
    for singular in (np.ones((6, 6)), -np.eye(6)):
        with pytest.raises(np.linalg.LinAlgError, match="pivot"):
            bf.solve(singular, C, eps=0, backend="cuda")
    assert libraries.solve.said == [True, False, False]


def full(*_):
    raise MemoryError("CuPy's pool")


@pytest.mark.parametrize(
    "cholesky", [full, lambda G: -np.eye(len(G)), lambda G: np.full_like(G, np.nan)]
)
def test_what_the_libraries_cannot_factor_our_kernels_solve(cupy, cholesky, monkeypatch):
    monkeypatch.setattr(NumpyAsCupy, "linalg", SimpleNamespace(cholesky=cholesky))
    monkeypatch.setattr(libraries, "solve", recorded(libraries.solve))
    C = np.arange(12.0).reshape(6, 2)
    G = C @ C.T + np.eye(6)
    np.testing.assert_allclose(bf.solve(G, C, backend="cuda"), bf.solve(G, C), rtol=1e-10)
    assert libraries.solve.said == [False]


def test_where_the_libraries_have_no_memory_our_kernels_multiply(cupy, monkeypatch):
    monkeypatch.setattr(NumpyAsCupy, "matmul", full)
    monkeypatch.setattr(libraries, "products", recorded(libraries.products))
    A = VALUES / 7
    np.testing.assert_allclose(bf.gram(A, backend="cuda"), bf.gram(A), rtol=1e-12)
    assert libraries.products.said == [False]


def recorded(function):
    def call(*arguments):
        call.said.append(function(*arguments))
        return call.said[-1]

    call.said = []
    return call
