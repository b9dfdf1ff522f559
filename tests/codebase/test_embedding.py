"""The package as a C and C++ library: the examples, built against what is installed, give what Python gives."""

import ctypes
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf
from tests import ROOT
from tests.support.required import program, required
from tests.support.shared_library import shared_library
from tests.support.subprocesses import output_of, run, run_code, run_python

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Build an example with nothing but the package's own folder; return the folder of its programs."""
    if not EXAMPLES.is_dir():
        pytest.skip("not in a checkout: no examples/")
    if sys.platform == "win32":
        pytest.skip("the programs are in other folders, and the library is not next to them")
    cmake, folders = program("cmake"), {}
    prefix = output_of(run_python("-m", "bpls_fast", "--cmakedir")).strip()

    def build(name: str, *options: str) -> Path:
        if (name, options) not in folders:
            folder = tmp_path_factory.mktemp(name)
            common = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"]
            output_of(run(cmake, "-S", str(EXAMPLES / name), "-B", str(folder), *common, *options))
            output_of(run(cmake, "--build", str(folder), timeout=300))
            folders[name, options] = folder
        return folders[name, options]

    return build


def write_safetensors(path: Path, net: bf.Network) -> None:
    """Write what the format asks for, byte by byte, so that the reader is not tested against a writer of its own."""
    header: dict[str, Any] = {
        "__metadata__": {
            "format": "bpls_fast.network",
            "version": "1",
            "activations": ",".join(a.name for a in net.activations),
            "input_scale": "" if net.input_scale is None else repr(net.input_scale),
            "classes": "" if net.classes is None else json.dumps(net.classes.tolist()),
            "classes_dtype": "" if net.classes is None else net.classes.dtype.str,
        }
    }
    data = b""
    for layer, W in enumerate(net.weights):
        weight, bias = (W[:-1], W[-1:]) if net.bias else (W, W[:0])
        for name, values in (("weight", weight), ("bias", bias[0] if net.bias else None)):
            if values is not None:
                begin, data = len(data), data + values.astype("<f8").tobytes()
                header[f"layers.{layer}.{name}"] = {
                    "dtype": "F64",
                    "shape": values.shape,
                    "data_offsets": [begin, len(data)],
                }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def random_mt19937(rows: int, cols: int, generator: np.random.Generator) -> np.ndarray:
    return -1 + 2 * generator.random((rows, cols))


def test_a_network_trained_in_cpp_is_the_one_that_fit_injective_trains(
    built: Any, tmp_path: Path
) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (80, 2))
    y = np.sin(3 * x[:, :1]) * x[:, 1:]
    np.savetxt(tmp_path / "data.csv", np.column_stack([x, y]), delimiter=",", fmt="%.17g")
    error, *lines = output_of(run(str(built("cpp") / "train"), str(tmp_path / "data.csv"))).split(
        "\n"
    )[:-1]

    # std::mt19937(5), and 53 bits of two of its numbers: NumPy's generator has another seeding by default.
    twister = np.random.MT19937()
    twister._legacy_seeding(5)
    net = bf.Network([2, 12, 1], "tanh", "identity")
    start = random_mt19937(3, 12, np.random.Generator(twister))
    net.weights = [start, net.weights[1]]
    bf.fit_injective(net, x, y, safeguard=False)

    found = [np.loadtxt(part, delimiter=",", ndmin=2) for part in (lines[:3], lines[3:])]
    for W, expected in zip(found, net.weights, strict=True):
        assert W.shape == expected.shape
        np.testing.assert_allclose(W, expected, rtol=1e-10, atol=1e-10)
    expected_error = np.sqrt(np.mean((net.forward(x) - y) ** 2))
    assert float(error.removeprefix("error ")) == pytest.approx(expected_error, abs=1e-6)


@pytest.mark.parametrize("example", ["c", "cpp"])
def test_clang_builds_programs_on_the_package_of_another_compiler(
    built: Any, tmp_path: Path, example: str
) -> None:
    compilers = [
        f"-DCMAKE_{language}_COMPILER={program(name)}"
        for language, name in (("C", "clang"), ("CXX", "clang++"))
    ]
    folder = built(example, *compilers)
    files = [str(tmp_path / "no.safetensors"), "no.csv"][: 1 if example == "c" else 2]
    finished = run(str(folder / "predict"), *files)
    assert finished.returncode != 0
    assert "no.safetensors" in finished.stderr


def test_the_training_example_is_short() -> None:
    if not EXAMPLES.is_dir():
        pytest.skip("not in a checkout: no examples/")
    assert len((EXAMPLES / "cpp" / "train.cpp").read_text(encoding="utf-8").splitlines()) < 100


