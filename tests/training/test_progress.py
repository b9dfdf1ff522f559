"""Progress of a fit on the terminal: tqdm's bar, or lines where tqdm is not installed."""

import sys
import types

import pytest

from bpls_fast.training.progress import progress_display
from tests.support.fits import fit_classes, fit_numbers
from tests.support.required import required


@pytest.mark.parametrize("fit", [fit_classes, fit_numbers])
def test_nothing_is_shown_unless_asked_for(fit, capfd):
    fit()
    assert capfd.readouterr() == ("", "")


def test_verbose_shows_a_bar_where_tqdm_is_installed(capfd):
    required("tqdm")
    *_, report = fit_classes(verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert f"{report.iterations}/15" in err
    assert "Algorithm 2" in err
    assert f"{report.misses[-1]} misses, accuracy {report.accuracy[-1]:.2%}" in err
    *_, report = fit_numbers(verbose=1)
    err = capfd.readouterr().err
    assert "3/3" in err
    assert f"training error {report.loss[-1]:.4g}" in err


def test_verbose_prints_lines_where_tqdm_is_not_installed(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    *_, report = fit_classes(verbose=1)
    out, err = capfd.readouterr()
    assert err == ""
    assert out.splitlines() == [
        f"Algorithm 2: {misses} misses, accuracy {accuracy:.2%}"
        for misses, accuracy in zip(report.misses, report.accuracy, strict=True)
    ]
    *_, report = fit_numbers(verbose=1)
    lines = capfd.readouterr().out.splitlines()
    assert lines == [f"Algorithm 1: training error {loss:.4g}" for loss in report.loss]


class Bar:
    """Stand-in for tqdm's bar that remembers what it is told."""

    def __init__(self, total, desc):
        self.told = [(total, desc)]

    def set_postfix_str(self, text):
        self.told.append(text)

    def update(self):
        self.told.append("update")

    def close(self):
        self.told.append("close")


def test_the_bar_is_closed_when_a_fit_fails(monkeypatch):
    bars = []
    tqdm = types.SimpleNamespace(tqdm=lambda **options: bars.append(Bar(**options)) or bars[-1])
    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(auto=tqdm))
    monkeypatch.setitem(sys.modules, "tqdm.auto", tqdm)

    def callback(report):
        raise KeyError

    with pytest.raises(KeyError):
        fit_classes(verbose=1, callback=callback)
    (bar,) = bars
    (total, name), latest, *rest = bar.told
    assert (total, name) == (15, "Algorithm 2")
    assert "misses" in latest
    assert rest == ["update", "close"]


def test_lines_name_the_method_and_the_latest_step(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    display = progress_display(None, "a method")
    display(types.SimpleNamespace(latest=lambda: "3 misses"))
    display(None)
    assert capfd.readouterr() == ("a method: 3 misses\n", "")
