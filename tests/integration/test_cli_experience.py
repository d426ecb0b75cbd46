"""Runs with an experience: what one came to is told to the next, said in its report, and proved from the folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import doors

from hkbench.records import ExperienceRecalled, RecallKind
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run_file

FIRST, SECOND, THIRD = "1_First", "2_Second", "3_Third"
WORDS = "no kernel image is available"


def make_replies(root: Path) -> None:
    """Problems whose first kernel raises the same error, and whose second one is right."""
    for addend, name in enumerate((FIRST, SECOND, THIRD), start=1):
        doors.problem(root / "problems", name, addend)
        doors.reply(root / "replies", name, 1, 1, doors.fenced(doors.raising(WORDS)))
        doors.reply(root / "replies", name, 2, 1, doors.fenced(doors.fast(addend)))


def arguments(root: Path, number: int, run: str, *more: object) -> tuple[object, ...]:
    where = ("--problems", root / "problems", "--replay", root / "replies", "--results", root / run)
    return (number, number, *where, "--device", "cpu", "--attempts", 2, "--samples", 1, *doors.QUICK, *more)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cold run of the first problem; one of the second, which is told of it."""
    root = tmp_path_factory.mktemp("experience")
    make_replies(root)
    for number, run in enumerate(("cold", "warm"), start=1):
        done = doors.call("run_batch", *arguments(root, number, run, "--experience", root / "e.db"))
        assert done.returncode == 0, done.stderr
    return root


def test_what_mended_an_error_is_told_in_the_prompt_of_another_problem(root: Path) -> None:
    [cold, warm] = [RunPaths(root / "cold").problem(FIRST), RunPaths(root / "warm").problem(SECOND)]
    assert "(helped 1 of 1; first in cold of 1_First, 2.1)" in warm.prompt(2).read_text()
    assert "became `return x * 2 + 1`" in warm.prompt(2).read_text()
    assert "other runs" not in cold.prompt(2).read_text()


@pytest.mark.slow
def test_what_two_problems_met_is_told_in_the_first_prompt_of_a_third(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "e.db", tmp_path)
    done = doors.call("run_batch", *arguments(root, 3, "third", "--experience", tmp_path / "e.db"))
    assert done.returncode == 0, done.stderr
    for run, name, told in (("third", THIRD, True), ("warm", SECOND, False)):
        text = RunPaths(root / run).problem(name).prompt(1).read_text()
        assert ("(on 2 problems)" in text) is told
    report = json.loads(RunPaths(root / "third").report_json.read_text())
    assert report["experience"]["pitfalls"] == 1


def test_the_run_and_its_report_say_so(root: Path) -> None:
    run = read_run_file(RunPaths(root / "warm"))
    assert run.config.experience == str(root / "e.db")
    assert run.facts.experience is not None and run.facts.experience.runs == 1
    report = json.loads(RunPaths(root / "warm").report_json.read_text())
    assert (report["experience"]["remedies"], report["experience"]["prompts"]) == (1, 1)
    assert "With an experience of 1 run" in RunPaths(root / "warm").report_text.read_text()
    assert "With an experience of 1 run" in RunPaths(root / "warm").report_page.read_text()


def test_the_database_is_what_the_folders_say_and_shows_what_mended_the_error(root: Path) -> None:
    done = doors.hkbench("experience", "check", root / "cold", root / "warm", "--db", root / "e.db")
    assert done.returncode == 0, done.stdout
    again = doors.hkbench("experience", "add", root / "cold", "--db", root / "e.db")
    assert again.stdout.splitlines()[0].endswith("cold: same")
    shown = json.loads(doors.hkbench("experience", "show", "--db", root / "e.db", "--json").stdout)
    [error] = shown["errors"]
    assert (error["kind"], error["seen"], error["mended"]) == ("runtime_error", 2, 2)
    assert {(hint["kind"], hint["tried"]) for hint in error["hints"]} >= {("change", 1), ("remedy", 1)}
    text = doors.hkbench("experience", "show", "--db", root / "e.db", "--backend", "cpp").stdout
    assert "helped 1 of 1 (remedy)" in text


def test_other_settings_of_the_experience_are_another_run(root: Path) -> None:
    for more in ((), ("--experience", "off"), ("--experience", root / "e.db", "--hold-out", "^1_")):
        assert doors.call("run_batch", *arguments(root, 2, "warm", *more)).returncode == 64
    assert doors.call("run_batch", *arguments(root, 2, "new", "--hold-out", "^1_")).returncode == 64


@pytest.mark.slow
def test_a_resume_asks_nothing_again(root: Path) -> None:
    reply = RunPaths(root / "replies").problem(SECOND).sample(2, 1).response
    command = arguments(root, 2, "resumed", "--experience", root / "e.db")
    text = reply.read_text()
    reply.unlink()
    assert doors.call("run_batch", *command).returncode == 66
    reply.write_text(text)
    assert doors.call("run_batch", *command).returncode == 0
    recalled = [event for event in doors.events(root / "resumed") if isinstance(event, ExperienceRecalled)]
    assert [(event.what, event.found) for event in recalled] == [
        (RecallKind.PITFALLS, True),
        (RecallKind.REMEDIES, True),
    ]


def test_a_run_that_asks_nothing_is_added_to_the_experience_of_its_folder_of_runs(tmp_path: Path) -> None:
    make_replies(tmp_path)
    fixed = ("--problems", "problems", "--replay", "replies", "--device", "cpu", "--attempts", 2, "--samples", 1)
    kept = tmp_path / "results" / "experience.db"
    done = doors.call("run_batch", 1, 1, *fixed, *doors.QUICK, "--experience", "off", cwd=tmp_path)
    assert done.returncode == 0 and not kept.exists(), done.stderr
    done = doors.call("run_batch", 2, 2, *fixed, *doors.QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = (tmp_path / "results" / "latest").resolve()
    assert read_run_file(RunPaths(run)).config.experience is None, "it asked nothing"
    done = doors.hkbench("experience", "check", run, "--db", kept)
    assert done.returncode == 0, done.stdout
