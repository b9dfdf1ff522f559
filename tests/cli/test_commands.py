"""The command line as a user runs it: info, help, versions, wrong arguments, exit codes."""

import os
import re
import sysconfig
import warnings
from pathlib import Path

import pytest

import bpls_fast as bf
from bpls_fast.cli import main
from tests.support.command_line import ROWS, bpls_fast, failure, write_data
from tests.support.subprocesses import output_of, run, run_code


def test_info_prints_version_compiler_levels_and_threads() -> None:
    output = output_of(bpls_fast("info"))
    config = bf.config()
    assert config["version"] in output
    assert config["compiler"] in output
    for level in config["isa"]["compiled"]:
        assert level in output
    threads = config["threads"]
    assert re.search(rf"threads\D*\b{threads}\b|\b{threads} threads", output, re.IGNORECASE)


def test_info_prints_what_show_config_prints() -> None:
    shown = output_of(run_code("import bpls_fast; bpls_fast.show_config()"))
    assert output_of(bpls_fast("info")) == shown


def test_the_installed_command_is_the_module() -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    commands = [path for path in scripts.glob("bpls-fast*") if path.suffix in {"", ".exe"}]
    if not commands:
        pytest.skip(f"no bpls-fast in {scripts}")
    assert output_of(run(str(commands[0]), "info")) == output_of(bpls_fast("info"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["train", "no-such-set"],
        ["info", "--no-such"],
        ["train", "digits", "--hidden", "60,,10"],
        ["train", "digits", "--hidden", "0"],
        ["train", "digits", "--seed", "-1"],
        ["train", "digits", "--max-iter", "0"],
        ["paper", "table3"],
    ],
)
def test_an_unknown_command_set_or_option_is_exit_code_2_with_the_usage(
    arguments: list[str],
) -> None:
    finished = bpls_fast(*arguments)
    assert finished.returncode == 2
    assert "usage: bpls-fast" in finished.stderr
    assert arguments[-1] in finished.stderr
    assert "Traceback" not in finished.stderr


def test_version_prints_the_version() -> None:
    assert bf.__version__ in output_of(bpls_fast("--version"))


def test_help_names_the_commands() -> None:
    output = output_of(bpls_fast("--help"))
    assert "usage: bpls-fast" in output
    for command in ("info", "train", "predict", "paper"):
        assert command in output


def test_a_data_set_that_is_not_there_is_told_where_it_was_sought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert str(tmp_path) in failure(capsys, "train", "mnist", "--root", tmp_path)


def test_a_folder_that_is_not_there_is_refused_before_the_work(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "no-such-folder" / "file"
    assert "--save" in failure(capsys, "train", "digits", "--save", nowhere)
    rows = write_data(tmp_path / "rows.npy", ROWS)
    assert "--output" in failure(capsys, "predict", model, rows, "--output", nowhere)


@pytest.mark.parametrize("folder", [".", ""])
def test_a_folder_in_the_place_of_a_file_is_refused_before_the_work(
    folder: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The data set is not there: what is told first was checked first.
    told = failure(capsys, "train", "mnist", "--root", tmp_path, "--save", folder)
    assert re.search(r"--save is \S+, a folder; expected a file", told)
    rows = write_data(tmp_path / "rows.npy", ROWS)
    assert "a folder; expected a file" in failure(
        capsys, "predict", model, rows, "--output", tmp_path
    )


def test_a_folder_that_must_not_be_written_to_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    told = failure(capsys, "train", "mnist", "--root", tmp_path, "--save", tmp_path / "net.npz")
    assert "--save" in told
    assert "you may write to" in told
    told = failure(capsys, "paper", "table2", "--root", tmp_path, "--output", tmp_path)
    assert "--output" in told
    assert "you may write to" in told


def test_a_warning_is_one_line_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def show_config() -> None:
        warnings.warn("the ridge grew", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(bf, "show_config", show_config)
    assert main(["info"]) == 0
    assert capsys.readouterr().err == "bpls-fast: warning: the ridge grew\n"


def test_an_interrupt_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bf, "show_config", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "bpls-fast: interrupted\n"
