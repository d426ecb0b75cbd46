"""A search that ends at any point goes on as if nothing had been: the same tree, nothing judged or paid for twice."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.run_folder import FACTS, correct, incorrect, run_config

from hkbench.engine.completion import EvaluationResult
from hkbench.lab import Lab
from hkbench.llm.client import ALWAYS, Permit
from hkbench.prompts import load_prompts
from hkbench.records import AnyEvent, CallKey, DeviceKind, Interval, Problem, Prompt, Reply, Verdict, VerdictReached
from hkbench.shipped import shipped_folder
from hkbench.store.events import read_history
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder
from hkbench.store.state import RunState
from hkbench.strategies import Graph

NAME = "1_ReLU"
ATTEMPTS = 14  #: of which the surrogate chooses the last ones, where rules edit
BOOK = load_prompts(shipped_folder("prompts"))
START = "kernel[(1,)](BLOCK=128, num_warps=8, num_stages=3)\nclass ModelNew: pass\n"
LONGEST = 5.0  #: an evaluation, in the time from the beginning of one to that of the next
QUIET = 90  #: turns of the event loop after which everything that can be begun is under way


class Judge:
    """Times a kernel by its text. How long it takes depends on the attempt.

    The next one ends when all that followed from the end of the one before is under way.
    """

    device = SimpleNamespace(kind=DeviceKind.CUDA)

    def __init__(self) -> None:
        self.codes: list[str] = []
        self._ends: dict[float, int] = {}  # of what is under way, by when it ends
        self._still = 0

    async def evaluate(self, problem: Problem, code: Path, *_: object, **__: object) -> EvaluationResult:
        attempt = int(code.parent.parent.name.removeprefix("attempt_"))
        self.codes.append(code.read_text())
        await self._wait(attempt)
        digest = hashlib.sha256(code.read_bytes()).digest()
        gain = 1.0 + digest[0] / 256
        found = correct(problem.name, gain) if digest[1] > 50 or attempt == 1 else incorrect(problem.name)
        interval = Interval(value=gain, low=0.95 * gain, high=1.05 * gain) if found.speedup is not None else None
        conditions = found.conditions.model_copy(update={"candidate_sha256": digest.hex()})
        return EvaluationResult(found.model_copy(update={"speedup": interval, "conditions": conditions}))

    async def _wait(self, attempt: int) -> None:
        end = attempt + LONGEST * Random(attempt).random()
        self._ends[end] = attempt
        self._still = 0
        while end > min(self._ends) or self._still < QUIET:
            await asyncio.sleep(0)
            self._still += 1
        del self._ends[end]
        self._still = 0


class Model:
    """Writes the start with other values, and notes which attempts it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def complete(
        self, key: CallKey, prompt: str, _form: object = None, permit: Permit = ALWAYS, system: str | None = None
    ) -> Reply:
        permit.begin()
        self.asked.append(key.attempt)
        warps = 2 ** Random(prompt).randrange(5)
        return Reply(text=f"```python\n{START.replace('num_warps=8', f'num_warps={warps}')}```\n", model="m")

    async def close(self) -> None: ...


class Snapshots(Recorder):
    """Keeps the folder as a kill would leave it: before each event, with the files that it tells of, and after it."""

    def __init__(self, root: Path, into: Callable[[Path], None] | None) -> None:
        super().__init__(RunPaths(root), lambda _: None)
        self._keep = into or (lambda _: None)

    def event(self, event: AnyEvent) -> None:
        self._keep(self.paths.root)
        super().event(event)
        self._keep(self.paths.root)


async def search(root: Path, in_flight: int, moves: str, keep: Callable[[Path], None] | None = None) -> tuple[int, int]:
    """Search until the end. Returns how many kernels were judged, and how often the model was asked."""
    judge, model = Judge(), Model()
    recorder = Snapshots(root, keep)
    config = run_config((NAME,), samples=1)
    recorder.begin(config, FACTS)
    before = RunState.after(read_history(recorder.paths.journal), config).problems[NAME]
    problem = Problem(number=1, name=NAME, level=1, path=Path(NAME), source="", sha256="0" * 64, start=START)
    prompter = SimpleNamespace(backend="triton", book=BOOK, render=render)
    parts = (cast(Any, prompter), model, cast(Any, judge), recorder, "m")
    lab = Lab(problem, *parts, before=before, describe=Graph().describe)
    told = {"moves": moves, "attempts": ATTEMPTS, "in_flight": in_flight, "whole_budget": True}
    try:
        await Graph().run(lab, Graph.Options.model_validate(told))
    finally:
        recorder.close()
    return len(judge.codes), len(model.asked)


async def render(_problem: Problem, reflection: object, stage: object, _task: object, _pitfalls: object) -> Prompt:
    text = f"{reflection!r} {getattr(stage, 'name', None)}"
    return Prompt(text=text, template="t", sha256=hashlib.sha256(text.encode()).hexdigest())


def copied(root: Path, to: Path) -> None:
    """Copy a run folder: files that are written whole as links, and what grows."""

    def copy(file: str, target: str) -> None:
        (shutil.copy if file.endswith(".jsonl") else os.link)(file, target)

    shutil.copytree(root, to, copy_function=copy, ignore=shutil.ignore_patterns(".lock"))


def came_of(root: Path) -> dict[str, object]:
    """Return all that a search came to, but for times: its state, its tree, each prompt and kernel."""
    paths = RunPaths(root)
    history = read_history(paths.journal)
    problem = RunState.after(history, run_config((NAME,), samples=1)).problems[NAME]
    files = sorted(file for file in paths.problem(NAME).root.rglob("*") if file.suffix in {".py", ".txt"})
    reached = [(event.key.attempt, event.kind) for event in history if isinstance(event, VerdictReached)]
    return {
        "state": paths.problem(NAME).search.read_text(),
        "tree": (problem.parents, problem.steps),
        "files": [(file.relative_to(root), file.read_text()) for file in files],
        "verdicts": reached,
    }


def done(root: Path) -> tuple[int, int]:
    """Return how many verdicts that are no other's and how many replies of the model a folder holds."""
    files = [*RunPaths(root).problem(NAME).root.rglob("sample_*/*")]
    verdicts = [Verdict.model_validate_json(file.read_bytes()) for file in files if file.name == "result.json"]
    return sum(one.copy_of is None for one in verdicts), sum(file.name == "response.txt" for file in files)


@pytest.mark.parametrize(("in_flight", "moves", "every"), [(1, "rules", 7), (3, "rules", 3), (3, "both", 1)])
async def test_killed_at_any_point_it_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_flight: int, moves: str, every: int
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a kill loses nothing that was written
    kept: list[Path] = []

    def keep(root: Path) -> None:
        kept.append(tmp_path / f"killed_{len(kept)}")
        if len(kept) % every == 0:
            copied(root, kept[-1])

    judged, asked = await search(tmp_path / "whole", in_flight, moves, keep)
    whole = came_of(tmp_path / "whole")
    order = [attempt for attempt, _ in cast(Any, whole["verdicts"])]
    assert sorted(order) == [*range(1, ATTEMPTS + 1)] and len(kept) > 4 * ATTEMPTS
    assert (order == sorted(order)) == (in_flight == 1) and (asked > 0) == (moves == "both") == (judged < ATTEMPTS)
    for root in filter(Path.exists, kept):
        verdicts, replies = done(root)
        assert await search(root, in_flight, moves) == (judged - verdicts, asked - replies), root.name
        assert came_of(root) == whole, root.name
