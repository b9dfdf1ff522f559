"""Arrays of the device: views, arithmetic, other libraries' memory without a copy, streams."""

import gc
import weakref
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.kernels.backend as backend
from bpls_fast import cuda
from bpls_fast.cuda import array, dlpack, libraries, runtime
from bpls_fast.cuda.array import Array, asarray


class Foreign:
    """Somebody else's array on the device; the simulator's device is the host."""

    def __init__(self, values):
        self.values = values

    @property
    def __cuda_array_interface__(self):
        return {**self.values.__array_interface__, "version": 3, "stream": None}


class ByDlpack:
    def __init__(self, values):
        self.values = values
        self.__dlpack__ = values.__dlpack__
        self.__dlpack_device__ = values.__dlpack_device__


VALUES = np.arange(12.0).reshape(4, 3)


def test_the_memory_of_others_is_read_without_a_copy():
    for make in (Foreign, ByDlpack):
        values = VALUES.copy()
        taken = asarray(make(values))
        values[0, 0] = 100.0
        assert np.asarray(taken)[0, 0] == 100.0
        assert np.shares_memory(taken.data._ary, values)


def test_memory_of_any_strides_is_read():
    for values in (VALUES.T, VALUES[::2], VALUES[:, 1:]):
        for make in (Foreign, ByDlpack):
            np.testing.assert_array_equal(np.asarray(asarray(make(values))), values)
            G = bf.gram(asarray(make(values)))
            np.testing.assert_allclose(np.asarray(G), values.T @ values)


CUBE = np.arange(60.0).reshape(3, 4, 5)
STRIDED = {
    "transposed": lambda a: a[0].T,
    "columns": lambda a: a[1, :, ::2],
    "one column": lambda a: a[1, :, 3],
    "backwards": lambda a: a[1, ::-1, 3],
    "repeated": lambda a: np.broadcast_to(a[1, 2, :], (3, 5)),
    "a middle axis": lambda a: a[:, 1, :],
    "three axes": lambda a: a[:, 1:3, ::2],
    "three axes by columns": lambda a: a.T,
    "a first axis of one": lambda a: a[:1].T[::-1].T,
    "four axes": lambda a: a.reshape(3, 2, 2, 5)[:, :, :, 1:],
}


@pytest.mark.parametrize("name", STRIDED)
def test_arrays_of_any_strides_and_axes_are_copied_and_computed_with(name):
    values = STRIDED[name](CUBE)
    ours = asarray(Foreign(values))
    np.testing.assert_array_equal(np.asarray(ours), values)
    np.testing.assert_array_equal(np.asarray(ours.copy()), values)
    np.testing.assert_array_equal(np.asarray(ours.reshape(values.size)), values.reshape(-1))
    np.testing.assert_array_equal(np.asarray(ours + ours * 2.0), 3 * values)
    np.testing.assert_array_equal(np.asarray(1.0 - ours), 1.0 - values)
    assert ours.sum() == values.sum()
    expected = bf.activations["tanh"].forward(values)
    np.testing.assert_allclose(np.asarray(bf.activations["tanh"].forward(ours)), expected)
    rows = np.array([1, 0]) if len(values) > 1 else np.array([0, 0])
    np.testing.assert_array_equal(np.asarray(ours[rows]), values[rows])


@pytest.mark.parametrize("name", [name for name in STRIDED if name != "repeated"])
def test_views_of_any_strides_and_axes_are_written(name):
    memory = CUBE.copy()
    view = STRIDED[name](memory)
    before, ours = view.copy(), asarray(Foreign(view))
    ours += 1.0
    np.testing.assert_array_equal(view, before + 1)
    np.multiply(ours, ours, out=ours)
    np.testing.assert_array_equal(view, (before + 1) ** 2)
    ours[:] = asarray(before)
    np.testing.assert_array_equal(memory, CUBE)
    array.take(asarray(before), np.arange(len(before))[::-1], ours)
    np.testing.assert_array_equal(view, before[::-1])


