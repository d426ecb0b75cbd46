"""hkbench optimize, as its user has it: a spec in C++, no model, a run that is killed and resumed, what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import doors

from hkbench.records import CandidateExtracted, MoveGains, RunClosed, VerdictReached
from hkbench.store.layout import RunPaths

SPEC = doors.ROOT / "kernels" / "column_sum_cpp.json"
NAME = "1_column_sum_cpp"
BUDGET = 5


def words(folder: Path, *more: object) -> tuple[object, ...]:
    chosen = ("--input", SPEC, "--outdir", folder, "--no-llm", "--device", "cpu", "--budget-builds", BUDGET)
    return (*chosen, "--whole-budget", *doors.QUICK, *more)


def tree(results: Path) -> list[tuple[int, int | None, str | None]]:
    found = []
    for event in doors.events(results):
        if isinstance(event, CandidateExtracted):
            parent = event.parent.attempt if event.parent is not None else None
            found.append((event.key.attempt, parent, event.step))
    return found


@pytest.mark.slow
def test_a_search_without_a_model_killed_and_resumed(tmp_path: Path) -> None:
    process = doors.start_hkbench("optimize", *words(tmp_path))
    results = tmp_path / "run"
    doors.wait_for(results / "journal.jsonl", '"attempt":3', process)
    process.kill()
    process.communicate()
    done = doors.hkbench("optimize", *words(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "no model calls" in done.stdout

    events = doors.events(results)
    judged = [event.key.attempt for event in events if isinstance(event, VerdictReached)]
    assert judged == list(range(1, BUDGET + 1)), "none twice"
    assert isinstance(events[-1], RunClosed) and events[-1].complete
    steps = tree(results)
    assert steps[0] == (1, None, "start")
    assert all(parent is not None for _, parent, _ in steps[1:])

    paths = RunPaths(results).problem(NAME)
    assert paths.sample(2, 1).diff.read_text().startswith("--- ")
    assert not paths.sample(1, 1).diff.exists()
    kept = paths.sample(1, 1).assembly.read_text()
    assert "<column_sum(float const*, float*, long, long)>:" in kept and "<pybind11" not in kept
    assert f"# {NAME}" in paths.trace.read_text()
    assert json.loads(paths.search.read_text())["evaluations"] >= 1
    gains = MoveGains.model_validate_json(RunPaths(results).moves.read_text())
    assert sum(move.tried for move in gains.moves) <= BUDGET - 1

    again = doors.hkbench("optimize", *words(tmp_path))
    assert again.returncode == 0
    assert len([event for event in doors.events(results) if isinstance(event, VerdictReached)]) == BUDGET


def test_what_is_wrong_is_said_before_anything_is_started(tmp_path: Path) -> None:
    done = doors.hkbench("optimize", "--input", tmp_path / "absent.json", "--no-llm")
    assert done.returncode == 66 and "absent.json" in done.stderr
    told = json.loads(SPEC.read_text())
    told["entry"] = "no_such_kernel"
    told["source"] = (SPEC.parent / told.pop("source_file")).read_text()
    (tmp_path / "spec.json").write_text(json.dumps(told))
    done = doors.hkbench("optimize", "--input", tmp_path / "spec.json", "--no-llm", "--outdir", tmp_path / "out")
    assert done.returncode == 64 and "entry" in done.stderr
    assert not (tmp_path / "out").exists()
