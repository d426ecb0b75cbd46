"""Which run a command means, by what it is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.run_folder import sample_run

from hkbench.cli.main import main
from hkbench.cli.runs import newest_of, only_one_of, runs_of
from hkbench.errors import InputMissing, UsageError
from hkbench.store.find import point_latest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without a run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_at(folder: str, begun: float) -> Path:
    paths = sample_run(Path(folder)).paths
    paths.lock.touch()
    os.utime(paths.lock, (begun, begun))
    return paths.root


@pytest.fixture
def two(here: Path) -> tuple[Path, Path]:
    """An older run and a newer one below `results`."""
    return run_at("results/old", 1.0), run_at("results/new", 2.0)


def test_without_a_name_it_is_the_newest(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    old, new = two
    assert newest_of(None) == new
    assert runs_of([]) == [new]
    said = capsys.readouterr().err
    assert str(new) in said and str(old) in said


def test_a_folder_of_runs_is_its_newest_or_all(two: tuple[Path, Path]) -> None:
    old, new = two
    assert newest_of(Path("results")) == new
    assert runs_of([Path("results")]) == [new, old]
    assert runs_of([old, Path("results")]) == [old, new]


def test_one_of_several_has_to_be_named(two: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="results/old"):
        only_one_of(Path("results"))
    assert only_one_of(two[0]) == two[0]


def test_the_only_run_below_needs_no_name(here: Path) -> None:
    run = run_at("results/only", 1.0)
    assert only_one_of(Path("results")) == newest_of(Path()) == run


def test_latest_is_the_run_that_it_leads_to(two: tuple[Path, Path]) -> None:
    point_latest(Path("results"), two[0])
    assert newest_of(Path("results/latest")) == only_one_of(Path("results/latest")) == two[0]


def test_without_any_run_the_next_step_is_said(here: Path) -> None:
    for find in (lambda: newest_of(None), lambda: runs_of([])):
        with pytest.raises(InputMissing, match="begin one with"):
            find()
    with pytest.raises(InputMissing, match="holds no run"):
        newest_of(Path("nowhere"))


def test_the_monitor_waits_where_a_run_may_begin(here: Path) -> None:
    assert runs_of([Path("soon")]) == [Path("soon")]


@pytest.mark.parametrize("command", [["report", "--quiet"], ["show"], ["monitor", "--once"]])
def test_commands_without_a_name_take_the_newest(
    command: list[str], two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    assert "results/new" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["report"], ["show"], ["show", "1/1/1"], ["monitor", "--once"], ["monitor"]])
def test_without_any_run_commands_are_66(command: list[str], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 66
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "run_batch.py" in said[0]


def test_monitor_shows_every_run_of_a_folder(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--json", "results"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_show_takes_a_part_of_the_newest_run(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "1"]) == 0
    assert "attempt 1" in capsys.readouterr().out
    assert main(["show", "resluts"]) == 66
    assert "resluts is not a folder" in capsys.readouterr().err


def test_a_comparison_names_the_runs_and_not_the_link(
    two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    point_latest(Path("results"), two[1])
    assert main(["compare", "results/old", "results/latest"]) == 0
    said = capsys.readouterr().out
    assert "results/new" in said and "latest" not in said
