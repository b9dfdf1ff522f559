"""Damaged and hostile files of every format: a clear error or a valid network, no crash, no hang, little memory."""

import contextlib
import os
import random
import re
import signal
import tracemalloc
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import bpls_fast as bf
from tests.support import mutations, shared_library

MOST_MEMORY = 4_000_000  # bytes, for files of some hundred; a JSON header alone may have a million
LONGEST = 20  # seconds, where a file takes less than a thousandth


def only_python(data, net):
    """Compare with nothing: no other library of ours reads this format."""


def cpp_agrees(data, net):
    """Let the C++ library read the same bytes: it never takes less than Python, and returns the same bits."""
    found = shared_library.parsed(data)
    if net is None:
        return
    assert not isinstance(found, str), found
    assert found.shape == (net.layer_sizes[0], net.layer_sizes[-1])
    x = np.linspace(-1, 1, net.layer_sizes[0])
    outputs = found.forward(x)
    if outputs is not None:
        assert outputs.tobytes() == net.forward(x[np.newaxis]).tobytes()
    else:
        assert not is_finite(net, x)


def is_finite(net, x):
    """Tell whether every layer is finite for a row in Python, without an error about infinities or NaN."""
    try:
        values = [*net.layer_inputs(x[np.newaxis]), net.decision(x[np.newaxis])]
    except ValueError:
        return False
    return all(np.isfinite(layer).all() for layer in values)


class Format(NamedTuple):
    save: str
    load: str
    changed: object
    agrees: object = only_python


FORMATS = {
    "npz": Format("save", "load", mutations.npz_changed),
    "safetensors": Format(
        "to_safetensors", "from_safetensors", mutations.safetensors_changed, cpp_agrees
    ),
    "onnx": Format("to_onnx", "from_onnx", mutations.onnx_changed),
}


class HangError(BaseException):
    """Not an Exception, so that no reader takes it for a fault of the file."""


def interrupt(*_):
    raise HangError


@pytest.fixture(autouse=True)
def _guarded():
    """Follow the memory, and let a reader that hangs fail where the system has alarms."""
    tracemalloc.start()
    before = signal.signal(signal.SIGPROF, interrupt) if os.name == "posix" else None
    try:
        yield
    finally:
        tracemalloc.stop()
        if before is not None:
            signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def limited():
    tracemalloc.reset_peak()
    start, _ = tracemalloc.get_traced_memory()
    if os.name == "posix":
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        if os.name == "posix":
            signal.setitimer(signal.ITIMER_PROF, 0)
    _, peak = tracemalloc.get_traced_memory()
    assert peak - start < MOST_MEMORY


def networks():
    """Make networks that differ in all that a file may hold."""
    labelled = bf.Network([3, 4, 2], ["tanh"], "softmax", seed=1)
    labelled.classes = np.array(["no", "yes"])
    numbered = bf.Network([2, 2, 2, 3], "softminus", "elu", bias=False, input_scale=1 / 255)
    numbered.classes = np.array([0.5, 7.0, -1.0])
    limited = bf.Network([2, 2, 1], "tanh", input_limits=[[-1, -np.inf], [0.5, 2]])
    return [labelled, numbered, bf.Network([2, 1], output_activation="identity"), limited]


@pytest.fixture(params=FORMATS)
def damaged(request, tmp_path):
    """Return good files of a format, its mutation, and a function that reads bytes and returns why they are refused."""
    form, path = FORMATS[request.param], tmp_path / "net.file"
    files = []
    for net in networks():
        getattr(net, form.save)(path)
        files.append(path.read_bytes())

    def reason(data):
        """Return why the bytes are refused, or None where they are a network."""
        path.write_bytes(data)
        try:
            with limited(), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                net = getattr(bf.Network, form.load)(path)
        except ValueError as error:
            assert not warned
            assert "net.file" in str(error)  # noqa: PT017
            form.agrees(data, None)
            return re.sub(r"\d+|'[^']*'", "", str(error))
        assert not warned
        assert [W.shape for W in net.weights] == net.weight_shapes
        assert all(np.isfinite(W).all() for W in net.weights)
        assert net.classes is None or net.classes.shape == (net.layer_sizes[-1],)
        if net.input_limits is not None:
            assert (net.input_limits[0] <= net.input_limits[1]).all()
        assert 8 * sum(W.size for W in net.weights) <= 2 * len(data)  # float32 at least in the file
        form.agrees(data, net)
        return None

    return files, form.changed, reason


def test_a_file_that_is_cut_off_anywhere_is_refused(damaged):
    files, _, reason = damaged
    for data in files:
        assert reason(data) is None
        for length in range(len(data)):
            assert reason(data[:length]), f"the first {length} of {len(data)} bytes"


def read_mutations(damaged, numbers):
    """Read damaged files; return how many are networks nevertheless, and the reasons why the others are refused."""
    files, changed, reason = damaged
    networks, reasons = 0, set()
    for number in numbers:
        source = random.Random(number)
        mutate = source.choice([mutations.bytes_changed, changed, changed])
        try:
            why = reason(mutate(source, source.choice(files)))
        except BaseException as error:
            raise AssertionError(f"mutation {number}") from error
        networks += why is None
        reasons.add(why)
    return networks, reasons


def test_mutations_are_refused_or_networks(damaged):
    networks, reasons = read_mutations(damaged, range(1000))
    # The damage reaches deep enough: many checks refuse some of it, and some of it is harmless.
    assert networks > 15
    assert len(reasons) > 30


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(5))
def test_a_hundred_thousand_mutations_are_refused_or_networks(damaged, part):
    networks, reasons = read_mutations(damaged, range(20_000 * part, 20_000 * (part + 1)))
    print(f"{networks} networks, {len(reasons)} reasons for a refusal")
