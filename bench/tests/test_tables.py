"""The comparison on tables, with tables of a few rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..tables import Result, by_table, load, main, summary

pytest.importorskip("sklearn", reason="the contenders need scikit-learn")


def write(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    random = np.random.default_rng(0)
    X = random.normal(5, 3, size=(120, 3)).astype(np.float32)
    arrays = {"X": X, "y": (X[:, 0] > 5).astype(int), "task": "classification", **more}
    np.savez(folder / f"{name}.npz", **arrays)
    return arrays


def test_test_rows_are_those_of_the_official_split_or_a_part_of_all(tmp_path: Path) -> None:
    write(tmp_path, "whole")
    table = load(tmp_path / "whole.npz")
    assert (len(table.x_train), len(table.x_test)) == (84, 36)
    np.testing.assert_allclose(table.x_train.mean(axis=0), 0, atol=1e-5)
    official = {"Xtest": np.ones((7, 3), np.float32), "ytest": np.zeros(7, int)}
    write(tmp_path, "split", **official)
    table = load(tmp_path / "split.npz")
    assert (len(table.x_train), len(table.x_test)) == (120, 7)


def test_a_summary_has_means_and_compares_with_the_first_contender() -> None:
    results = {
        "one": {"MLP": Result(0.9, 0.3, 1.0), "ours": Result(0.95, 0.2, 0.5)},
        "two": {"MLP": Result(0.8, 0.5, 2.0), "ours": Result(0.75, 0.4, 0.25)},
    }
    *_, mlp, ours = summary(results).splitlines()
    assert mlp == "| MLP | 2 | 0.8500 | 0.400 | 0% | 0% | 3.0 |"
    assert ours == "| ours | 2 | 0.8500 | 0.300 | 50% | 50% | 0.8 |"
    *_, one, two = by_table(results).splitlines()
    assert one == "| one | 0.900 (1.00 s) | **0.950** (0.50 s) |"
    assert two == "| two | **0.800** (2.00 s) | 0.750 (0.25 s) |"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_contender_runs_on_labels_numbers_and_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = write(tmp_path, "labels")
    write(tmp_path, "numbers", y=arrays["X"][:, 0] * 2.0, task="regression")
    write(tmp_path, "bytes", X=arrays["X"].clip(0, 9).astype(np.uint8))
    pytest.importorskip("matplotlib", reason="the picture is matplotlib's")
    main(["--data", str(tmp_path), "--output", str(tmp_path)])
    page = (tmp_path / "tables.md").read_text()
    assert "## Classification" in page
    assert "## Regression" in page
    assert (tmp_path / "tables.png").stat().st_size > 1000
    output = capsys.readouterr().out
    assert output.count("| bpls_fast |") == 4
    assert output.count("| numbers |") == 1
    main(["--data", str(tmp_path), "--only", "numbers"])
    assert "labels:" not in capsys.readouterr().out
