"""Network files: what is saved comes back; an old, damaged or foreign file is recognised and never executed."""

import enum
import io
import json
import os
import pickle
import stat
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
from tests.support.reference import ACTIVATIONS

NAMES = list(ACTIVATIONS)
MISSING = object()


def network(classes=None):
    net = bf.Network([3, 4, 2], ["tanh"], "sigmoid", seed=1)
    net.classes = classes
    return net


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.npz"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Give the bytes of a good file."""
    path = tmp_path_factory.mktemp("model") / "net.npz"
    network(np.array(["no", "yes"])).save(path)
    return path.read_bytes()


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(content, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def header_of(data):
    return json.loads(np.load(io.BytesIO(members(data)["header.npy"])).tobytes())


def with_header(data, **changes):
    """Give the file with some entries of its header replaced; MISSING takes one away."""
    header = {**header_of(data), **changes}
    header = {key: value for key, value in header.items() if value is not MISSING}
    text = npy(np.frombuffer(json.dumps(header).encode(), np.uint8))
    return archive_of({**members(data), "header.npy": text})


# What is saved comes back.


@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=5),
    names=st.lists(st.sampled_from(NAMES), min_size=4, max_size=4),
    bias=st.booleans(),
    scale=st.sampled_from([None, 1 / 255, -3.0]),
    seed=st.integers(0, 999),
)
def test_a_loaded_network_gives_the_same_bits(tmp_path_factory, sizes, names, bias, scale, seed):
    path = tmp_path_factory.mktemp("model") / "net.npz"
    hidden = names[: len(sizes) - 2]
    net = bf.Network(sizes, hidden, names[-1], bias, seed, input_scale=scale)
    net.save(path)
    again = bf.Network.load(path)
    X = np.random.default_rng(0).normal(size=(5, sizes[0]))
    assert again.forward(X).tobytes() == net.forward(X).tobytes()
    assert repr(again) == repr(net)
    assert again.input_scale == net.input_scale
    assert again.classes is None


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 8]),
        np.array([0, 255], np.uint8),
        np.array([False, True]),
        np.array([0.5, 1.5]),
        np.array(["no", "ja, gewiß"]),
        np.array([b"no", b"yes"]),
        np.array(["2024-01-01", "2024-06-01"], "datetime64[D]"),
        np.array(["no", "yes"], object),
        np.array([1, 2], object),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_classes_come_back(path, classes):
    net = network(classes)
    net.save(path)
    again = bf.Network.load(path)
    assert again.classes.tolist() == classes.tolist()
    X = np.random.default_rng(0).normal(size=(30, 3))
    assert again.predict(X).tolist() == net.predict(X).tolist()


def test_a_trained_network_predicts_the_same_after_loading(path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 100)
    X = (100 * labels[:, np.newaxis] + rng.integers(0, 120, (100, 3))).astype(np.uint8)
    net = bf.Network([3, 6, 2], "softmax")
    bf.fit_classifier(net, X, np.array(["low", "high"])[labels])
    net.save(path)
    again = bf.Network.load(path)
    assert again.predict(X).tolist() == net.predict(X).tolist()
    assert again.input_scale == 1 / 255


def test_weights_in_fortran_order_come_back(path):
    net = network()
    net.weights = [np.asfortranarray(W) for W in net.weights]
    net.save(path)
    np.testing.assert_array_equal(bf.Network.load(path).weights[0], net.weights[0])


class Answer(enum.IntEnum):
    NO = 0
    YES = 1


@pytest.mark.parametrize(
    "classes",
    [
        np.array([None, 1], object),
        np.array([(1, 2), (3, 4)], [("a", int), ("b", int)]),
        np.array([1, "a"], object),
        np.array(["a", "a\0"], object),
        np.array([frozenset("a"), frozenset("b")], object),
    ],
    ids=["None", "records", "two types", "NUL", "sets"],
)
def test_classes_that_a_file_cannot_hold_are_named_and_nothing_is_written(path, classes):
    path.write_text("here before")
    with pytest.raises(TypeError, match="classes have dtype"):
        network(classes).save(path)
    assert path.read_text() == "here before"
    assert os.listdir(path.parent) == [path.name]


def test_saving_over_a_file_replaces_it_whole(path):
    bf.Network([9, 9]).save(path)
    network().save(str(path))
    assert bf.Network.load(path).layer_sizes == (3, 4, 2)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_saved_file_has_the_permissions_of_any_new_file(path, tmp_path):
    network().save(path)
    (tmp_path / "other").write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_a_save_that_fails_leaves_no_file_behind(path, monkeypatch):
    def full(*arguments, **options):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        network().save(path)
    assert os.listdir(path.parent) == []


def test_numpy_reads_the_file_without_pickle(path):
    net = network(np.array([1, 2]))
    net.save(path)
    with np.load(path, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["weights_1"], net.weights[1])
        np.testing.assert_array_equal(file["classes"], [1, 2])


# Old, damaged, foreign.


def refuse(path, data, message):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as refused:
        bf.Network.load(path)
    assert path.name in str(refused.value)