@pytest.mark.parametrize(
    "key",
    [
        1,
        -1,
        slice(1, 3),
        slice(None, None, -1),
        slice(2, 2),
        (slice(None), 2),
        (slice(None, None, -2), slice(1, None)),
        (0, slice(3, 0, -1)),
        (2, 1),
    ],
)
def test_views_are_those_of_numpy(key):
    for values in (VALUES, VALUES.T, VALUES[::-1, ::-1], CUBE, CUBE.T, CUBE[:1].T, CUBE[:0]):
        try:
            expected = values[key]
        except IndexError:
            with pytest.raises(IndexError):
                asarray(Foreign(values))[key]
            continue
        found = asarray(Foreign(values))[key]
        assert found.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(found), expected)
    with pytest.raises(IndexError, match="3 indices are given; expected 2"):
        asarray(VALUES)[1, 1, 1]


def test_systems_of_any_strides_are_solved():
    A = np.random.default_rng(0).normal(size=(9, 5))
    G, B = A.T @ A, np.random.default_rng(1).normal(size=(3, 5))
    wide = np.zeros((5, 10))
    wide[:, ::2] = G
    for system, sides in ((G, B.T), (wide[:, ::2], B.T), (np.asfortranarray(G), B.T[:, ::2])):
        found = bf.solve(asarray(Foreign(system)), asarray(Foreign(sides)))
        np.testing.assert_allclose(np.asarray(found), bf.solve(G, sides.copy()), rtol=1e-10)
    systems, sides = np.stack([G, 2 * G]), np.stack([B, 3 * B]).transpose(0, 2, 1)
    for given in (np.asfortranarray(systems), systems[::-1]):
        found = bf.solve_batched(asarray(Foreign(given)), asarray(Foreign(sides)))
        expected = bf.solve_batched(given.copy(), sides.copy())
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10)


def test_a_column_of_labels_is_read_where_it_lies():
    data = np.column_stack([np.eye(3), [0, 2, 2]])
    labels = asarray(Foreign(data))[:, -1]
    np.testing.assert_array_equal(np.asarray(labels), [0, 2, 2])
    np.testing.assert_array_equal(np.asarray(asarray(np.ones((2, 3))) + labels), [[1, 3, 3]] * 2)
    column = labels[:, None]
    assert column.shape == (3, 1)
    column += 1.0
    np.testing.assert_array_equal(data[:, -1], [1, 3, 3])


def test_others_read_our_memory_without_a_copy():
    ours = asarray(VALUES)
    theirs = np.from_dlpack(ours)
    np.testing.assert_array_equal(theirs, VALUES)
    assert np.shares_memory(theirs, ours.data._ary)
    again = asarray(SimpleNamespace(__cuda_array_interface__=ours.__cuda_array_interface__))
    assert np.shares_memory(again.data._ary, ours.data._ary)


def test_torch_takes_and_gives_tensors():
    torch = pytest.importorskip("torch")
    ours = asarray(VALUES)
    tensor = torch.from_dlpack(ours)
    tensor[0, 0] = 7.0
    assert np.asarray(ours)[0, 0] == 7.0
    given = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    taken = asarray(given)
    assert taken.data._ary.ctypes.data == given.data_ptr()
    np.testing.assert_array_equal(np.asarray(taken), given.numpy())


def test_exported_memory_lives_as_long_as_anybody_holds_it():
    before = len(dlpack._exported)
    theirs = np.from_dlpack(asarray(VALUES))
    capsule = asarray(VALUES).__dlpack__()
    gc.collect()
    assert len(dlpack._exported) == before + 2
    np.testing.assert_array_equal(theirs, VALUES)
    del theirs, capsule
    gc.collect()
    assert len(dlpack._exported) == before


def test_a_tensor_that_was_taken_is_given_back():
    given = []
    values = VALUES.copy()

    class Owner(ByDlpack):
        pass

    taken = asarray(Owner(values))
    interface, owner = dlpack.import_capsule(values.__dlpack__())
    owner.delete = given.append
    assert interface["shape"] == (4, 3)
    address = owner.address
    del owner, taken
    gc.collect()
    assert given == [address]


