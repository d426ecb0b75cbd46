"""The run folder's name."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.run_folder import RunFolder, run_config

from hkbench.cli.run_config import Draft
from hkbench.cli.run_folder import Place, check_folder, describe_place, find_place, place_of
from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.records import RunConfig
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def options(results: str | None, model: str | None = "lab/kernel-7 (new)") -> argparse.Namespace:
    return argparse.Namespace(results=results and Path(results), model=model, strategy="judge", resume=None, new=False)


def test_each_start_has_a_folder_of_its_own() -> None:
    place = place_of(options(None), NOW)
    assert place.folder == Path("results/20260304-050607_lab-kernel-7-new")
    assert place.is_new and place.root == Path("results")


def test_a_plain_name_stays() -> None:
    place = place_of(options("results/a"), NOW)
    assert (place.folder, place.is_new, place.root) == (Path("results/a"), False, Path("results"))
    assert place_of(options("elsewhere/a"), NOW).root is None


def test_time_model_and_strategy_have_places() -> None:
    place = place_of(options("runs/{time}_{model}_{strategy}"), NOW)
    assert place.folder == Path("runs/20260304-050607_lab-kernel-7-new_judge")
    assert place.root == Path("runs")
    assert place_of(options("{model}", None), NOW).folder == Path("replay")


@pytest.mark.parametrize("pattern", ["runs/{date}", "runs/{}", "runs/{time", "runs/{time.nothing}"])
def test_other_names_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"use \{time\}, \{model\}, \{strategy\}"):
        place_of(options(pattern), NOW)


def test_two_starts_in_one_second_have_two_folders(tmp_path: Path) -> None:
    place = place_of(options(str(tmp_path / "{time}")), NOW)
    assert [place.make().name for _ in range(2)] == ["20260304-050607", "20260304-050607_2"]


def test_a_folder_that_cannot_be_made_is_66(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputMissing, match="name another folder with --results"):
        place_of(options(str(tmp_path / "file" / "{time}")), NOW).make()


def test_a_folder_that_can_be_made_is_not_made_yet(tmp_path: Path) -> None:
    for pattern in ("a/b/run", "a/b/{time}"):
        check_folder(place_of(options(str(tmp_path / pattern)), NOW))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run", "{time}"])
def test_a_folder_below_a_file_or_in_proc_is_66(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", Path("/proc/nothing")):
        with pytest.raises(InputMissing, match=r"cannot make .* name another folder with --results"):
            check_folder(place_of(options(str(folder / name)), NOW))


DRAFT = Draft(run_config(), frozenset())


def draft(**changes: object) -> Draft:
    return Draft(run_config().model_copy(update=changes), frozenset())


def recorded(folder: Path, begun: float, *, complete: bool = False, config: RunConfig | None = None) -> Path:
    """A run with one reply."""
    run = RunFolder(folder, config or run_config())
    reply = run.paths.problem("1_ReLU").sample(1, 1).response
    reply.parent.mkdir(parents=True)
    reply.write_text("a reply")
    if complete:
        run.close()
    run.paths.lock.touch()
    os.utime(run.paths.lock, (begun, begun))
    return folder


def found(root: Path, draft: Draft, **more: object) -> Place:
    given = options(str(root / "{time}"))
    vars(given).update(more)
    return find_place(given, draft, place_of(given, NOW))


def test_the_same_settings_go_on_with_the_unfinished_run(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", 10.0)
    recorded(tmp_path / "other", 20.0, config=run_config(samples=5))
    place = found(tmp_path, DRAFT)
    assert (place.folder, place.is_new, place.root) == (run, False, tmp_path)
    assert "resumes" in describe_place(place, DRAFT)
    assert found(tmp_path, draft(base_url="http://elsewhere/v1")).folder == run
    assert found(tmp_path, Draft(run_config(samples=9), frozenset({"samples"}))).folder == tmp_path / "other"


@pytest.mark.parametrize(
    "changes", [{"model": "b"}, {"attempts": 3}, {"temperature": 0.5}, {"prompts_sha256": "1" * 64}]
)
def test_other_settings_begin_another_run(tmp_path: Path, changes: dict[str, object]) -> None:
    recorded(tmp_path / "run", 10.0)
    assert found(tmp_path, draft(**changes)).is_new


def test_new_begins_another_run(tmp_path: Path) -> None:
    recorded(tmp_path / "run", 10.0)
    assert found(tmp_path, DRAFT, new=True).is_new


def test_only_the_newest_run_of_the_settings_counts(tmp_path: Path) -> None:
    recorded(tmp_path / "unfinished", 10.0)
    done = recorded(tmp_path / "done", 20.0, complete=True)
    place = found(tmp_path, DRAFT)
    assert place.is_new
    assert f"{done}, is complete" in describe_place(place, DRAFT)


def test_a_damaged_run_is_passed_over(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", 10.0)
    RunPaths(recorded(tmp_path / "damaged", 20.0)).run.write_text("{")
    assert found(tmp_path, DRAFT).folder == run


def test_a_run_at_work_is_not_begun_twice(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", 10.0)
    recorder = Recorder(RunPaths(run), lambda _: None)
    try:
        with pytest.raises(UsageError, match="at work already"):
            found(tmp_path, DRAFT)
    finally:
        recorder.close()


def named(folder: Path, draft: Draft, **more: object) -> Place:
    given = options(str(folder))
    vars(given).update(more)
    return find_place(given, draft, place_of(given, NOW))


def test_a_named_folder_with_other_settings_is_refused_at_once(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run", 10.0)
    with pytest.raises(RunMismatch, match="temperature not set"):
        named(run, draft(temperature=0.5))
    assert named(run, draft(attempts=3)).folder == run
    assert "attempts 2 -> 3" in describe_place(named(run, draft(attempts=3)), draft(attempts=3))
    with pytest.raises(UsageError, match="leave out --results"):
        named(run, DRAFT, new=True)


def test_a_run_without_a_reply_makes_way(tmp_path: Path) -> None:
    RunFolder(tmp_path / "run")
    other = draft(model="right-name")
    place = named(tmp_path / "run", other)
    assert not place.is_new and "begins again" in describe_place(place, other)
