"""Promises about the source tree itself.

Versions agree, stubs are complete, examples run, the layers of csrc/ know only what they may know,
and CI runs what the README says.
"""

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import bpls_fast as bf
import bpls_fast._core as core
from tests import ROOT
from tests.support.required import MUST_NOT_SKIP

CSRC = ROOT / "csrc"

pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").is_file(), reason="not in a checkout: no pyproject.toml"
)

README_COMMANDS = [
    'pip install ".[sklearn]" && bpls-fast train digits',
    'pip install ".[test]" && pytest',
]
FUNCTIONS = [name for name in bf.__all__ if inspect.isroutine(getattr(bf, name))]
MODULES = [
    module.name
    for module in pkgutil.walk_packages(bf.__path__, "bpls_fast.")
    if module.name not in {"bpls_fast.__main__", "bpls_fast._core"}
]


def sources(folder: Path) -> list[Path]:
    found = [path for path in folder.rglob("*") if path.suffix in {".cpp", ".hpp", ".h", ".inl"}]
    assert found, f"no sources in {folder}"
    return found


def mentioning(pattern: str, paths: list[Path]) -> list[str]:
    return [
        path.relative_to(ROOT).as_posix()
        for path in paths
        if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def test_pyproject_changelog_and_package_have_one_version() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^\[project\][^\[]*?^version = "([^"]+)"', project, re.MULTILINE)
    assert version
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    top = re.search(r"^## \[?v?(\d[^\s\]]*)", changelog, re.MULTILINE)
    assert top
    assert top[1] == version[1]
    assert bf.__version__ == version[1]


def test_the_stub_names_what_the_extension_has_and_nothing_else() -> None:
    stub = ast.parse((ROOT / "bpls_fast" / "_core.pyi").read_text(encoding="utf-8"))
    named: set[str] = set()
    for node in stub.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            named.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named.update(target.id for target in targets if isinstance(target, ast.Name))

    def public(names: set[str]) -> set[str]:
        return {name for name in names if not name.startswith("_")}

    assert public(named) == public(set(dir(core)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_an_example(name: str) -> None:
    assert doctest.DocTestParser().get_examples(getattr(bf, name).__doc__ or "")


@pytest.mark.parametrize("name", ["bpls_fast", *MODULES])
def test_the_examples_of_the_docstrings_run(name: str) -> None:
    if name.startswith(("bpls_fast.datasets", "bpls_fast.estimators")):
        pytest.importorskip("sklearn", reason="digits and the estimators are scikit-learn's")
    if name.startswith("bpls_fast.cuda."):
        pytest.importorskip("numba", reason="the kernels of the GPU are numba-cuda's")
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(importlib.import_module(name), name, globs={}):
        if "import torch" in test.docstring and not (
            MUST_NOT_SKIP or importlib.util.find_spec("torch")
        ):
            continue
        runner.run(test, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


def test_intrinsics_stay_in_the_files_of_their_instruction_set() -> None:
    common = [
        path
        for path in sources(CSRC)
        if path != CSRC / "core" / "cpu_x86.cpp"
        and not (path.parent == CSRC / "kernels" and "avx" in path.name)
    ]
    assert mentioning(r"immintrin|x86intrin|\b_mm\d*_|\b__m(128|256|512)", common) == []


def test_the_public_headers_know_nothing_of_python() -> None:
    assert mentioning(r"Python\.h|pybind11", sources(CSRC / "include")) == []


def test_only_the_bindings_include_python() -> None:
    outside = [path for path in sources(CSRC) if not path.is_relative_to(CSRC / "python")]
    assert mentioning(r"^\s*#\s*include\s*[<\"](Python\.h|pybind11|numpy/)", outside) == []


@pytest.mark.parametrize("command", README_COMMANDS)
@pytest.mark.parametrize("file", ["README.md", ".ci/run"])
def test_the_two_commands_of_a_fresh_machine_are_in_the_readme_and_in_ci(
    file: str, command: str
) -> None:
    if file == ".ci/run" and not (ROOT / ".ci").is_dir():
        pytest.skip("an unpacked sdist has no .ci/")
    assert command in (ROOT / file).read_text(encoding="utf-8")
