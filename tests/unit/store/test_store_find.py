"""Runs below a folder, and the link to the newest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.run_folder import RunFolder

from hkbench.store import find


def run_at(folder: Path, begun: float) -> Path:
    run = RunFolder(folder)
    run.paths.lock.touch()
    os.utime(run.paths.lock, (begun, begun))
    return folder


def test_runs_are_found_in_folders_below_the_last_begun_first(tmp_path: Path) -> None:
    old, new = run_at(tmp_path / "a" / "b" / "old", 10.0), run_at(tmp_path / "new", 20.0)
    run_at(tmp_path / ".hidden" / "run", 30.0)
    assert find.runs_below(tmp_path) == [new, old]


def test_a_run_is_its_own_and_nothing_in_it_is_looked_at(tmp_path: Path) -> None:
    outer = run_at(tmp_path / "outer", 10.0)
    run_at(outer / "inner", 20.0)
    assert find.runs_below(tmp_path) == [outer]
    assert find.runs_below(outer) == [outer]


def test_no_run(tmp_path: Path) -> None:
    assert find.runs_below(tmp_path / "nowhere") == []


def test_a_linked_run_is_listed_once_by_its_own_name(tmp_path: Path) -> None:
    run, elsewhere = run_at(tmp_path / "results" / "run", 10.0), run_at(tmp_path / "disk" / "other", 20.0)
    find.point_latest(tmp_path / "results", run)
    (tmp_path / "results" / "linked").symlink_to(elsewhere)
    (tmp_path / "results" / "gone").symlink_to(tmp_path / "gone")
    (tmp_path / "results" / "loop").symlink_to(tmp_path / "results")
    assert find.runs_below(tmp_path / "results") == [tmp_path / "results" / "linked", run]


def test_a_copy_without_its_lock_goes_by_run_json(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "copy")
    os.utime(run.paths.run, (5.0, 5.0))
    assert find.last_begun(tmp_path / "copy") == 5.0


def test_latest_is_relative_and_follows_the_newest(tmp_path: Path) -> None:
    first, second = run_at(tmp_path / "first", 1.0), run_at(tmp_path / "deep" / "second", 2.0)
    for run in (first, second):
        find.point_latest(tmp_path, run)
    link = tmp_path / "latest"
    assert link.readlink() == Path("deep/second")
    assert find.named_run(link) == second
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_latest_spares_a_folder_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    find.point_latest(tmp_path, run_at(tmp_path / "run", 1.0))
    assert not (tmp_path / "latest").is_symlink()


def test_a_file_system_without_links_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    find.point_latest(tmp_path, run_at(tmp_path / "run", 1.0))
    assert not (tmp_path / "latest").exists()


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    made = [find.make_new_folder(tmp_path / "results" / "20260304-050607_m") for _ in range(3)]
    assert [path.name for path in made] == ["20260304-050607_m", "20260304-050607_m_2", "20260304-050607_m_3"]
    assert all(path.is_dir() for path in made)
