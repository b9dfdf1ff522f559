"""The report and the comparison, on the file of a real tiny run and on runs whose figures are known."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .. import ROOT, compare
from ..measure.processes import run_module
from ..report import results
from ..report.__main__ import main as report_main
from ..report.page import HEADLINES, sections
from ..report.render import as_markdown, html_row
from ..report.results import Group, Result, Run
from ..report.text import times as times_text

PNG = b"\x89PNG\r\n\x1a\n"
TINY = (
    "test_scaling and (gram-float32-8-x-4-2-threads or gram-uint8-100-x-16-2-threads"
    " or solve-float64-n-64-60-columns-2) or test_predict and one-dense-row-1-threads or test_peak_memory"
)


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a few groups of the suite as a user without images does."""
    path = tmp_path_factory.mktemp("tiny") / "out.json"
    files = [
        ROOT / "bench" / "suites" / f"test_{name}.py" for name in ("kernels", "predict", "memory")
    ]
    chosen = [*map(str, files), "-k", TINY]
    nothing = {"BPLS_DATA": str(path.parent), "CI": ""}
    configured = ["-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *chosen, *configured),
            *("--benchmark-only", f"--benchmark-json={path}"),
        ],
        cwd=ROOT,
        env=os.environ | {"BPLS_BENCH_SMALL": "1", "PYTEST_ADDOPTS": ""} | nothing,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return path


def group(
    name: str, suite: str = "kernels", info: dict[str, Any] | None = None, **samples: list[float]
) -> Group:
    rows = {who: Result(times, who, dict(info or {})) for who, times in samples.items()}
    return Group(name, suite, rows)


def run(*groups: Group) -> Run:
    return Run("today", {"CPU": "one"}, {one.name: one for one in groups})


def one_ratio(ours: float, theirs: float, name: str = "a") -> Run:
    return run(group(name, ours=[ours] * 3, numpy=[theirs] * 3))


def text_of(a_run: Run, again: Run | None = None) -> str:
    return as_markdown(sections(a_run, again, []), {}, "benchmarks")


# ---- the report


