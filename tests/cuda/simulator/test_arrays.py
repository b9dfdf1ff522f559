"""Arrays of the device: views, strides, arithmetic, parts of rows."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.cuda import array, runtime
from bpls_fast.cuda.array import Array, asarray
from tests.support.device_arrays import VALUES, Foreign

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