@pytest.mark.parametrize("activation", bf.activations)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("classes", [None, np.array(["first", "zweite ü", "3"])])
@pytest.mark.parametrize("write", [write_safetensors, lambda path, net: net.to_safetensors(path)])
def test_a_network_trained_in_python_gives_the_same_bits_in_cpp(
    built: Any, tmp_path: Path, activation: str, bias: bool, classes: np.ndarray | None, write: Any
) -> None:
    X = np.random.default_rng(2).normal(size=(30, 7))
    net = bf.Network([7, 20, 9, 3], activation, "softmax", bias, input_scale=0.7)
    net.classes = classes
    write(tmp_path / "net.safetensors", net)
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", fmt="%.17g")
    files = str(tmp_path / "net.safetensors"), str(tmp_path / "rows.csv")
    lines = output_of(run(str(built("cpp") / "predict"), *files)).splitlines()
    cells = [line.split(",") for line in lines]
    found = np.array([[float(cell) for cell in row[:3]] for row in cells])
    assert found.tobytes() == net.forward(X).tobytes()
    labels = [""] * 30 if classes is None else net.predict(X).tolist()
    assert [row[3] for row in cells] == labels


def test_a_damaged_file_is_one_sentence_in_cpp(built: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1\n")
    (tmp_path / "net").write_bytes(b"nothing")
    finished = run(str(built("cpp") / "predict"), str(tmp_path / "net"), str(tmp_path / "rows.csv"))
    assert finished.returncode == 1
    assert finished.stderr == f"{tmp_path / 'net'}: the file ends within its first 8 bytes\n"


def images_and_expected(tmp_path: Path) -> tuple[str, str, bf.Network, np.ndarray]:
    X = np.random.default_rng(3).integers(0, 256, (20, 6), dtype=np.uint8)
    net = bf.Network([6, 8, 2], "sigmoid", "softmax")
    net.classes = np.array([True, False])
    write_safetensors(tmp_path / "net.safetensors", net)
    rows = "\n".join(" ".join(map(str, row)) for row in X.tolist())
    return str(tmp_path / "net.safetensors"), rows, net, X


def assert_c_program_predicts(executable: Path, tmp_path: Path) -> None:
    path, rows, net, X = images_and_expected(tmp_path)
    finished = subprocess.run([executable, path], input=rows, capture_output=True, text=True)
    cells = [line.split() for line in output_of(finished).splitlines()]
    found = np.array([[float(cell) for cell in row[:2]] for row in cells], dtype=np.float32)
    assert found.tobytes() == net.forward(X).tobytes()
    assert [row[2] for row in cells] == [str(label).lower() for label in net.predict(X)]


def test_the_c_example_gives_the_bits_of_python(built: Any, tmp_path: Path) -> None:
    assert_c_program_predicts(built("c") / "predict", tmp_path)


def test_the_c_example_builds_by_the_options_that_are_printed(tmp_path: Path) -> None:
    options = output_of(run_python("-m", "bpls_fast", "--includes", "--libs")).split()
    source, target = EXAMPLES / "c" / "predict.c", tmp_path / "predict"
    if not source.is_file():
        pytest.skip("not in a checkout: no examples/")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    output_of(run(program("cc"), *strict, str(source), "-o", str(target), *options))
    assert_c_program_predicts(target, tmp_path)


def told_by_pkg_config(*options: str) -> list[str]:
    folder = os.path.join(os.path.dirname(os.path.dirname(bf.get_cmake_dir())), "pkgconfig")
    tool = program("pkg-config")
    return output_of(run(tool, *options, "bpls_fast", PKG_CONFIG_PATH=folder)).split()


def test_pkg_config_names_the_same_folders() -> None:
    assert told_by_pkg_config("--modversion") == [bf.__version__]
    assert [os.path.realpath(option[2:]) for option in told_by_pkg_config("--cflags")] == [
        os.path.realpath(bf.get_include())
    ]
    assert "-lbpls" in told_by_pkg_config("--libs")


# A linker prefers the shared library where it finds both.
STATIC = {"shared": [], "static": ["--static"]}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="-l: is of GNU's linker")
@pytest.mark.parametrize("kind", STATIC)
def test_the_examples_build_by_the_options_of_pkg_config(
    kind: str, built: Any, tmp_path: Path
) -> None:
    told = told_by_pkg_config("--cflags", "--libs", *STATIC[kind])
    options = ["-l:libbpls.a" if STATIC[kind] and o == "-lbpls" else o for o in told]
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    for compiler, source, target in (
        (["cc", "-std=c99"], "c/predict.c", "predict"),
        (["c++", "-std=c++20"], "cpp/train.cpp", "train"),
    ):
        command = [program(compiler[0]), *compiler[1:], *strict, str(EXAMPLES / source)]
        output_of(run(*command, "-o", str(tmp_path / target), *options))
        needed = output_of(run(program("readelf"), "-d", str(tmp_path / target)))
        assert ("libbpls.so" in needed) == (kind == "shared")
    assert_c_program_predicts(tmp_path / "predict", tmp_path)
    np.savetxt(tmp_path / "data.csv", np.random.default_rng(1).normal(size=(30, 3)), delimiter=",")
    trained = output_of(run(str(tmp_path / "train"), str(tmp_path / "data.csv")))
    assert trained == output_of(run(str(built("cpp") / "train"), str(tmp_path / "data.csv")))


