"""A strategy that the package does not have, through the real batch: its options, its tree, killed and resumed."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from support import doors
from support.toy_strategy import Beam

from hkbench.records import CandidateExtracted, ExtractionRule, PromptRendered
from hkbench.store.layout import RunPaths
from hkbench.strategies import STRATEGIES, register

NAME = "1_Tree"
BEAM = "tests/support/toy_strategy"
ENVIRONMENT = {"PYTHONPATH": str(doors.ROOT)}
#: A seed that fails; of its two children the model's is right and slow; of that one's the model's is fast.
TREE = {1: (None, "seed"), 2: (1, "refine"), 3: (1, "halve"), 4: (2, "refine"), 5: (2, "halve"), 6: (1, "refine")}
TREE |= {7: (1, "halve")}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    root = tmp_path_factory.mktemp("bench")
    problem = doors.problem(root / "problems", NAME, 1)
    replies = {1: doors.raising("seed"), 2: doors.slow(1), 4: doors.fast(1), 6: doors.raising("again")}
    for attempt, source in replies.items():
        doors.reply(root / "replies", NAME, attempt, 1, doors.fenced(source))
    fixed = ("--problems", problem, "--replay", root / "replies", "--device", "cpu", *doors.QUICK)
    return (*fixed, "--strategy", "beam", "--seed", 3)


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    with mock.patch.dict(STRATEGIES):
        register(Beam())
        yield


def beam(*words: object) -> subprocess.CompletedProcess[str]:
    """The command to its end, in this process, where the strategy is registered as its script does it."""
    return doors.call("run_batch", *words)


def tree(results: Path) -> dict[int, tuple[int | None, str | None]]:
    """By attempt, the attempt that it starts from, and what it is."""
    found: dict[int, tuple[int | None, str | None]] = {}
    for event in doors.events(results):
        parent = (
            event.parent.attempt if isinstance(event, PromptRendered | CandidateExtracted) and event.parent else None
        )
        if isinstance(event, PromptRendered):
            assert found.setdefault(event.attempt, (parent, event.step)) == (parent, event.step)
        elif isinstance(event, CandidateExtracted) and event.rule is ExtractionRule.PROPOSED:
            assert found.setdefault(event.key.attempt, (parent, event.step)) == (parent, event.step)
    return found


def codes(results: Path) -> dict[str, str]:
    return {str(path.relative_to(results)): path.read_text() for path in results.glob("*/attempt_*/sample_*/*.py")}


def test_a_tree_with_a_rule_killed_and_resumed(words: tuple[object, ...], tmp_path: Path) -> None:
    undisturbed, results = tmp_path / "undisturbed", tmp_path / "results"
    done = beam(*words, "--results", undisturbed)
    assert done.returncode == 0, done.stderr
    assert tree(undisturbed) == TREE
    check_what_it_leaves(undisturbed)

    process = doors.start(BEAM, *words, "--results", results, env=ENVIRONMENT)
    doors.wait_for(results / "journal.jsonl", '"attempt":5', process)  # the second level is under way
    family = doors.family(process)
    process.kill()
    process.communicate()
    assert doors.outliving(family) == []
    assert tree(results).items() <= TREE.items()

    done = beam(*words, "--results", results)
    assert done.returncode == 0, done.stderr
    assert tree(results) == TREE
    assert codes(results) == codes(undisturbed), "the generator draws the same in the resume"

    other = beam(*words, "--seed", 4, "--results", results)
    assert other.returncode == 64 and "seed 3 -> 4" in other.stderr


def check_what_it_leaves(results: Path) -> None:
    """run.json, files of a proposed candidate, calls, and the tree in the report."""
    run = RunPaths(results)
    strategy = json.loads(run.run.read_text())["config"]["strategy"]
    assert strategy["options"] == {"seed": 3, "width": 2} and strategy["layout"] == "tree"
    made = run.problem(NAME).sample(5, 1)
    assert made.code.is_file() and made.result.is_file() and not made.response.exists()
    assert "range(240)" in made.code.read_text()
    calls = list(csv.reader(run.usage.read_text().splitlines()))
    assert len(calls) == 1 + 4, "one of each attempt that asks the model"
    evaluations = [json.loads(run.problem(NAME).evaluation(number).read_text()) for number in range(len(TREE))]
    assert [one["mode"] for one in evaluations] == [TREE[one["attempt"]][1] for one in evaluations]
    drawn = [line for line in run.report_text.read_text().splitlines() if "─ " in line]
    assert drawn[0].startswith("  ├─ 2.1  refine  ")
    assert drawn[1].startswith("  │  ├─ 4.1  refine  ") and drawn[2].startswith("  │  └─ 5.1  halve  ")
    assert "│  ├─ 4 refine" in run.report_page.read_text()


def test_its_options_are_flags(words: tuple[object, ...]) -> None:
    shown = " ".join(beam("--help").stdout.split())
    assert "--width W strategy beam: nodes of the tree that are worked on at once (default: 2)" in shown
    planned = beam(*words, "--attempts", 5, "--dry-run")
    assert "strategy beam, 1 sample, up to 5 attempts: 5 to 5 model calls" in planned.stdout, planned.stderr
    refused = beam(*words, "--strategy", "reflect")
    assert refused.returncode == 64 and "--seed belongs to --strategy graph or beam" in refused.stderr
