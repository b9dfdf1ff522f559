"""Networks as safetensors: they come back to the bit, other readers understand them, and nothing else is read."""

import json

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.exported import NAMES, assert_same_network, network
from tests.support.required import round_trip

MISSING = object()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.safetensors"


def split(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header, values):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + values


def changed(entries, changes):
    entries = {**entries, **changes}
    return {key: value for key, value in entries.items() if value is not MISSING}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the header and the data of a good file."""
    path = tmp_path_factory.mktemp("model") / "net.safetensors"
    network("tanh", classes=np.array(["a", "b", "c"])).to_safetensors(path)
    return split(path.read_bytes())


# What is written comes back.


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("scale", [None, 1 / 255, -3.0])
@pytest.mark.parametrize("name", NAMES)
def test_a_network_comes_back_to_the_bit(path, name, bias, scale):
    net = network(name, bias=bias, scale=scale)
    net.to_safetensors(path)
    assert_same_network(bf.Network.from_safetensors(path), net)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, 8, -(2**63)]),
        np.array([0, 255, 7], np.uint8),
        np.array([0, 2**64 - 1, 7], np.uint64),
        np.array([3, 8, 9], ">i4"),
        np.array([False, True, True]),
        np.array([0.1, 1.5, -0.0]),
        np.array([0.1, 1.5, 1e-45], np.float32),
        np.array([0.1, 1.5, 6e-8], np.float16),
        np.array(["no", 'ja, "gewiß"\n', "\U0001f600"]),
        np.array(["", "a", "b"], "<U50"),
    ],
    ids=lambda classes: classes.dtype.str,
)
def test_labels_come_back_in_their_own_type(path, classes):
    net = network("softmax", classes=classes)
    net.to_safetensors(path)
    assert_same_network(bf.Network.from_safetensors(path), net)


def test_labels_that_are_objects_of_one_type_become_an_array_of_it(path):
    network("softmax", classes=np.array(["x", "y", "z"], object)).to_safetensors(path)
    assert bf.Network.from_safetensors(path).classes.tolist() == ["x", "y", "z"]


def test_weights_in_fortran_order_come_back(path):
    net = network("tanh")
    net.weights = [np.asfortranarray(W) for W in net.weights]
    net.to_safetensors(path)
    for W, wanted in zip(bf.Network.from_safetensors(path).weights, net.weights, strict=True):
        np.testing.assert_array_equal(W, wanted)


def test_the_library_of_the_format_reads_the_file(path):
    library = round_trip("safetensors")
    numbers = round_trip("safetensors.numpy")
    net = network("tanh", scale=0.1 + 0.2, classes=np.array([3, 1, 4]))
    net.to_safetensors(path)
    tensors = numbers.load_file(path)
    assert len(tensors) == 6
    for layer, W in enumerate(net.weights):
        np.testing.assert_array_equal(tensors[f"layers.{layer}.weight"], W[:-1])
        np.testing.assert_array_equal(tensors[f"layers.{layer}.bias"], W[-1])
    with library.safe_open(path, "np") as file:
        assert file.metadata() == {
            "format": "bpls_fast.network",
            "version": "1",
            "activations": "tanh,tanh,tanh",
            "input_scale": "0.30000000000000004",
            "classes": "[3, 1, 4]",
            "classes_dtype": "<i8",
        }


def test_every_tensor_starts_at_a_multiple_of_8_bytes_right_after_the_last(path):
    for classes in (None, *(np.array(["x" * n, "y", "z"]) for n in range(1, 9))):
        network("tanh", classes=classes).to_safetensors(path)
        data = path.read_bytes()
        header, values = split(data)
        assert (len(data) - len(values)) % 8 == 0
        del header["__metadata__"]
        offsets = [entry["data_offsets"] for entry in header.values()]
        assert [first for first, _ in offsets] == [0, *(last for _, last in offsets[:-1])]
        assert offsets[-1][1] == len(values)


# What cannot be written.


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        (np.array([b"a", b"b", b"c"]), TypeError, "classes have dtype |S1"),
        (np.array([1, 2, 3], "datetime64[D]"), TypeError, "classes have dtype datetime64"),
        (np.array([1, "a", None], object), TypeError, "classes have dtype object"),
        (np.array([1.0, np.inf, 2]), ValueError, "classes hold infinity"),
        (np.array(["a", "b", "\ud800"]), ValueError, "classes hold .* half a surrogate pair"),
        (np.array(list("abcdef"), "<U999999"), ValueError, "classes have 23999976 bytes"),
        (np.array(["a" * 400_000, "b" * 400_000, "c" * 400_000]), ValueError, "header of"),
    ],
    ids=["bytes", "dates", "objects", "infinity", "surrogate", "wide", "long"],
)
def test_labels_that_the_format_cannot_hold_are_named_and_nothing_is_written(
    tmp_path, path, classes, error, message
):
    with pytest.raises(error, match=message):
        network("softmax", classes=classes).to_safetensors(path)
    assert not list(tmp_path.iterdir())


# What is refused.


def refuse(path, data, message):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as refused:
        bf.Network.from_safetensors(path)
    assert path.name in str(refused.value)


@pytest.mark.parametrize("length", [2**20 + 8, 2**63, 2**64 - 1, 1, 12])
def test_a_header_of_impossible_length_is_not_read(path, saved, length):
    data = joined(*saved)
    refuse(path, length.to_bytes(8, "little") + data[8:], f"said to have {length} bytes")


@pytest.mark.parametrize("data", [b"", b"\0" * 7, b"\0" * 8, b"hello world, hello", b"PK" * 40])
def test_a_file_of_another_kind_is_recognised(path, data):
    refuse(path, data, "cannot be read as a network")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"[1, 2]  ", "not a JSON object"),
        (b'{"a": 1, "a": 1}', "a name twice"),
        (b"{" * 800, "of another kind or damaged"),
        (b"[" * 100_000, "of another kind or damaged"),
        (b'{"a": "\xff"}', "of another kind or damaged"),
        (b"{}", "does not name the format"),
        (b'{"__metadata__": 3}', "does not name the format"),
    ],
    ids=range(7),
)
def test_a_header_that_is_none_is_refused(path, header, message):
    refuse(path, joined(header, b""), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "pt"}, "does not name the format"),
        ({"version": "2"}, "format version is '2'; this release reads version '1'"),
        ({"version": 1}, "format version is 1"),
        ({"activations": MISSING}, "metadata has no activations"),
        ({"activations": ["tanh"] * 3}, "for 'activations'; expected text"),
        ({"note": 5}, "metadata has 5 for 'note'; expected text"),
        ({"note": None}, "metadata has None for 'note'; expected text"),
        ({"activations": "tanh,tanh"}, "2 tensors and .* bytes more"),
        ({"activations": "tanh,tanh,tanh,tanh"}, r"it has no layers\.3\.weight"),
        ({"activations": "tanh,tanh,swish"}, "output_activation is 'swish'"),
        ({"activations": ""}, "tensors and"),
        ({"input_scale": "0.0"}, "input_scale is 0.0"),
        ({"input_scale": "nan"}, "input_scale is nan"),
        ({"input_scale": "1_0.0"}, "input_scale is '1_0.0'"),
        ({"input_scale": " 1.0"}, "input_scale is ' 1.0'"),
        ({"input_scale": "one"}, "of another kind or damaged"),
        ({"classes": ""}, "damaged"),
        ({"classes": "{}"}, "no list of str"),
        ({"classes": '["a", "b"]'}, r"classes have shape \(2,\); expected \(3,\)"),
        ({"classes": '["a", "b", 3]'}, "no list of str"),
        ({"classes": '["a", "b", "cc"]'}, "do not fit the type"),
        ({"classes_dtype": "|O"}, r"said to have the type '\|O'"),
        ({"classes_dtype": "<U0"}, "said to have the type"),
        ({"classes_dtype": "<U1,<U1"}, "said to have the type"),
        ({"classes_dtype": "<i4"}, "no list of int"),
        ({"classes_dtype": "<i4", "classes": "[1, true, 2]"}, "no list of int"),
        ({"classes_dtype": "|u1", "classes": "[1, 2, 256]"}, "network"),
        ({"classes_dtype": "<f4", "classes": "[1.0, 2.0, 0.1]"}, "do not fit the type"),
        ({"classes_dtype": "<f8", "classes": "[1.0, 2.0, NaN]"}, "classes hold NaN"),
        ({"classes_dtype": "<f8", "classes": "[1.0, 2.0, Infinity]"}, "classes hold Infinity"),
        ({"classes": r'["a", "b", "\ud800"]'}, "damaged"),
        ({"classes_dtype": "<U999999", "classes": json.dumps(["a"] * 9)}, "more than"),
    ],
    ids=str,
)
def test_metadata_that_describe_no_network_are_refused(path, saved, changes, message):
    header, values = saved
    metadata = changed(header["__metadata__"], changes)
    refuse(path, joined({**header, "__metadata__": metadata}, values), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "F32"}, "expected F64"),
        ({"shape": [5, 6]}, r"holds no valid network: weights have shapes|layer 0 has"),
        ({"shape": [30]}, "expected 2 sizes"),
        ({"shape": 30}, "expected 2 sizes"),
        ({"shape": [6.0, 5]}, "expected 2 sizes"),
        ({"shape": [True, 30]}, "expected 2 sizes"),
        ({"shape": [0, 5]}, "expected 2 sizes"),
        ({"shape": [-6, -5]}, "expected 2 sizes"),
        ({"shape": [2**62, 4]}, "expected 2 sizes"),
        ({"shape": [6, 500]}, "expected F64 with data_offsets"),
        ({"shape": [6, 50], "data_offsets": [0, 2400]}, "ends after 2400 bytes"),
        ({"data_offsets": [8, 248]}, "expected F64 with data_offsets"),
        ({"data_offsets": [0, 240.0]}, "expected F64 with data_offsets"),
        ({"data_offsets": [False, 240]}, "expected F64 with data_offsets"),
        ({"data_offsets": MISSING}, "expected F64 with data_offsets"),
        ({"more": 1}, "expected F64 with data_offsets"),
    ],
    ids=str,
)
def test_a_tensor_that_is_none_is_refused(path, saved, changes, message):
    header, values = saved
    tensor = changed(header["layers.0.weight"], changes)
    refuse(path, joined({**header, "layers.0.weight": tensor}, values), message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers.1.weight": MISSING}, r"it has no layers\.1\.weight"),
        ({"layers.0.weight": 3}, "expected 2 sizes"),
        ({"layers.3.weight": {}}, "1 tensors and 0 bytes more"),
        ({"layers.2.bias": MISSING}, "0 tensors and 24 bytes more"),
    ],
    ids=str,
)
def test_tensors_of_other_names_are_refused(path, saved, changes, message):
    header, values = saved
    refuse(path, joined(changed(header, changes), values), message)


def test_a_bias_in_some_layers_alone_is_refused(path, saved):
    header, values = saved
    header = changed(header, {"layers.2.bias": MISSING})
    refuse(path, joined(header, values[:-24]), "some of its layers have a bias")


def test_bytes_after_the_weights_are_refused(path, saved):
    refuse(path, joined(*saved) + b"\0" * 8, "0 tensors and 8 bytes more")


def test_weights_that_are_not_finite_are_refused(path, saved):
    header, values = saved
    refuse(path, joined(header, np.array(np.nan).tobytes() + values[8:]), "NaN or infinity")


def test_weights_that_are_not_finite_are_not_written(path, tmp_path):
    net = network("tanh")
    net.weights[1][2, 3] = np.inf
    with pytest.raises(ValueError, match=r"weights\[1\] contains infinity at \[2, 3\]"):
        net.to_safetensors(path)
    assert not list(tmp_path.iterdir())


def test_what_is_no_plain_file_is_not_read():
    for device in ("/dev/zero", "/dev/null"):
        try:
            open(device, "rb").close()
        except OSError:
            pytest.skip(f"there is no {device}")
        with pytest.raises(ValueError, match="cannot be read as a network"):
            bf.Network.from_safetensors(device)
