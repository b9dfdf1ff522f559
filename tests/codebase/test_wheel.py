"""What the built wheel and sdist contain.

.ci/run builds both and names them in BPLS_WHEEL and BPLS_SDIST; without these variables there is
nothing to look at.
"""

import os
import re
import tarfile
import zipfile
from fnmatch import fnmatchcase

import pytest

needs_wheel = pytest.mark.skipif("BPLS_WHEEL" not in os.environ, reason="BPLS_WHEEL names no wheel")
needs_sdist = pytest.mark.skipif("BPLS_SDIST" not in os.environ, reason="BPLS_SDIST names no sdist")


def files_of_the_wheel() -> list[str]:
    with zipfile.ZipFile(os.environ["BPLS_WHEEL"]) as wheel:
        return wheel.namelist()


def files_of_the_sdist() -> list[str]:
    """List the paths below the sdist's one top folder."""
    with tarfile.open(os.environ["BPLS_SDIST"]) as sdist:
        return [member.name.partition("/")[2] for member in sdist if member.isfile()]


def data_files(files: list[str]) -> list[str]:
    return [file for file in files if re.search(r"(^|/)data/|\.gz$|idx(\d-ubyte)?$", file)]


@needs_wheel
@pytest.mark.parametrize(
    "pattern",
    [
        "bpls_fast/__init__.py",
        "bpls_fast/_core.*",
        "bpls_fast/_core.pyi",
        "bpls_fast/py.typed",
        "bpls_fast/include/bpls/bpls.hpp",
        "bpls_fast/include/bpls/bpls.h",
        "bpls_fast/lib/pkgconfig/bpls_fast.pc",
        "bpls_fast/lib/cmake/bpls_fast/bpls_fastConfig.cmake",
        "bpls_fast/lib/cmake/bpls_fast/bpls_fastTargets.cmake",
        "*.dist-info/entry_points.txt",
        "*.dist-info/*LICENSE*",
    ],
)
def test_the_wheel_contains(pattern: str) -> None:
    files = files_of_the_wheel()
    assert any(fnmatchcase(file, pattern) for file in files), files


@needs_wheel
def test_the_wheel_contains_the_compiled_extension_and_both_libraries() -> None:
    files = files_of_the_wheel()
    assert any(re.fullmatch(r"bpls_fast/_core\..*(so|pyd)", file) for file in files), files
    assert any(re.fullmatch(r"bpls_fast/lib/[^/]+\.(a|lib)", file) for file in files), files
    assert any(re.fullmatch(r"bpls_fast/lib/[^/]+\.(so|dylib|dll)", file) for file in files), files


@needs_wheel
def test_the_wheel_contains_no_test_bench_or_data_file() -> None:
    files = files_of_the_wheel()
    assert data_files(files) == []
    assert [file for file in files if re.search(r"(^|/)(tests?|bench)/", file)] == []


@needs_sdist
@pytest.mark.parametrize(
    "pattern",
    [
        "pyproject.toml",
        "CMakeLists.txt",
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "csrc/include/bpls/bpls.hpp",
        "csrc/kernels/*.cpp",
        "examples/cpp/train.cpp",
        "csrc/core/*.cpp",
        "csrc/python/*.cpp",
        "bpls_fast/_core.pyi",
        "tests/codebase/test_wheel.py",
        "conftest.py",
        "harness.py",
        "examples/python/*.py",
    ],
)
def test_the_sdist_contains(pattern: str) -> None:
    files = files_of_the_sdist()
    assert any(fnmatchcase(file, pattern) for file in files), files


@needs_sdist
def test_the_sdist_contains_no_data() -> None:
    assert data_files(files_of_the_sdist()) == []
