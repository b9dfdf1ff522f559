"""The bad-input table: what every kernel refuses, with which exception, naming which argument.

A refused call changes nothing: neither its inputs nor `out`.
"""

import re

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.reference import same_bits


def valid_arguments(kernel):
    """Make new arguments that the kernel accepts; the table replaces some of them."""
    A, B = np.ones((6, 4), np.float32), np.ones((6, 2), np.float32)
    sample_weight = np.ones(6)
    return {
        "gram": {"A": A, "B": B, "sample_weight": sample_weight},
        "cross": {"A": A, "D": B, "sample_weight": sample_weight},
        "solve": {"G": np.eye(4), "C": np.ones((4, 2))},
        "solve_layer": {"A": A, "B": B, "sample_weight": sample_weight},
        "solve_batched": {"G": np.stack([np.eye(4)] * 3), "C": np.ones((3, 4, 2))},
        "linear": {
            "A": A,
            "W": np.ones((4, 2), np.float32),
            "out": np.full((6, 2), -7.0, np.float32),
        },
        "tangent": {
            "A": A,
            "W": np.ones((4, 2), np.float32),
            "N": np.full((6, 2), 0.5, np.float32),
            "out": np.full((6, 2), -7.0, np.float32),
        },
    }[kernel]


KERNELS = ("gram", "cross", "solve", "solve_layer", "solve_batched", "linear", "tangent")
SUMMING = ("gram", "cross", "solve_layer")
SOLVING = ("solve", "solve_layer", "solve_batched")
LAYERS = ("linear", "tangent")
FUNCTIONS = {kernel: getattr(bf, kernel) for kernel in KERNELS}


def names(*words):
    """Return a regex that finds every word, in this order."""
    return "(?s)" + ".*".join(rf"\b{word}\b" for word in words)


def row(kernel, what, exception, message, **replaced):
    return pytest.param(kernel, replaced, exception, message, id=f"{kernel}: {what}")


