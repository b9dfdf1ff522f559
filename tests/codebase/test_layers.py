"""The rooms of the package and what each may import: arrows point one way, without cycles.

An import counts wherever it stands: at the top of a module, inside a function, or for type checkers alone.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

PACKAGE = ROOT / "bpls_fast"
FRONT = "bpls_fast"  # the names that `import bpls_fast` offers

pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").is_file(), reason="not in a checkout: no pyproject.toml"
)

NETWORK = {"kernels", "network"}
TRAINING = {*NETWORK, "training", "training.bpls", "training.refined", "training.methods"}
MAY_IMPORT: dict[str, set[str]] = {
    "_core": set(),
    "kernels": {"_core"},
    "cuda": {"kernels"},
    "network": {"kernels", "network.formats"},
    "network.formats": set(),
    "training": NETWORK,
    "training.bpls": {*NETWORK, "training"},
    "training.refined": {*NETWORK, "training"},
    "training.methods": {*NETWORK, "training", "training.bpls", "training.refined"},
    "datasets": set(),
    "estimators": {*TRAINING},
    "experiments": {*TRAINING, "datasets"},
    "cli": {*TRAINING, "datasets", "estimators", "experiments", "configuration", FRONT},
    "configuration": {"kernels"},
    "threadpools": set(),
    "import_hook": {"threadpools"},
    FRONT: {*TRAINING, "datasets", "estimators", "configuration", "import_hook"},
    "__main__": {"cli"},
}
"""The rooms that a room may import, itself aside. A module is in the room with the longest name that begins its own."""

EXCEPTIONS = {
    ("kernels.backend", "cuda"): "the GPU's kernels are loaded for arrays that are on the GPU",
    ("configuration", "cuda"): "the GPU is described where numba-cuda is installed",
    ("network.network", "training"): "Network.cost is public, and the count belongs to training",
}
"""Imports of another room than those above, inside a function or for type checkers: module, room, and why."""


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES["bpls_fast._core"] = PACKAGE / "_core.pyi"


def short(module: str) -> str:
    return module.removeprefix("bpls_fast.")


def room_of(module: str) -> str:
    """Return the room of a module by the longest name that fits."""
    if module == FRONT:
        return FRONT
    name = f"{short(module)}."
    return max((room for room in MAY_IMPORT if name.startswith(f"{room}.")), key=len, default="")


def imported_by(module: str) -> Iterator[tuple[str, bool]]:
    """Yield the modules of the package that a module imports, and whether it does so as it is loaded."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    at_once = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            # A name that is no module is of the module that it is imported from.
            names = [name if name in MODULES else str(node.module) for name in names]
        else:
            continue
        yield from ((name, id(node) in at_once) for name in names if name in MODULES)


IMPORTS = {module: list(imported_by(module)) for module in MODULES}


def is_exception(module: str, other: str, at_once: bool) -> bool:
    return not at_once and (short(module), room_of(other)) in EXCEPTIONS


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_its_own_room_and_those_below_it(module: str) -> None:
    room = room_of(module)
    assert room, f"{module} is in none of the rooms of MAY_IMPORT"
    wrong = {
        other
        for other, at_once in IMPORTS[module]
        if room_of(other) not in {room, *MAY_IMPORT[room]}
        and not is_exception(module, other, at_once)
    }
    assert not wrong, f"{room} may import {sorted(MAY_IMPORT[room])} only"


def test_the_rooms_have_an_order() -> None:
    ordered: set[str] = set()
    while len(ordered) < len(MAY_IMPORT):
        following = {room for room, below in MAY_IMPORT.items() if below <= ordered} - ordered
        assert following, f"these import each other: {sorted(set(MAY_IMPORT) - ordered)}"
        ordered |= following


@pytest.mark.parametrize(("module", "room"), EXCEPTIONS)
def test_an_exception_is_needed(module: str, room: str) -> None:
    assert any(
        room_of(other) == room and not at_once for other, at_once in IMPORTS[f"bpls_fast.{module}"]
    )


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {
        module: {
            other
            for other, at_once in found
            if other != module and not is_exception(module, other, at_once)
        }
        for module, found in IMPORTS.items()
    }
    done: set[str] = set()

    def follow(module: str, path: list[str]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for other in sorted(graph[module]):
                follow(other, [*path, module])
            done.add(module)

    for module in graph:
        follow(module, [])


# What holds for every source file.

SUFFIXES = {".py", ".pyi", ".c", ".cpp", ".h", ".hpp"}
SOURCES = [
    *sorted(ROOT.glob("*.py")),
    *(
        path
        for folder in ("bpls_fast", "csrc", "tests", "bench", "examples")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in SUFFIXES
    ),
]
MOST_LINES = 500


def test_no_source_file_has_more_than_500_lines() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    long = {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > MOST_LINES}
    assert not long


def test_docstrings_begin_with_what_a_function_does_and_never_with_give() -> None:
    found = []
    for path in SOURCES:
        if path.suffix not in {".py", ".pyi"}:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words = (ast.get_docstring(node) or "").split(maxsplit=1)
                if words and words[0].strip(",.") in {"Give", "Gives"}:
                    found.append(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}")
    assert not found