HEADERS = sorted(path.name for path in Path(bf.get_include(), "bpls").iterdir())


@pytest.mark.parametrize("header", HEADERS)
def test_every_header_compiles_on_its_own(header: str, tmp_path: Path) -> None:
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
    languages = [("c++", "-std=c++20", "source.cpp")]
    if header.endswith(".h"):
        languages += [("cc", "-std=c99", "source.c"), ("c++", "-std=c++11", "source.cpp")]
    for compiler, standard, source in languages:
        # Twice: it may be included by several others. Something must be declared, says C.
        (tmp_path / source).write_text(f"#include <bpls/{header}>\n" * 2 + "struct something;\n")
        options = [standard, *strict, f"-I{bf.get_include()}", "-fsyntax-only"]
        output_of(run(program(compiler), *options, str(tmp_path / source)))


def test_the_command_prints_the_folders() -> None:
    assert output_of(run_python("-m", "bpls_fast", "--cmakedir")).strip() == bf.get_cmake_dir()
    both = output_of(run_python("-m", "bpls_fast", "--includes", "--libs")).strip()
    assert both == f"-I{bf.get_include()} {bf.get_libs()}"
    every = output_of(run_python("-m", "bpls_fast", "--cmakedir", "--includes", "--libs")).strip()
    assert every == f"{bf.get_cmake_dir()} {both}"
    missing = run_python("-m", "bpls_fast")
    assert missing.returncode == 2
    assert "required: COMMAND" in missing.stderr


def test_the_shared_library_has_the_version_of_the_package() -> None:
    library = shared_library()
    library.bpls_version.restype = ctypes.c_char_p
    assert library.bpls_version().decode() == bf.__version__
    assert library.bpls_abi_version() == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF symbols by nm")
def test_the_extension_shows_nothing_of_its_copy_of_the_library() -> None:
    from bpls_fast import _core

    listed = output_of(run(program("nm"), "-D", "--defined-only", str(_core.__file__)))
    assert {line.split()[-1] for line in listed.splitlines()} == {
        "PyInit__core",
        "bpls_get_num_threads",
        "bpls_set_num_threads",
        "bpls_version",
    }


THREADPOOLS = """
    {imports}
    import json
    def ours():
        return [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "bpls"]
    before = bf.config()["threads"]
    (pool,) = ours()
    assert pool["version"] == bf.__version__ and pool["num_threads"] == before, pool
    with threadpoolctl.threadpool_limits(1):
        assert bf.config()["threads"] == 1 == ours()[0]["num_threads"]
    assert bf.config()["threads"] == before
    with threadpoolctl.threadpool_limits(1, user_api="bpls"):
        assert bf.config()["threads"] == 1
    assert bf.config()["threads"] == before
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import threadpoolctl, bpls_fast as bf",
        "import bpls_fast as bf, threadpoolctl",
        "import bpls_fast as bf, bpls_fast.threadpools, threadpoolctl",
        "import bpls_fast as bf; bf.BPLSClassifier; import threadpoolctl",
    ],
    ids=["threadpoolctl first", "threadpoolctl second", "asked for", "with scikit-learn"],
)
def test_threadpoolctl_sees_and_limits_the_threads(imports: str) -> None:
    required("threadpoolctl")
    if "BPLS" in imports:
        required("sklearn")
    output_of(run_code(THREADPOOLS.format(imports=imports), BPLS_NUM_THREADS="3"))


def test_a_number_of_threads_that_cannot_be_is_refused() -> None:
    from bpls_fast import _core

    with pytest.raises(ValueError, match="n_threads is -1; expected an integer from 0 to 1024"):
        _core.set_num_threads(-1)
    assert _core.get_num_threads() == bf.config()["threads"]