def test_a_missing_file_and_a_folder_are_errors_of_the_system(path):
    with pytest.raises(FileNotFoundError):
        bf.Network.load(path)
    with pytest.raises(OSError, match=str(path.parent.name)):
        bf.Network.load(path.parent)


@pytest.mark.parametrize(
    "data", [b"", b"PK", b"hello" * 100, pickle.dumps([1]), npy(np.ones(3))], ids=range(5)
)
def test_a_file_of_another_kind_is_recognised(path, data):
    refuse(path, data, "of another kind or damaged")


def test_another_archive_is_recognised(path):
    refuse(path, archive_of({"weights_0.npy": npy(np.ones((2, 2)))}), "it has no header")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_is_named(path, saved, version):
    message = f"format version is {version!r}; this release reads version 1"
    refuse(path, with_header(saved, version=version), message)


def test_another_format_is_recognised(path, saved):
    refuse(path, with_header(saved, format="other"), "does not name the format")
    text = npy(np.frombuffer(b"[1, 2]", np.uint8))
    refuse(path, archive_of({"header.npy": text}), "does not name the format")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_recognised(path, saved, share):
    refuse(path, saved[: int(share * len(saved))], "cannot be read as a network")


@given(place=st.integers(0), flip=st.integers(1, 255))
def test_a_changed_byte_is_recognised_or_changes_nothing(tmp_path_factory, saved, place, flip):
    data = bytearray(saved)
    data[place % len(data)] ^= flip
    path = tmp_path_factory.mktemp("model") / "net.npz"
    path.write_bytes(data)
    try:
        net = bf.Network.load(path)
    except ValueError as error:
        assert "net.npz" in str(error)  # noqa: PT017
    else:
        for W, expected in zip(net.weights, network().weights, strict=True):
            np.testing.assert_array_equal(W, expected)
        assert net.classes.tolist() == ["no", "yes"]


def test_changed_weights_are_recognised_even_in_a_whole_archive(path, saved):
    content = members(saved)
    content["weights_0.npy"] = npy(network().weights[0] + 1e-9)
    refuse(path, archive_of(content), "weights_0 is not what the header says.*checksum")


@pytest.mark.parametrize(
    "array",
    [
        np.ones((400_000, 3)),
        np.ones((3, 4)),
        np.ones((4, 4), np.int64),
        np.ones((4, 4), ">f8"),
    ],
    ids=["longer", "shape", "type", "byte order"],
)
def test_an_array_of_another_shape_or_type_is_recognised(path, saved, array):
    data = archive_of({**members(saved), "weights_0.npy": npy(array)})
    refuse(path, data, "weights_0 is not what the header says")


def test_whole_numbers_are_no_weights_even_if_the_header_says_so(path, saved):
    W = np.ones((4, 4), np.int64)
    arrays = header_of(saved)["arrays"]
    start = zlib.crc32(b"[4, 4] <i8")
    arrays["weights_0"] = {"shape": [4, 4], "dtype": "<i8", "crc32": zlib.crc32(W.tobytes(), start)}
    data = archive_of({**members(saved), "weights_0.npy": npy(W)})
    refuse(path, with_header(data, arrays=arrays), "weights_0 is not what the header says")


def large_claims(saved):
    """Give files that claim to hold a terabyte: in the header of an array, and in the archive's directory."""
    content = members(saved)
    claim = (
        content["weights_0.npy"].replace(b"(4, 4)", b"(4, 9000000000)").replace(b" " * 9, b"", 1)
    )
    assert len(claim) == len(content["weights_0.npy"])
    yield archive_of({**content, "weights_0.npy": claim})
    directory = bytearray(saved)
    entry = directory.rindex(b"PK\1\2", 0, directory.rindex(b"weights_0.npy"))
    directory[entry + 20 : entry + 28] = b"\xfe\xff\xff\xff" * 2  # sizes, compressed and not
    yield bytes(directory)


def nested(count, size):
    """Give an archive of arrays that lie inside one another: each holds the next one, name and all."""
    offsets, content, entries = [], np.zeros(size).tobytes(), []
    for layer in reversed(range(count)):
        name = f"weights_{layer}.npy"
        content += b"\0" * (-len(content) % 8)
        array = np.frombuffer(content)
        with io.BytesIO() as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr(name, npy(array))
            entries.insert(0, archive.getinfo(name))
            whole = file.getvalue()[: archive.start_dir]
        offsets.insert(0, len(whole) - len(content))
        content = whole
    file = io.BytesIO(content)
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "w") as archive:
        arrays = {
            f"weights_{layer}": {"shape": [0], "dtype": "<f8", "crc32": 0} for layer in range(count)
        }
        header = {"format": "bpls_fast.network", "version": 1, "arrays": arrays}
        archive.writestr("header.npy", npy(np.frombuffer(json.dumps(header).encode(), np.uint8)))
        for layer, entry in enumerate(entries):
            entry.header_offset = sum(offsets[:layer])
            archive.filelist.append(entry)
            archive.NameToInfo[entry.filename] = entry
    return file.getvalue()


