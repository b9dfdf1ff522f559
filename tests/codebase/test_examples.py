"""The examples run against the installed package, and say what they promise."""

from pathlib import Path

import pytest

from tests import ROOT
from tests.support.required import round_trip
from tests.support.subprocesses import output_of, run_python

EXAMPLES = ROOT / "examples" / "python"

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="not in a checkout: there are no examples"
)


def output(name: str, *arguments: str) -> str:
    return output_of(run_python("-W", "error", str(EXAMPLES / name), *arguments))


def test_every_example_is_tested() -> None:
    tested = {"export.py", "grid_search.py", "streaming.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


def test_export_carries_a_network_to_every_format(tmp_path: Path) -> None:
    for package in ("sklearn", "onnxruntime", "torch"):
        round_trip(package)
    lines = output("export.py", str(tmp_path)).splitlines()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [
        ".h",
        ".npz",
        ".onnx",
        ".safetensors",
    ]
    checked = [line.partition(":")[0] for line in lines if "differ by at most" in line]
    assert checked == ["npz", "safetensors", "ONNX", "onnxruntime", "PyTorch"]


def test_streaming_follows_a_task_that_changes() -> None:
    round_trip("sklearn")
    assert output("streaming.py").count("%") == 12


def test_grid_search_finds_a_good_network() -> None:
    round_trip("sklearn")
    assert "54 fits" in output("grid_search.py")