def test_the_report_of_a_real_run_has_its_rows_environment_and_pictures(
    tiny_run: Path, tmp_path: Path
) -> None:
    done = run_module("report", tiny_run, "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    for name in results.load(tiny_run).groups:
        assert name in text
    for named in ("CPU", "caches", "compiler", "flags", "commit", "load average", "numpy ", "date"):
        assert named in text
    images = re.findall(r"\(benchmarks/([\w-]+)\.png\)", text)
    assert "scaling" in images
    for image in images:
        assert (tmp_path / "benchmarks" / f"{image}.png").read_bytes().startswith(PNG)


def test_the_page_needs_no_other_file(tiny_run: Path, tmp_path: Path) -> None:
    report_main([str(tiny_run), "--output", str(tmp_path)])
    page = (tmp_path / "benchmarks.html").read_text(encoding="utf-8")
    sources = re.findall(r'src="([^"]{0,30})', page)
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(r"<(link|script)", page)


def test_every_contender_is_a_row_of_the_file_with_its_own_rounds(tiny_run: Path) -> None:
    groups = results.load(tiny_run).groups
    gram = groups["gram uint8 100 x 16, 2 thread(s)"]
    assert {"ours", "numpy", "ours, float32 copy"} <= set(gram.results)
    assert gram.results["ours"].info["error"] == 0
    assert len({len(result.samples) for result in gram.results.values()}) == 1
    assert all(min(result.samples) > 0 for result in gram.results.values())


def test_one_row_in_cpp_is_compared_with_what_the_hardware_needs(tiny_run: Path) -> None:
    groups = results.load(tiny_run).groups
    group = groups["prediction float32 one dense row, 1 thread(s)"]
    bare = group.results["bare C++"]
    assert set(bare.info["floors"]) == {"the multiply-adds at the peak", "reading the weights"}
    assert min(bare.info["floors"].values()) > 0
    bare.info["floors"]["reading the weights"] = bare.best / 4
    assert "4.00x reading the weights" in text_of(run(group))
    assert "bare C++" not in group.compared


def test_the_report_lists_skipped_rows_with_their_reason_and_number(tiny_run: Path) -> None:
    (why,) = (why for why in results.load(tiny_run).skipped if why.startswith("test_memory"))
    assert "fashion-mnist is not complete in" in why
    some = Run("today", {}, {}, {"test_gpu: no NVIDIA GPU": 3, "test_a: b": 1})
    assert "- test_gpu: no NVIDIA GPU: 3 rows\n- test_a: b: 1 row\n" in text_of(some)
    assert "Not measured" not in text_of(run())


def test_where_we_lose_there_is_a_red_mark_and_nowhere_else() -> None:
    won, lost = one_ratio(1.0, 2.0), one_ratio(2.0, 1.0)
    rows = {name: html_row([text], "td") for name, text in (("won", "1x"), ("lost", "🔴 0.5x"))}
    assert 'class="lost"' in rows["lost"]
    assert 'class="lost"' not in rows["won"]
    assert "**2.00x**" in text_of(won)
    assert "🔴 **0.50x**" in text_of(lost)
    assert "🔴 **" not in text_of(won)


def test_best_median_and_spread_of_every_row_are_written() -> None:
    samples = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert "1.00 s / 3.00 s (67%)" in text_of(run(group("a", ours=samples, numpy=samples)))


def test_a_ratio_whose_rounds_spread_is_marked_with_the_reason() -> None:
    noisy = run(group("a", ours=[1.0, 1.0, 1.0, 1.0], numpy=[2.0, 3.0, 4.0, 5.0]))
    text = text_of(noisy)
    assert "≈ **2.00x**" in text
    assert "≈ a, numpy: the rounds spread by 43%" in text


def test_a_second_run_that_says_otherwise_marks_the_ratio() -> None:
    assert "≈ a, numpy: a second run gave 3.00x" in text_of(one_ratio(1, 2), one_ratio(1, 3))
    assert "a second run gave 0.95x" in text_of(one_ratio(1, 1.05), one_ratio(1, 0.95))
    assert "≈ **" not in text_of(one_ratio(1, 2), one_ratio(1, 2.1))


def test_an_accuracy_that_is_not_reached_has_no_ratio_and_counts_as_lost_for_ours() -> None:
    theirs = group("a", "time to accuracy", ours=[1.0], Adam=[2.0])
    theirs.results["Adam"].info["reached"] = False
    assert "| never " in text_of(run(theirs))
    ours = group("a", "time to accuracy", ours=[1.0], Adam=[2.0])
    ours.results["ours"].info["reached"] = False
    assert "🔴 ours never" in text_of(run(ours))


def test_headlines_link_to_their_row() -> None:
    name = "gram uint8 60000 x 784, 2 thread(s)"
    text = text_of(run(group(name, ours=[1.0], torch=[3.0])))
    assert "[**3.00x**](#gram-uint8-60000-x-784-2-thread-s)" in text
    assert '<a id="gram-uint8-60000-x-784-2-thread-s"></a>' in text
    assert len(HEADLINES) <= 5


def test_a_headline_names_the_strongest_rival_of_its_row() -> None:
    name = "gram uint8 60000 x 784, 2 thread(s)"
    rivals = {"ours, float32 copy": [0.5], "torch": [3.0], "numkong": [1.25], "numpy": [2.0]}
    text = text_of(run(group(name, "kernels", None, ours=[1.0], **rivals)))
    assert "x-784-2-thread-s) as fast as NumKong on bytes transposed in advance: the exact" in text
    assert "[**1.25x**]" in text
    never = group("mnist 100-70 relu: to Adam's best", "time to accuracy", ours=[1.0], ELM=[0.5])
    never.results["ELM"].info["reached"] = False
    assert "less time than" not in text_of(run(never))


def test_random_shapes_are_summed_up_by_kernel_hot_and_cold() -> None:
    def shape(name: str, ratio: float, **info: Any) -> Group:
        info["kernel"] = "gram float32"
        return group(name, "random shapes", info, ours=[1.0], numpy=[ratio], torch=[10.0])

    text = text_of(run(shape("a", 4.0), shape("b", 0.25), shape("c", 3.0, cold=True)))
    assert re.search(r"gram float32, hot +\| 2 +\| 0 +\| 1.00x +\| 50% +\| 0.25x numpy: b", text)
    assert re.search(r"gram float32, cold +\| 1 +\| 0 +\| 3.00x +\| 100% +\| 3.00x numpy: c", text)


def test_first_calls_after_a_pause_are_compared_by_their_medians() -> None:
    cold = group("a", "after a pause", {"cold": True}, ours=[1.0, 2.0, 9.0], numpy=[1.0, 3.0, 4.0])
    assert "**1.50x**" in text_of(run(cold))


def test_the_papers_claim_has_a_line_for_each_gradient_method() -> None:
    methods = {name: [4.0] for name in ("Adam", "NAG", "SGD", "AdaGrad")}
    text = text_of(run(group("Table II: an iteration", "paper", None, ours=[1.0], **methods)))
    for method in methods:
        assert re.search(rf"^\| {method} +\| 4\.00x", text, re.M)


def test_memory_is_compared_by_bytes() -> None:
    of_memory = group("m", "memory", ours=[1.0], Adam=[1.0])
    for name, size in (("ours", 2**20), ("Adam", 3 * 2**20)):
        of_memory.results[name].info.update(more_bytes=size, peak_bytes=2 * size)
    text = text_of(run(of_memory))
    assert "**3.00x**" in text
    assert "3 MiB more, 6 MiB in all" in text


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"benchmarks": [], "machine_info": {}}'])
@pytest.mark.parametrize("command", [report_main, compare.main])
def test_another_file_is_refused_with_a_sentence(
    content: str, command: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit):
        command([str(path)] * (2 if command is compare.main else 1))
    assert "is not a result of `pytest bench" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.5, "0.50x"), (12.34, "12.3x"), (1234.5, "1234x"), (99.99, "100.0x")]
)
def test_ratios_have_three_digits_or_all_before_the_point(ratio: float, text: str) -> None:
    assert times_text(ratio) == text


