"""The command line, as a user runs it: what it prints, where, and its exit codes."""

import importlib.util
import re
import sysconfig
from pathlib import Path

import pytest
from subprocesses import Finished, output_of, run, run_code, run_python

import bpls_fast as bf

needs_sklearn = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="digits is scikit-learn's"
)


def bpls_fast(*arguments: str) -> Finished:
    return run_python("-m", "bpls_fast", *arguments)


def accuracy(output: str, part: str) -> float:
    """Find the percentage that follows "train" or "test", with no other number between the two."""
    found = re.search(rf"\b{part}\D*?(\d+(?:\.\d+)?) ?%", output, re.IGNORECASE)
    assert found, f"no {part} accuracy in:\n{output}"
    return float(found[1])


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


@needs_sklearn
def test_train_digits_prints_both_accuracies_and_says_what_it_fitted() -> None:
    output = output_of(bpls_fast("train", "digits"))
    assert 85 <= accuracy(output, "train") <= 100
    assert 85 <= accuracy(output, "test") <= 100
    assert re.search(r"\bone closed-form layer\b", output)


def test_train_digits_without_scikit_learn_says_what_to_install() -> None:
    finished = run_code("""
        import runpy, sys

        sys.modules["sklearn"] = None  # any import of it fails as if it were not installed
        sys.argv = ["bpls-fast", "train", "digits"]
        runpy.run_module("bpls_fast", run_name="__main__")
    """)
    assert finished.returncode == 1
    assert len(finished.stderr.strip().splitlines()) == 1, finished.stderr
    assert "scikit-learn" in finished.stderr
    assert "pip install" in finished.stderr
    assert "%" not in finished.stdout


@pytest.mark.parametrize("arguments", [["fly"], ["train", "no-such-set"], ["info", "--no-such"]])
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
    assert "info" in output
    assert "train" in output
