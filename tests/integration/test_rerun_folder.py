"""hkbench rerun on a run that run_batch.py made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import doors

from hkbench.records import Failure, FailureKind, Stage, Status, Verdict
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run

NAME = "1_P"


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Problems, and a finished run whose fast candidate has a verdict that a busy machine might have given: timeout."""
    root = tmp_path_factory.mktemp("rerun")
    problems, replies, results = root / "problems", root / "replies", root / "results"
    doors.problem(problems, NAME, 1)
    doors.reply(replies, NAME, 1, 1, doors.fenced(doors.wrong(1)))
    doors.reply(replies, NAME, 1, 2, doors.fenced(doors.fast(1)))
    done = doors.call(
        "run_batch", 1, 1, "--problems", problems, "--replay", replies, "--results", results, "--device", "cpu",
        "--attempts", 1, *doors.QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    path = RunPaths(results).problem(NAME).sample(1, 2).result
    verdict = Verdict.model_validate_json(path.read_text())
    late = Failure(stage=Stage.RUN, kind=FailureKind.TIMEOUT, message="forward did not end")
    lost = {"status": Status.INCORRECT, "failure": late, "speedup": None, "baseline": None, "candidate": None}
    path.write_text(verdict.model_copy(update=lost).model_dump_json())
    return problems, results


def test_what_matches_is_judged_again_and_the_run_stays(bench: tuple[Path, Path], tmp_path: Path) -> None:
    """By the run's own copy of the problem: the folder of problems is not named."""
    _, results = bench
    before, target = _contents(results), tmp_path / "again"
    done = doors.hkbench("rerun", results, "--where", "kind=timeout", "--results", target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{NAME}/1/2: incorrect, timeout -> fast" in done.stdout
    assert _contents(results) == before
    view = read_run(RunPaths(target))
    first, second = view.problems[0].samples
    assert first.failure is not None and first.failure.kind is FailureKind.WRONG_VALUES
    assert second.solved
    assert "judged again; the verdict before: incorrect, timeout" in second.warnings
    assert view.problems[0].closed and view.state.closed is not None and view.state.closed.complete
    best = Verdict.model_validate_json((target / NAME / "best_result.json").read_text())
    assert best.status is Status.FAST
    assert "Solved      1 of 1" in (target / "detailed_report.txt").read_text()
    assert (target / NAME / "attempt_1" / "sample_1" / "result.json").read_bytes() == before[
        f"{NAME}/attempt_1/sample_1/result.json"
    ]


def test_the_same_command_goes_on(bench: tuple[Path, Path], tmp_path: Path) -> None:
    """The copy lies there and one of two samples is judged, as an interruption leaves it."""
    problems, results = bench
    target = tmp_path / "again"
    where = ("--where", "status=incorrect", "--results", target, "--problems", problems)
    assert doors.hkbench("rerun", results, "--where", "kind=timeout", *where[2:]).returncode == 0
    done = doors.hkbench("rerun", results, *where)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{NAME}/1/1: incorrect, wrong_values -> incorrect, wrong_values" in done.stdout
    assert f"{NAME}/1/2" not in done.stdout
    assert "Solved      1 of 1" in (target / "detailed_report.txt").read_text()
    own = doors.hkbench("rerun", results, "--where", "kind=timeout", "--results", results, "--problems", problems)
    assert own.returncode == 64 and "no copy of" in own.stderr


def test_nothing_is_written_for_a_dry_run_or_a_mistake(bench: tuple[Path, Path], tmp_path: Path) -> None:
    problems, results = bench
    dry = doors.hkbench("rerun", results, "--where", "status=incorrect", "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, f"{NAME}/1/1\n{NAME}/1/2\n")
    assert doors.hkbench("rerun", results, "--where", "kind=timeout", "--problems", problems).returncode == 64
    none = doors.hkbench("rerun", results, "--where", "kind=crash", "--results", tmp_path / "none")
    assert none.returncode == 66 and "no judged sample" in none.stderr
    older = Path(shutil.copytree(results, tmp_path / "older", ignore=shutil.ignore_patterns(f"{NAME}.py")))
    shipped = doors.hkbench("rerun", older, "--where", "kind=timeout", "--results", tmp_path / "none")
    assert shipped.returncode == 66 and NAME in shipped.stderr
    doors.problem(tmp_path / "changed", NAME, 2)
    changed = doors.hkbench(
        "rerun", results, "--where", "kind=timeout", "--results", tmp_path / "none", "--problems", tmp_path / "changed"
    )
    assert changed.returncode == 64 and "not the run's" in changed.stderr
    assert not (tmp_path / "none").exists()
