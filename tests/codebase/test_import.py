"""Importing the package: what it loads, what it offers, and which files lie next to it."""

import importlib.metadata
import json
from pathlib import Path

import pytest

import bpls_fast as bf
from tests.support.subprocesses import output_of, run_code

PACKAGE = Path(bf.__file__).parent
FUNCTIONS = {
    "gram",
    "cross",
    "solve",
    "solve_layer",
    "solve_batched",
    "linear",
    "config",
    "show_config",
    "get_include",
    "get_cmake_dir",
}


def test_import_loads_only_the_standard_library_numpy_and_our_own_modules() -> None:
    finished = run_code("""
        import json, sys
        import numpy
        before = set(sys.modules)
        import bpls_fast
        bpls_fast.datasets  # loads what it needs in load(), not before
        allowed = sys.stdlib_module_names | {"numpy", "bpls_fast"}
        new = sorted(set(sys.modules) - before)
        foreign = [name for name in new if name.partition(".")[0] not in allowed]
        print(json.dumps({"new": new, "foreign": foreign}))
    """)
    modules = json.loads(output_of(finished))
    assert "bpls_fast._core" in modules["new"]
    assert modules["foreign"] == []


def test_import_leaves_the_heavy_libraries_alone() -> None:
    finished = run_code("""
        import sys
        import bpls_fast
        heavy = {"scipy", "sklearn", "numba", "torch", "matplotlib"}
        print(sorted(heavy & set(sys.modules)))
    """)
    assert output_of(finished).strip() == "[]"


def test_version_is_that_of_the_installed_distribution() -> None:
    assert bf.__version__ == importlib.metadata.version("bpls_fast")
    assert bf.__version__ == bf.config()["version"]


def test_the_public_names_are_listed_and_there() -> None:
    assert set(bf.__all__) >= FUNCTIONS | {"activations"}
    assert len(set(bf.__all__)) == len(bf.__all__)
    assert set(dir(bf)) >= {*bf.__all__, "datasets", "__version__"}
    for name in [*bf.__all__, "datasets"]:
        assert getattr(bf, name) is not None, name
    for name in FUNCTIONS:
        assert callable(getattr(bf, name)), name


def test_star_import_gives_every_public_name() -> None:
    namespace: dict[str, object] = {}
    exec("from bpls_fast import *", namespace)
    assert set(bf.__all__) <= set(namespace)


def test_an_unknown_attribute_is_an_attribute_error_naming_it() -> None:
    with pytest.raises(AttributeError, match="no_such_kernel"):
        bf.no_such_kernel  # noqa: B018


def test_the_headers_are_installed() -> None:
    assert (Path(bf.get_include()) / "bpls" / "bpls.hpp").is_file()


def test_the_cmake_package_is_installed() -> None:
    assert (Path(bf.get_cmake_dir()) / "bpls_fastConfig.cmake").is_file()


@pytest.mark.parametrize("name", ["py.typed", "_core.pyi"])
def test_the_types_are_installed(name: str) -> None:
    assert (PACKAGE / name).is_file()