def test_arrays_that_lie_inside_one_another_are_not_read(path):
    refuse(path, nested(50, 1000), "they overlap")
    refuse(path, nested(1, 1000), "weights_0 is not what the header says")


def test_no_room_is_made_for_what_a_file_only_claims_to_hold(path, saved):
    for data in large_claims(saved):
        tracemalloc.start()
        try:
            refuse(path, data, "cannot be read as a network")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 10_000_000


def test_a_missing_array_is_recognised(path, saved):
    content = members(saved)
    del content["weights_1.npy"]
    refuse(path, archive_of(content), "weights_1")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_arrays_are_not_read(path, saved, method):
    refuse(path, archive_of(members(saved), method), "header has .* not compressed")


def test_a_long_header_is_not_read(path, saved):
    content = {**members(saved), "header.npy": npy(np.zeros(1 << 21, np.uint8))}
    refuse(path, archive_of(content), "its header is longer than")


@pytest.mark.parametrize("dtype", ["|O", "V8", "<c16", "<i8", "(2", "nonsense"])
def test_an_array_that_is_said_to_be_of_another_type_is_not_read(path, saved, dtype):
    arrays = header_of(saved)["arrays"]
    arrays["weights_0"]["dtype"] = dtype
    refuse(path, with_header(saved, arrays=arrays), "cannot be read as a network")


@pytest.mark.parametrize("shape", [[-4, -4], [4.0, 4], ["4", 4], [2**62, 2**62], 16])
def test_an_array_of_impossible_shape_is_not_read(path, saved, shape):
    arrays = header_of(saved)["arrays"]
    arrays["weights_0"]["shape"] = shape
    refuse(path, with_header(saved, arrays=arrays), "cannot be read as a network")


class Trap:
    """Unpickling it would leave a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickle_inside_is_never_executed(path, saved, tmp_path):
    trap = tmp_path / "executed"
    poison = npy(np.array([Trap(str(trap))], object), allow_pickle=True)
    for name in ("header.npy", "weights_0.npy", "classes.npy"):
        refuse(path, archive_of({**members(saved), name: poison}), "cannot be read as a network")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_sizes": [3, 4]}, "activation names"),
        ({"layer_sizes": [3, 5, 2]}, "weights have shapes"),
        ({"layer_sizes": [10**9, 10**9, 10**9]}, "weights have shapes"),
        ({"layer_sizes": "abc"}, "layer_sizes"),
        ({"layer_sizes": None}, "layer_sizes"),
        ({"layer_sizes": MISSING}, "layer_sizes"),
        ({"input_scale": MISSING}, "input_scale"),
        ({"activations": ["tanh", "swish"]}, "output_activation is 'swish'"),
        ({"activations": []}, "valid network"),
        ({"activations": 3}, "valid network"),
        ({"bias": "yes"}, "bias is 'yes'"),
        ({"bias": False}, "weights have shapes"),
        ({"input_scale": 0}, "input_scale"),
        ({"input_scale": "1"}, "input_scale"),
        ({"arrays": {}}, "weights have shapes"),
        ({"arrays": 3}, "cannot be read"),
    ],
)
def test_a_header_that_describes_no_network_is_refused(path, saved, changes, message):
    refuse(path, with_header(saved, **changes), message)


def test_arrays_of_other_names_are_refused(path, saved):
    content, arrays = members(saved), header_of(saved)["arrays"]
    content["weights_7.npy"] = content["weights_1.npy"]
    arrays["weights_7"] = arrays.pop("weights_1")
    data = with_header(archive_of(content), arrays=arrays)
    refuse(path, data, r"its arrays are \['weights_0', 'weights_7'\]")


def test_classes_that_do_not_fit_the_outputs_are_refused(path):
    network(np.array([1, 2, 3])).save(path)
    refuse(path, path.read_bytes(), r"classes have shape \(3,\); expected \(2,\)")


def test_weights_that_are_not_finite_are_refused(path, monkeypatch):
    net = network()
    net.weights[0][0, 0] = np.nan
    monkeypatch.setattr("bpls_fast.network.network.check_finite", lambda *_: None)
    net.save(path)  # a file that save does not write by itself
    refuse(path, path.read_bytes(), "NaN or infinity")


def test_a_missing_folder_is_named_by_the_path_that_was_given(tmp_path):
    path = tmp_path / "nowhere" / "net.npz"
    with pytest.raises(FileNotFoundError, match="folder") as error:
        bf.Network([2, 1]).save(path)
    assert error.value.filename == str(path)


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path):
    path = tmp_path / ("n" * 249)
    bf.Network([2, 1]).save(path)
    assert bf.Network.load(path).layer_sizes == (2, 1)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    net = bf.Network([2, 1])
    net.weights[0].fill(np.nan)
    with pytest.raises(ValueError, match=r"weights\[0\] contains NaN at \[0, 0\]"):
        net.save(tmp_path / "net.npz")
    assert not list(tmp_path.iterdir())