def replaced_at(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def rows_of_every_array():
    """Wrong dimensions, dtypes and values of every input array of every kernel."""
    swapped = np.dtype(np.float32).newbyteorder("S")
    for kernel in KERNELS:
        for name, array in valid_arguments(kernel).items():
            if name == "out":
                continue
            few, many = array[0], array[None]
            yield row(kernel, f"{name} lacks a dimension", ValueError, names(name), **{name: few})
            yield row(kernel, f"{name} has one too many", ValueError, names(name), **{name: many})
            wrong = ["object", "complex128", "int64", "bool", "float16"]
            for dtype in wrong if name == "A" else [*wrong, "uint8"]:
                bad = {name: array.astype(dtype)}
                yield row(kernel, f"{name} is {dtype}", TypeError, names(name, dtype), **bad)
            bad = {name: array.astype(swapped)}
            yield row(kernel, f"{name} has swapped bytes", TypeError, names(name), **bad)
            if name == "N":
                continue
            place = tuple(length - 1 for length in array.shape)
            at = re.escape(str(list(place)))
            for value, word in [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]:
                bad = {name: replaced_at(array, place, value)}
                message = rf"\b{name} contains {word} at {at}"
                yield row(kernel, f"{name} holds {value}", ValueError, message, **bad)


def rows_of_every_option():
    for kernel in KERNELS:
        for value in (0, -1):
            message = names("n_threads")
            yield row(kernel, f"n_threads is {value}", ValueError, message, n_threads=value)
        for value in (1.5, "2"):
            message = names("n_threads")
            yield row(kernel, f"n_threads is {value!r}", TypeError, message, n_threads=value)
    for kernel in SOLVING:
        for value in (-1e-6, float("nan"), float("inf"), float("-inf")):
            yield row(kernel, f"eps is {value}", ValueError, names("eps"), eps=value)
        for value in ("1e-6", None, 1j):
            yield row(kernel, f"eps is {value!r}", TypeError, names("eps"), eps=value)
        for value in ("no", 1, None):
            yield row(
                kernel, f"relative is {value!r}", TypeError, names("relative"), relative=value
            )
        yield row(kernel, "eps is larger than any float", ValueError, names("eps"), eps=10**400)
    for kernel in (*SUMMING, *LAYERS):
        for value in ("no", 1, None):
            yield row(kernel, f"bias is {value!r}", TypeError, names("bias"), bias=value)
    for value in ("no", 1, None):
        yield row("gram", f"center is {value!r}", TypeError, names("center"), center=value)
    for kernel in ("gram", "cross"):
        for value in (np.nan, np.inf, -np.inf, 10**400):
            shown = f"{value:.0e}" if isinstance(value, float) else "larger than any float"
            yield row(kernel, f"scale is {shown}", ValueError, names("scale"), scale=value)
        for value in (1j, object(), "wide", ["a"] * 4, np.ones(4, np.uint8), np.ones(4, complex)):
            what = f"scale is a {type(value).__name__} of no factors"
            yield row(kernel, what, TypeError, names("scale"), scale=value)
        for shape in ((3,), (5,), (4, 1), (1, 4), (0,)):
            what = f"scale has shape {shape} for 4 columns"
            yield row(kernel, what, ValueError, names("scale"), scale=np.ones(shape))
        for value, word in ((np.nan, "NaN"), (-np.inf, "infinity")):
            bad = replaced_at(np.ones(4), 2, value)
            message = rf"\bscale contains {word} at \[2\]"
            yield row(kernel, f"scale holds {value}", ValueError, message, scale=bad)
        message = names("A", "scale", "overflow")
        large = np.full(4, 1e308)
        yield row(kernel, "scale overflows", ValueError, message, scale=large)
    for kernel in LAYERS:
        message = names("activation", "identity")
        yield row(kernel, "activation is unknown", ValueError, message, activation="swish")
        for value in (3, None, b"tanh"):
            message = names("activation")
            yield row(kernel, f"activation is {value!r}", TypeError, message, activation=value)
        for value in ("no", 1, None):
            what, message = f"check_finite is {value!r}", names("check_finite")
            yield row(kernel, what, TypeError, message, check_finite=value)


def rows_of_every_shape():
    def ones(*shape):
        return np.ones(shape, np.float32)

    for kernel in SUMMING:
        other = "D" if kernel == "cross" else "B"
        for rows in (5, 7):
            what = f"{other} has {rows} rows for 6"
            yield row(kernel, what, ValueError, names(other), **{other: ones(rows, 2)})
            what = f"sample_weight has length {rows} for 6"
            message = names("sample_weight")
            yield row(kernel, what, ValueError, message, sample_weight=np.ones(rows))
        weights = replaced_at(np.ones(6), 4, -1.0)
        message = names("sample_weight")
        yield row(kernel, "sample_weight < 0", ValueError, message, sample_weight=weights)
        yield row(kernel, "A has no columns", ValueError, names("A"), A=ones(6, 0))
        what = f"{other} has no columns"
        yield row(kernel, what, ValueError, names(other), **{other: ones(6, 0)})

    # NaN comes before the singular matrix that it sits in.
    singular = {"A": replaced_at(np.zeros((6, 4), np.float32), (5, 3), np.nan), "eps": 0.0}
    yield row("solve_layer", "A is zero but for a NaN", ValueError, r"\bA contains NaN", **singular)
    singular = {"A": np.zeros((6, 4), np.float32), "B": np.full((6, 2), np.nan), "eps": 0.0}
    yield row("solve_layer", "A is zero, B is NaN", ValueError, r"\bB contains NaN", **singular)

    asymmetric = replaced_at(np.eye(4), (1, 2), 1e-3)
    for kernel, batch in (("solve", ()), ("solve_batched", (3,))):
        message = names("G")
        yield row(kernel, "G is not square", ValueError, message, G=ones(*batch, 4, 5))
        yield row(kernel, "G has no columns", ValueError, message, G=ones(*batch, 0, 0))
        G = np.broadcast_to(asymmetric, (*batch, 4, 4))
        yield row(kernel, "G is not symmetric", ValueError, message, G=G)
        yield row(kernel, "C has too few rows", ValueError, names("C"), C=ones(*batch, 3, 2))
        yield row(kernel, "C has too many rows", ValueError, names("C"), C=ones(*batch, 5, 2))
        yield row(kernel, "C has no columns", ValueError, names("C"), C=ones(*batch, 4, 0))
    one_bad = np.stack([np.eye(4), asymmetric, np.eye(4)])
    what = "one G of three is not symmetric"
    yield row("solve_batched", what, ValueError, r"\bG\b.*\[1, 1, 2\]", G=one_bad)
    what = "C has fewer systems than G"
    yield row("solve_batched", what, ValueError, names("C"), C=np.ones((2, 4, 2)))

    message = names("W")
    for kernel in LAYERS:
        yield row(kernel, "A has no columns", ValueError, names("A"), A=ones(6, 0), W=ones(0, 2))
        yield row(kernel, "W has no columns", ValueError, message, W=ones(4, 0), out=None)
        yield row(kernel, "W has too few rows", ValueError, message, W=ones(3, 2))
        what = "W has a row for a bias, bias is False"
        yield row(kernel, what, ValueError, message, W=ones(5, 2))
        yield row(kernel, "W has no row for the bias", ValueError, message, bias=True)
    message = r"\bN has shape .*expected \(6, 2\)"
    for shape in ((5, 2), (6, 3), (2, 6), (6, 1)):
        yield row("tangent", f"N has shape {shape}", ValueError, message, N=ones(*shape))
    message = r"\bN has dtype float64; expected float32"
    yield row("tangent", "N is wider than the result", TypeError, message, N=np.ones((6, 2)))
    message = r"\bN has dtype float32; expected float64"
    yield row("tangent", "N is narrower than it", TypeError, message, W=np.ones((4, 2)), out=None)
    message = r"\bN is not C-contiguous"
    N = np.asfortranarray(ones(6, 2))
    yield row("tangent", "N is in Fortran order", ValueError, message, N=N)
    yield row("tangent", "N is strided", ValueError, message, N=ones(6, 4)[:, ::2])


def rows_of_every_overflow():
    def huge(rows, columns):
        return np.broadcast_to(np.float32(1), (rows, columns))  # zero strides: four bytes

    # The smallest n for which n * n * 8 is more than a signed 64-bit size holds.
    limit = 2**30
    for kernel in ("gram", "solve_layer"):
        other = {"B": huge(1, 2), "sample_weight": None}
        for n, bias in ((2**33, False), (limit, False), (limit - 1, True)):
            what = f"the Gram of {n} columns and bias={bias} overflows a size"
            yield row(kernel, what, ValueError, names("A"), A=huge(1, n), bias=bias, **other)
    sizes = {"A": huge(1, 2**33), "D": huge(1, 2**33), "sample_weight": None}
    yield row("cross", "n * m overflows a size", ValueError, r"\b[AD]\b", **sizes)
    sizes = {"A": huge(2**33, 1), "W": huge(1, 2**33), "out": None}
    yield row("linear", "d * m overflows a size", ValueError, r"\b[AW]\b", **sizes)

    large = np.full((6, 4), 1e30, np.float32)
    for kernel in SUMMING:
        other = "D" if kernel == "cross" else "B"
        message = names(f"[A{other}]", "float64")
        both = {"A": large, other: large}
        yield row(kernel, "the float32 products overflow", ValueError, message, **both)
        both = {"A": np.full((6, 4), 255, np.uint8), other: large * np.float32(1e8)}
        yield row(kernel, "uint8 by float32 overflows", ValueError, message, **both)
        message = names(f"(A|{other}|sample_weight)", "float64")
        weights = np.full(6, 1e60)
        what = "weights overflow float32"
        yield row(kernel, what, ValueError, message, sample_weight=weights)

    for kernel, batch in (("solve", ()), ("solve_batched", (3,))):
        G = np.broadcast_to(np.eye(4) * 1e-300, (*batch, 4, 4))
        C = np.full((*batch, 4, 2), 1e300)
        yield row(kernel, "the quotient overflows", ValueError, names("C", "G"), G=G, C=C)


def rows_of_every_out(kernel):
    def out_row(what, exception, out, **replaced):
        if kernel == "tangent" and "W" in replaced:
            replaced["N"] = np.full((6, 2), 0.5, replaced["W"].dtype)
        return row(kernel, f"out {what}", exception, names("out"), out=out, **replaced)

    zeros = np.zeros((6, 2), np.float32)
    read_only = zeros.copy()
    read_only.flags.writeable = False
    unaligned = np.zeros(zeros.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(6, 2)
    yield out_row("has too few rows", ValueError, zeros[:5].copy())
    yield out_row("has too many columns", ValueError, np.zeros((6, 3), np.float32))
    yield out_row("lacks a dimension", ValueError, np.zeros(12, np.float32))
    yield out_row("is float64 for a float32 result", TypeError, zeros.astype(np.float64))
    yield out_row("is float32 for a float64 result", TypeError, zeros, W=np.ones((4, 2)))
    yield out_row("is in Fortran order", ValueError, np.asfortranarray(zeros))
    yield out_row("is strided", ValueError, np.zeros((6, 4), np.float32)[:, ::2])
    yield out_row("is read-only", ValueError, read_only)
    yield out_row("is not aligned", ValueError, unaligned)
    yield out_row("is a list", TypeError, zeros.tolist())
    memory = np.ones(48, np.float32)
    A, W = memory[:24].reshape(6, 4), memory[24:32].reshape(4, 2)
    overlaps_A, overlaps_W = memory[23:35].reshape(6, 2), memory[31:43].reshape(6, 2)
    yield out_row("overlaps A", ValueError, memory[:12].reshape(6, 2), A=A)
    yield out_row("overlaps the last element of A", ValueError, overlaps_A, A=A)
    yield out_row("overlaps the last element of W", ValueError, overlaps_W, W=W)


TABLE = [
    *rows_of_every_array(),
    *rows_of_every_option(),
    *rows_of_every_shape(),
    *rows_of_every_overflow(),
    *rows_of_every_out("linear"),
    *rows_of_every_out("tangent"),
]


@pytest.mark.parametrize(("kernel", "replaced", "exception", "message"), TABLE)
def test_bad_input_is_refused_by_name_and_changes_nothing(kernel, replaced, exception, message):
    arguments = valid_arguments(kernel) | replaced
    # An array with zero strides is larger than its memory: there is nothing to copy.
    arrays = [x for x in arguments.values() if isinstance(x, np.ndarray) and x.nbytes < 2**20]
    before = [x.copy() for x in arrays]
    with pytest.raises(exception, match=message):
        FUNCTIONS[kernel](**arguments)
    assert all(map(same_bits, arrays, before))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_threads", [None, True, np.int64(2)], ids=repr)
def test_the_arguments_the_table_starts_from_are_accepted(kernel, n_threads):
    FUNCTIONS[kernel](**valid_arguments(kernel), n_threads=n_threads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_bad_value_is_named_at_every_thread_count(dtype, n_threads):
    A, B, W = np.ones((9000, 70), dtype), np.ones((9000, 3), dtype), np.ones((70, 3), dtype)
    A[8999, 0] = A[3001, 69] = np.nan
    A[3001, 65] = -np.inf
    calls = [
        lambda: bf.gram(A, n_threads=n_threads),
        lambda: bf.gram(A, B, n_threads=n_threads),
        lambda: bf.cross(A, B, n_threads=n_threads),
        lambda: bf.solve_layer(A, B, n_threads=n_threads),
        lambda: bf.linear(A, W, n_threads=n_threads),
        lambda: bf.tangent(A, W, B, n_threads=n_threads),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"\bA contains infinity at \[3001, 65\]"):
            call()


@pytest.mark.parametrize("name", ["A", "W"])
def test_a_bad_value_in_the_last_row_leaves_all_of_out_unwritten(name, n_threads):
    arguments = {
        "A": np.ones((3000, 70), np.float32),
        "W": np.ones((70, 30), np.float32),
        "out": np.full((3000, 30), -7.0, np.float32),
    }
    arguments[name][-1, -1] = np.nan
    before = arguments["out"].copy()
    with pytest.raises(ValueError, match=rf"\b{name} contains NaN"):
        bf.linear(**arguments, n_threads=n_threads)
    assert same_bits(arguments["out"], before)


def test_out_next_to_the_inputs_in_one_buffer_is_accepted():
    memory = np.ones(44, np.float32)
    A, W, out = memory[:24].reshape(6, 4), memory[24:32].reshape(4, 2), memory[32:].reshape(6, 2)
    assert bf.linear(A, W, out=out) is out
    assert same_bits(memory, np.repeat(np.float32([1, 4]), [32, 12]))


def test_a_lower_triangle_within_the_tolerance_is_symmetric_enough():
    G, C = np.diag([4.0, 1.0]), np.ones((2, 1))
    just_inside = replaced_at(G, (1, 0), 0.9e-6 * 4.0)
    just_outside = replaced_at(G, (1, 0), 1.1e-6 * 4.0)
    assert same_bits(bf.solve(just_inside, C), bf.solve(G, C))
    with pytest.raises(ValueError, match=r"\bG\b"):
        bf.solve(just_outside, C)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 70])
def test_every_element_of_g_is_checked_at_every_size(n, dtype):
    G, C = np.eye(n, dtype=dtype), np.ones((n, 1))
    bf.solve(G, C)
    for place in {(0, n - 1), (n - 1, 0), (n // 2, n - 1), (n - 1, n // 2)}:
        for value in (np.nan, np.inf, -np.inf):
            with pytest.raises(ValueError, match=rf"^G contains .* at \[{place[0]}, {place[1]}\]"):
                bf.solve(replaced_at(G, place, value), C)
        if place[0] != place[1]:
            with pytest.raises(ValueError, match=r"^G is not symmetric"):
                bf.solve(replaced_at(G, place, 0.1), C)


@pytest.mark.parametrize("kernel", ["gram", "solve_layer"])
def test_a_gram_that_fits_a_size_but_no_memory_is_a_memory_error(kernel):
    columns = 2**29  # 2**61 bytes: more than any address space
    arguments = {"A": np.broadcast_to(np.float32(1), (1, columns)), "B": np.ones((1, 2))}
    with pytest.raises(MemoryError):
        FUNCTIONS[kernel](**arguments)


@pytest.mark.parametrize("n", [8, 9, 37])
def test_infinity_is_found_in_a_matrix_whose_blocks_share_memory(n):
    # Both triangles of a Hankel matrix are one piece of memory: blocks of either begin at the same address.
    values = np.zeros(2 * n - 1)
    for place in range(2 * n - 1):
        with_infinity = values.copy()
        with_infinity[place] = np.inf
        G = np.lib.stride_tricks.as_strided(with_infinity, (n, n), (8, 8))
        with pytest.raises(bf.NonFiniteError, match=r"^G "):
            bf.solve(G, np.ones((n, 1)), eps=1.0, relative=False)
