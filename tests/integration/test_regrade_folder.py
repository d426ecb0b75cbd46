"""hkbench regrade on a run that run_batch.py made."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support import doors

from hkbench.profile.ownership import judgement
from hkbench.records import FailureKind, SampleKey, Status, Track, Verdict
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run
from hkbench.store.sample import read_sample

NAME = "1_P"


def _regrade(*arguments: object) -> subprocess.CompletedProcess[str]:
    return doors.hkbench("regrade", *arguments)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _verdict(folder: Path, sample: int) -> Verdict:
    verdict = read_sample(RunPaths(folder), SampleKey(problem=NAME, attempt=1, sample=sample)).verdict
    assert verdict is not None
    return verdict


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Problems, and a finished run: sample 1 is off by one now and then, sample 2 is right and fast."""
    root = tmp_path_factory.mktemp("regrade")
    problems, replies, results = root / "problems", root / "replies", root / "results"
    doors.problem(problems, NAME, 1)
    doors.reply(replies, NAME, 1, 1, doors.fenced(doors.wrong(1)))
    doors.reply(replies, NAME, 1, 2, doors.fenced(doors.fast(1)))
    done = doors.call(
        "run_batch", 1, 1, "--problems", problems, "--replay", replies, "--results", results, "--device", "cpu",
        "--attempts", 1, *doors.QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return problems, results


def test_the_same_rules_leave_every_verdict(bench: tuple[Path, Path], tmp_path: Path) -> None:
    _, results = bench
    before, target = _contents(results), tmp_path / "same"
    done = _regrade(results, "--results", target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 regraded (0 of them with another outcome), 2 unchanged, 0 that the records cannot decide" in done.stdout
    assert _contents(results) == before
    for sample in (1, 2):
        name = f"{NAME}/attempt_1/sample_{sample}/result.json"
        assert (target / name).read_bytes() == before[name]
    closed = read_run(RunPaths(target)).state.closed
    assert closed is not None and closed.complete


def test_a_tighter_tolerance_from_the_recorded_errors(bench: tuple[Path, Path], tmp_path: Path) -> None:
    _, results = bench
    (then,) = _verdict(results, 2).conditions.tolerances
    assert then.error is not None and then.error < 1e-6 and then.eager_error is not None
    target = tmp_path / "tighter"
    done = _regrade(results, "--rtol", "float32=1e-5", "--results", target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 regraded (0 of them with another outcome), 1 unchanged, 0 that the records cannot decide" in done.stdout
    now = _verdict(target, 2)
    assert now.status is Status.FAST and now.speedup == _verdict(results, 2).speedup
    assert now.conditions.tolerances[0].rtol == 1e-5
    assert any(
        text.startswith("regraded: rtol float32=1e-5; the verdict before: fast") for text in now.conditions.warnings
    )
    assert read_run(RunPaths(target)).config.evaluation.rtol == {"float32": 1e-5}
    other = _regrade(results, "--rtol", "float32=1e-6", "--results", target)
    assert other.returncode == 64 and "no copy of" in other.stderr


def test_a_wider_tolerance_is_judged_where_that_is_asked_for(bench: tuple[Path, Path], tmp_path: Path) -> None:
    problems, results = bench
    target = tmp_path / "wider"
    asked = (results, "--rtol", "float32=0.5", "--results", target)
    listed = _regrade(*asked)
    assert listed.returncode == 1, listed.stdout + listed.stderr
    assert f"{NAME}/1/1: stays incorrect, wrong_values, has to be judged again: its first failing" in listed.stdout
    kept, closed = _verdict(target, 1), read_run(RunPaths(target)).state.closed
    assert kept == _verdict(results, 1) and kept.failure is not None and kept.failure.kind is FailureKind.WRONG_VALUES
    assert closed is not None and not closed.complete and "1 samples have to be judged again" in str(closed.reason)
    judged = _regrade(*asked, "--judge", "--problems", problems)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert f"{NAME}/1/1: incorrect, wrong_values -> fast" in judged.stdout and f"{NAME}/1/2" not in judged.stdout
    now = _verdict(target, 1)
    assert now.status is Status.FAST and now.conditions.tolerances[0].plain_rtol == 0.5
    assert read_run(RunPaths(target)).state.closed.complete  # type: ignore[union-attr]
    again = _regrade(*asked)
    assert again.returncode == 0 and "stays" not in again.stdout


def test_the_other_track_as_the_recorded_shares_have_it(bench: tuple[Path, Path]) -> None:
    _, results = bench
    then = _verdict(results, 2)
    done = _regrade(results, "--track", "own", "--dry-run")
    reason = None if then.work is None else judgement(then.work, Track.OWN)
    assert (f"{NAME}/1/2: fast" in done.stdout and "-> refused, not_own" in done.stdout) is (reason is not None)
    assert "0 unchanged, 0 that the records cannot decide" in done.stdout  # static rules weigh differently there
    assert done.returncode == 0


def test_mistakes_write_nothing(bench: tuple[Path, Path], tmp_path: Path) -> None:
    _, results = bench
    target = tmp_path / "none"
    for arguments, words in (
        (("--rtol", "float32=2"), "between 0 and 1"),
        (("--rtol", "int64=0.1"), "with a dtype of"),
        (("--track", "any", "--where", "sample=1"), "hold for a whole run"),
    ):
        done = _regrade(results, *arguments, "--results", target)
        assert done.returncode == 64 and words in done.stderr
    assert _regrade(results).returncode == 64
    assert _regrade(results, "--where", "kind=crash", "--results", target).returncode == 66
    assert not target.exists()
