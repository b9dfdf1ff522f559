"""The import path in a clone: commands use the installed package unless the clone has a compiled extension."""

import shutil
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.required import program
from tests.support.subprocesses import output_of, run

pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").is_file(), reason="not in a checkout: no pyproject.toml"
)

FOLDERS = ("bench", "bpls_fast", "tests")
FILES = ("conftest.py", "harness.py", "pyproject.toml")
# Say which clone is in use, and import the package, which fails on a source folder without the extension.
PROBE = """
from pathlib import Path
from harness import ROOT
import bpls_fast

def test_the_installed_package_is_used():
    assert ROOT not in Path(bpls_fast.__file__).resolve().parents

if __name__ == "__main__":
    test_the_installed_package_is_used()
    print(ROOT)
"""
PYTEST = ("-q", "-p", "no:cacheprovider", "tests/test_probe.py", "bench/tests/test_probe.py")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy the source tree without the extension, and add modules that show which package they import."""
    root = tmp_path.resolve() / "clone"
    without = shutil.ignore_patterns(
        "__pycache__", *(f"*{suffix}" for suffix in EXTENSION_SUFFIXES)
    )
    for name in FOLDERS:
        shutil.copytree(ROOT / name, root / name, ignore=without)
    for name in FILES:
        shutil.copy(ROOT / name, root / name)
    for name in ("bench/probe", "tests/cuda/probe", "tests/test_probe", "bench/tests/test_probe"):
        (root / f"{name}.py").write_text(PROBE, encoding="utf-8")
    return root


@pytest.mark.parametrize("module", ["bench.probe", "tests.cuda.probe"])
def test_modules_of_a_clone_without_the_extension_use_the_installed_package(
    clone: Path, module: str
) -> None:
    finished = run(sys.executable, "-m", module, folder=clone)
    assert output_of(finished).strip() == str(clone)


@pytest.mark.parametrize("as_module", [False, True], ids=["pytest", "python -m pytest"])
def test_pytest_in_a_clone_without_the_extension_uses_the_installed_package(
    clone: Path, as_module: bool
) -> None:
    command = [sys.executable, "-m", "pytest"] if as_module else [program("pytest")]
    finished = run(*command, *PYTEST, folder=clone, PYTEST_ADDOPTS=None)
    assert "2 passed" in output_of(finished)


@pytest.mark.parametrize("package", ["bench", "tests"])
def test_a_clone_with_the_extension_stays_first_on_the_path(clone: Path, package: str) -> None:
    (clone / "bpls_fast" / f"_core{EXTENSION_SUFFIXES[0]}").touch()
    (clone / package / "probe.py").write_text("import sys; print(sys.path[0])", encoding="utf-8")
    finished = run(sys.executable, "-m", f"{package}.probe", folder=clone)
    assert output_of(finished).strip() == str(clone)