@pytest.mark.parametrize("make", [Foreign, ByDlpack])
def test_the_memory_of_others_is_let_go_at_once(make):
    values = VALUES.copy()
    alive = weakref.ref(values)
    gc.disable()
    try:
        column = asarray(make(values)).reshape(3, 4)[:, 1][:, None]
        del values
        assert alive() is not None
        # Not by a kernel: the scheduler remembers the arrays of its last launch.
        np.testing.assert_array_equal(column.data._ary, VALUES.reshape(3, 4)[:, 1:2])
        del column
        assert alive() is None
    finally:
        gc.enable()


def test_tensors_of_a_stream_are_asked_for_on_ours():
    asked = []

    class OnDevice(ByDlpack):
        def __init__(self, values):
            super().__init__(values)
            self.__dlpack__ = lambda stream: asked.append(stream) or values.__dlpack__()
            self.__dlpack_device__ = lambda: (dlpack.CUDA, 0)

    given = OnDevice(VALUES.copy())
    assert backend.on_device(given)
    assert not backend.on_device(ByDlpack(VALUES))
    found = bf.gram(given)
    assert isinstance(found, Array)
    np.testing.assert_allclose(np.asarray(found), VALUES.T @ VALUES)
    with cuda.stream(SimpleNamespace(handle=42, synchronize=lambda: None)):
        asarray(given)
    assert asked == [1, 42]


def test_an_interface_without_a_stream_is_left_for_dlpack():
    asked = []

    def capsule(stream):
        asked.append(stream)
        return VALUES.__dlpack__()

    interface = {**VALUES.__array_interface__, "version": 2}
    for given, expected in ((interface, [1]), ({**interface, "stream": 1}, [])):
        asked.clear()
        both = SimpleNamespace(
            __cuda_array_interface__=given,
            __dlpack__=capsule,
            __dlpack_device__=lambda: (dlpack.CUDA, 0),
        )
        np.testing.assert_array_equal(np.asarray(asarray(both)), VALUES)
        assert asked == expected


def test_an_array_of_another_device_is_refused():
    given = ByDlpack(VALUES)
    given.__dlpack_device__ = lambda: (dlpack.CUDA, 1)
    with pytest.raises(ValueError, match="on CUDA device 1; expected device 0"):
        bf.gram(given)


def test_exported_arrays_name_the_stream_that_made_them():
    with cuda.stream(SimpleNamespace(handle=42, synchronize=lambda: None)):
        made = array.empty((2, 3), float)
    for view in (made, made.reshape(3, 2), made[1:], made[:, 1], made[:, 1][:, None]):
        assert view.__cuda_array_interface__["stream"] == 42
    assert asarray(VALUES).__cuda_array_interface__["stream"] == 1  # the default one


def test_truth_values_go_through_dlpack():
    truths = np.array([True, False])
    assert np.asarray(asarray(ByDlpack(truths))).tolist() == [True, False]
    assert np.from_dlpack(asarray(truths)).tolist() == [True, False]


def test_tensors_are_exported_as_asked():
    ours = asarray(VALUES)
    assert ours.__dlpack_device__() == (dlpack.CPU, 0)
    copied = np.from_dlpack(ours, copy=True)
    assert not np.shares_memory(copied, ours.data._ary)
    np.testing.assert_array_equal(copied, VALUES)
    with pytest.raises(BufferError, match="expected no other"):
        ours.__dlpack__(dl_device=(dlpack.CUDA, 1))


def test_tensors_of_no_plain_numbers_are_refused():
    with pytest.raises(TypeError, match="not hold plain numbers"):
        dlpack.import_capsule(np.ones(3, complex).__dlpack__())


def test_views_share_memory_and_rows_are_gathered():
    ours = asarray(VALUES)
    view = ours[1:3, ::2]
    assert view.shape == (2, 2)
    view += 1.0
    assert np.asarray(ours)[1, 0] == VALUES[1, 0] + 1
    np.testing.assert_array_equal(
        np.asarray(asarray(VALUES)[np.array([3, 0, 3])]), VALUES[[3, 0, 3]]
    )
    vector = asarray(np.arange(4))
    assert np.asarray(vector[np.array([2, 1])]).tolist() == [2, 1]
    assert vector[:, np.newaxis].shape == (4, 1)
    ours[:, 1:2] = asarray(np.full((4, 1), -1.0))
    assert (np.asarray(ours)[:, 1] == -1).all()
    assert "shape=(4, 3)" in repr(ours)
    assert len(ours) == 4


