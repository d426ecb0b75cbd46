"""run_batch.py --strategy staged as a user runs it, with recorded replies and rules of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import doors

from hkbench.records import Decided, PromptRendered, Status, VerdictReached
from hkbench.store.layout import RunPaths

NAME = "1_Loop"
SHIPPED = doors.ROOT / "prompts" / "categories.toml"
OWN = """
[ridge]
full.float32 = 20
cpu.float32 = 10

[[categories]]
name = "loops"
title = "elementwise work done many times"
match.graph = [{ contains = "elementwise" }]

[[categories.stages]]
name = "once"
focus = "to do the work once"
guidance = ["Return the first result."]
metrics.cpu = ["time share"]

[[categories.stages]]
name = "twice"
focus = "never reached"
guidance = ["None."]
skip = [{ when = { speedup_at_least = 1.0 }, why = "it is fast" }]

[[categories.stages]]
name = "thrice"
focus = "the end"
guidance = ["None."]

[[categories.exit]]
when = { stage_at_least = 1, gain_at_least = 2.0 }
why = "it gained enough"

[[categories]]
name = "generic"
title = "the rest"

[[categories.stages]]
name = "one"
focus = "one"
guidance = ["None."]
[[categories.stages]]
name = "two"
focus = "two"
guidance = ["None."]
[[categories.stages]]
name = "three"
focus = "three"
guidance = ["None."]
"""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    doors.problem(tmp_path / "problems", NAME, 1)
    for attempt, source in enumerate((doors.wrong(1), doors.slow(1), doors.fast(1), doors.fast(1)), start=1):
        doors.reply(tmp_path / "replies", NAME, attempt, 1, doors.fenced(source))
    return tmp_path


def arguments(bench: Path, categories: Path, *more: object) -> tuple[object, ...]:
    problem = bench / "problems" / "level1" / f"{NAME}.py"
    fixed = ("--problems", problem, "--results", bench / "results", "--device", "cpu", *doors.QUICK)
    return (*fixed, "--replay", bench / "replies", "--strategy", "staged", "--categories", categories, *more)


def test_category_stages_and_exit(bench: Path) -> None:
    own = bench / "own.toml"
    own.write_text(OWN)
    done = doors.call("run_batch", *arguments(bench, own))
    assert done.returncode == 0, done.stderr
    events = doors.events(bench / "results")
    assert [event.status for event in events if isinstance(event, VerdictReached)] == [
        Status.INCORRECT,
        Status.SLOW,
        Status.FAST,
    ]
    decisions = [(event.attempt, event.what, event.choice) for event in events if isinstance(event, Decided)]
    left = [(3, "left", "twice"), (3, "left", "thrice")]
    worked = [(3, "stage", "once"), (3, "result", "once")]
    assert decisions == [(1, "category", "loops"), *worked, *left, (3, "exit", "before twice")]
    lines = done.stdout.splitlines()
    assert any("category loops (elementwise work done many times; " in line and "3 stages" in line for line in lines)
    assert any(line.endswith("[Stage 1/3] once, to do the work once") for line in lines)
    assert any(re.search(r"extracted \d key metrics?: ", line) and "time share" in line for line in lines)
    assert any(re.search(r"attempt 3: improved 0\.\d+x -> \d+", line) for line in lines)
    assert any(f"{NAME} (loops): solved, best " in line for line in lines)
    assert "category: loops: 1 problem, 1 solved" in lines
    parents = [event.parent and event.parent.attempt for event in events if isinstance(event, PromptRendered)]
    assert parents == [None, 1, 2]
    paths = RunPaths(bench / "results").problem(NAME)
    assert "This step" not in paths.prompt(2).read_text()
    staged = paths.prompt(3).read_text()
    assert "## This step: once" in staged and "Return the first result." in staged
    assert "What this step is about, as measured" in staged and "One profiled forward pass" not in staged

    evaluations = [json.loads(paths.evaluation(number).read_text()) for number in range(3)]
    assert [one["mode"] for one in evaluations] == ["seed", "seed", "once"]
    assert "time share" in evaluations[2]["metrics_shown"][0] and evaluations[1]["metrics_shown"] == []
    assert paths.score.read_bytes().startswith(b"\x89PNG")
    (budget,) = json.loads(RunPaths(bench / "results").report_json.read_text())["overall"]["budget"]
    assert (budget["category"], budget["worked"], budget["left_out"]) == ("loops", 1, 2)
    assert budget["saved"]["attempts"] == 2.0
    assert [(one["stage"], one["geometric_mean_gain"]) for one in budget["stages"]][1:] == [
        ("twice", None),
        ("thrice", None),
    ]
    assert "exit: before twice, it gained enough" in doors.hkbench("show", bench / "results", "1").stdout

    before = (bench / "results" / "journal.jsonl").read_text()
    again = doors.call("run_batch", *arguments(bench, own))
    assert again.returncode == 0, again.stderr
    added = (bench / "results" / "journal.jsonl").read_text().removeprefix(before)
    assert "verdict" not in added

    own.write_text(OWN.replace("2.0", "3.0"))
    other = doors.call("run_batch", *arguments(bench, own))
    assert other.returncode == 64 and "the file of categories" in other.stderr


def test_a_categories_file_with_a_fault_costs_nothing(bench: Path) -> None:
    own = bench / "own.toml"
    own.write_text(OWN.replace("speedup_at_least", "speed_at_least"))
    done = doors.call("run_batch", *arguments(bench, own))
    assert done.returncode == 64 and "speed_at_least" in done.stderr
    assert not (bench / "results").exists()


def test_the_shipped_categories_are_the_default(bench: Path) -> None:
    done = doors.call("run_batch", *arguments(bench, SHIPPED, "--dry-run"))
    assert "strategy staged, 1 sample, up to 8 attempts: 1 to 8 model calls" in done.stdout, done.stderr