# ---- the comparison


def verdict(old: Run, new: Run) -> str:
    (change,) = compare.changes(old, new)
    return change.verdict(0.2)


def test_a_run_compared_with_itself_is_the_same_and_ends_with_0(tiny_run: Path) -> None:
    done = run_module("compare", tiny_run, tiny_run)
    assert done.returncode == 0, done.stderr
    assert "0 slower" in done.stdout
    assert "SLOWER" not in done.stdout


def test_what_became_slower_ends_with_1_and_is_named(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(tiny_run.read_text(encoding="utf-8"))
    for row in content["benchmarks"]:
        row["stats"]["data"] = [1.0] * 3
        if row["extra_info"]["contender"] == "ours" and "uint8" in row["group"]:
            row["stats"]["data"] = [2.0] * 3
    slow, fast = tmp_path / "slow.json", tmp_path / "fast.json"
    slow.write_text(json.dumps(content), encoding="utf-8")
    for row in content["benchmarks"]:
        row["stats"]["data"] = [1.0] * 3
    fast.write_text(json.dumps(content), encoding="utf-8")
    assert compare.main([str(fast), str(slow)]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "SLOWER" in line)
    assert line.startswith("| gram uint8")
    assert compare.main([str(fast), str(slow), "--threshold", "1.5"]) == 0
    assert compare.main([str(slow), str(fast)]) == 0


def test_a_slower_machine_is_not_our_fault() -> None:
    assert verdict(one_ratio(1, 2), one_ratio(2, 4)) == "same"
    assert verdict(one_ratio(1, 2), one_ratio(2, 2)) == "SLOWER"
    assert verdict(one_ratio(1, 2), one_ratio(1, 4)) == "faster"


def test_a_change_within_the_noise_is_no_change() -> None:
    old = run(group("a", ours=[1.0, 2.0, 3.0], numpy=[1.0] * 3))
    new = run(group("a", ours=[1.3, 2.3, 3.3], numpy=[1.0] * 3))
    assert verdict(old, new) == "noisy"


def test_ratios_that_moved_and_winners_that_changed_are_named() -> None:
    for old, new, moved in (
        (one_ratio(1, 2), one_ratio(1, 3), ["numpy"]),
        (one_ratio(1, 1.05), one_ratio(1, 0.95), ["numpy"]),
        (one_ratio(1, 2), one_ratio(1, 2.1), []),
    ):
        (change,) = compare.changes(old, new)
        assert change.moved == moved


def test_runs_without_a_common_group_end_with_2(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(tiny_run.read_text(encoding="utf-8"))
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content | {"benchmarks": []}), encoding="utf-8")
    assert compare.main([str(tiny_run), str(other)]) == 2
    assert "no group in common" in capsys.readouterr().out