def test_arithmetic_is_that_of_numpy():
    a, b = VALUES.astype(np.float32), np.array([1.0, -2.0, 3.0], np.float32)
    column = np.arange(4, dtype=np.float32)[:, np.newaxis]
    for compute in (
        lambda x: x + b,
        lambda x: x - 2.0,
        lambda x: 1 - x,
        lambda x: x * np.float32(3),
        lambda x: np.float32(3) * x,
        lambda x: np.subtract(x, b),
        lambda x: x * column,
        lambda x: np.multiply(column, x),
    ):
        found, expected = compute(asarray(a)), compute(a)
        assert isinstance(found, Array)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)
    ours = asarray(a)
    ours -= b
    ours *= 2.0
    np.subtract(ours, a, out=ours)
    np.testing.assert_array_equal(np.asarray(ours), (a - b) * 2 - a)
    with pytest.raises(TypeError):
        np.exp(ours)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: a[np.array([True, False, True, False])], TypeError, "expected a vector of int"),
        (lambda a: a[asarray(np.ones(4, bool))], TypeError, "dtype bool"),
        (lambda a: a[np.array([0.0])], TypeError, "dtype float64"),
        (lambda a: a[np.array([[0]])], TypeError, r"shape \(1, 1\)"),
        (lambda a: a[np.array([0, 4])], IndexError, "rows 0 to 4 are chosen of 4; expected 0 to 3"),
        (lambda a: a[np.array([-1])], IndexError, "rows -1 to -1"),
        (lambda a: array.take(a, np.array([0]), a), ValueError, r"out has shape \(4, 3\)"),
        (lambda a: a[None, :], IndexError, "expected no other"),
        (lambda a: a.__setitem__(slice(None), asarray(VALUES[:2])), ValueError, r"shape \(2, 3\)"),
        (lambda a: a.__setitem__(np.array([0]), asarray(VALUES[:1])), TypeError, "expected slices"),
        (lambda a: a.__iadd__(np.ones((2, 4, 3))), ValueError, r"expected \(4, 3\)"),
        (lambda a: a[:1].__iadd__(a), ValueError, r"result has shape \(4, 3\); expected \(1, 3\)"),
        (lambda a: a + np.ones((2, 4, 3)), ValueError, "expected at most two axes"),
        (lambda a: a + np.ones(4), ValueError, "broadcast"),
        (lambda a: np.add(a, 1.0, out=np.ones((4, 3))), TypeError, "__array_ufunc__"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    ours = asarray(VALUES)
    with pytest.raises(error, match=message):
        call(ours)
    np.testing.assert_array_equal(np.asarray(ours), VALUES)


def test_copies_have_their_own_memory_and_type():
    ours = asarray(VALUES)
    assert ours.astype(np.float64, copy=False) is ours
    other = ours.copy()
    other += 1.0
    np.testing.assert_array_equal(np.asarray(ours), VALUES)
    assert ours.astype(np.float32).dtype == np.float32
    assert np.asarray(ours, np.float32).dtype == np.float32
    assert ours.sum() == VALUES.sum()


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


def test_rows_leave_room_for_what_is_computed_of_them(monkeypatch):
    monkeypatch.setattr(array, "BLOCK_BYTES", 48)
    monkeypatch.setattr(runtime, "free_bytes", lambda: VALUES.nbytes / 0.7)
    assert isinstance(array.rows_to_device(VALUES), Array)
    monkeypatch.setattr(runtime, "free_bytes", lambda: VALUES.nbytes / 0.8)
    assert isinstance(array.rows_to_device(VALUES), array.HostRows)
    assert isinstance(array.rows_to_device(VALUES[:2]), Array)  # a part of it


def test_parts_of_rows_cover_them(monkeypatch):
    monkeypatch.setattr(array, "BLOCK_BYTES", 48)
    rows = array.HostRows(VALUES)
    found = list(array.device_blocks(rows))
    assert [place for place, _ in found] == [slice(0, 2), slice(2, 4)]
    np.testing.assert_array_equal(np.concatenate([np.asarray(part) for _, part in found]), VALUES)
    assert np.asarray(rows).shape == (4, 3)
    assert isinstance(rows[:2], Array)
