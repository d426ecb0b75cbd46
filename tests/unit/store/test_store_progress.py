"""How far a run has come, by its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import RunFolder, correct, run_config

from hkbench.records import RunClosed, RunStarted
from hkbench.store.layout import RunPaths
from hkbench.store.progress import describe_folder, is_complete, progress_of


def test_a_folder_without_a_run_is_new(tmp_path: Path) -> None:
    assert describe_folder(tmp_path / "run") == f"new: {tmp_path / 'run'}"


def test_a_run_without_a_reply_begins_again(tmp_path: Path) -> None:
    RunFolder(tmp_path, run_config())
    assert "begins again" in describe_folder(tmp_path)


def test_replies_and_verdicts_are_counted(tmp_path: Path) -> None:
    config = run_config(("1_ReLU", "2_GELU"))
    run = RunFolder(tmp_path, config)
    for name, sample in (("1_ReLU", 1), ("1_ReLU", 2), ("2_GELU", 1)):
        place = run.paths.problem(name).sample(1, sample)
        place.root.mkdir(parents=True)
        place.response.write_text("a reply")
    run.paths.problem("1_ReLU").sample(1, 1).result.write_text(correct("1_ReLU", 2.0).model_dump_json())
    found = progress_of(run.paths, config)
    assert (found.judged, found.waiting, found.most, found.complete, found.answered) == (1, 2, 8, False, True)
    said = describe_folder(tmp_path)
    assert said.startswith("resumes ") and "1 of up to 8 samples" in said and "2 replies" in said


def test_an_answer_of_a_judge_is_a_reply(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config())
    call = run.paths.problem("1_ReLU").advice(2, 1)
    call.root.mkdir(parents=True)
    call.response.write_text("{}")
    assert progress_of(run.paths, run_config()).answered


@pytest.mark.parametrize(("complete", "expected"), [(True, True), (False, False)])
def test_complete_is_what_the_last_event_says(tmp_path: Path, complete: bool, expected: bool) -> None:
    paths = RunPaths(tmp_path)
    events = (RunStarted(time=1.0, resumed=False), RunClosed(time=2.0, complete=complete))
    paths.journal.write_text("".join(event.model_dump_json() + "\n" for event in events))
    assert is_complete(paths) is expected
    with paths.journal.open("a") as journal:
        journal.write(RunStarted(time=3.0, resumed=True).model_dump_json() + "\n")
    assert not is_complete(paths)


def test_a_journal_that_is_missing_or_cut_is_not_complete(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    assert not is_complete(paths)
    paths.journal.write_text('{"event": "run_cl')
    assert not is_complete(paths)
