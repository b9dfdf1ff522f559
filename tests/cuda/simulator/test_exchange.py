"""Memory of other libraries without a copy, by __cuda_array_interface__ and DLPack, and streams."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.kernels.backend as backend
from bpls_fast import cuda
from bpls_fast.cuda import array, dlpack
from bpls_fast.cuda.array import Array, asarray
from tests.support.device_arrays import VALUES, Foreign


class ByDlpack:
    def __init__(self, values):
        self.values = values
        self.__dlpack__ = values.__dlpack__
        self.__dlpack_device__ = values.__dlpack_device__


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
