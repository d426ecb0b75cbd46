"""A search that ends at any event goes on as if nothing had been: the same tree, and nothing evaluated twice."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from support.run_folder import FACTS, correct, run_config

from hkbench.engine.evaluator import EvaluationResult
from hkbench.lab import Lab
from hkbench.llm.nobody import NobodyClient
from hkbench.records import AnyEvent, CandidateExtracted, Interval, Problem, Verdict, VerdictReached
from hkbench.store.events import read_history
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder
from hkbench.strategies import Graph

NAME = "1_ReLU"
ATTEMPTS = 14  #: of which the surrogate chooses the last ones
START = "kernel[(1,)](BLOCK=128, num_warps=8, num_stages=3)\nclass ModelNew: pass\n"


class Killed(BaseException):
    """What a kill is for the coroutine: nothing after it is done."""


class Judge:
    """Times a kernel by its text, and notes which it was asked for."""

    def __init__(self, codes: list[str]) -> None:
        self.codes = codes

    async def evaluate(self, problem: Problem, code: Path, *_: object, **__: object) -> EvaluationResult:
        source = code.read_text()
        self.codes.append(source)
        digest = hashlib.sha256(source.encode()).digest()
        gain = 1.0 + digest[0] / 256
        found: Verdict = correct(problem.name, gain)
        update = {"speedup": Interval(value=gain, low=0.95 * gain, high=1.05 * gain)}
        conditions = found.conditions.model_copy(update={"candidate_sha256": digest.hex()})
        return EvaluationResult(found.model_copy(update=update | {"conditions": conditions}))


async def search(root: Path, codes: list[str], kill_at: int | None = None) -> None:
    """Search until the end, or until an event was written after which nothing is any more."""
    events = 0

    def tell(_event: AnyEvent) -> None:
        nonlocal events
        events += 1
        if events == kill_at:
            raise Killed

    recorder = Recorder(RunPaths(root), tell)
    recorder.begin(run_config((NAME,), samples=1), FACTS)
    problem = Problem(number=1, name=NAME, level=1, path=Path(NAME), source="", sha256="0" * 64, start=START)
    prompter = cast(Any, SimpleNamespace(backend="triton"))
    lab = Lab(problem, prompter, NobodyClient(), cast(Any, Judge(codes)), recorder, "none", describe=Graph().describe)
    try:
        await Graph().run(lab, Graph.Options(moves="rules", attempts=ATTEMPTS, whole_budget=True))
    except Killed:
        pass
    finally:
        recorder.close()


def tree(root: Path) -> list[tuple[int, int | None, str | None]]:
    """By attempt: what it was made from, and by what."""
    found: dict[int, tuple[int, int | None, str | None]] = {}
    for event in read_history(RunPaths(root).journal):
        if isinstance(event, CandidateExtracted):
            parent = event.parent.attempt if event.parent is not None else None
            found[event.key.attempt] = (event.key.attempt, parent, event.step)
    return [found[attempt] for attempt in sorted(found)]


async def test_killed_after_any_event_it_comes_to_the_same(tmp_path: Path) -> None:
    whole: list[str] = []
    await search(tmp_path / "whole", whole)
    paths = RunPaths(tmp_path / "whole")
    events = len(list(read_history(paths.journal)))
    state = paths.problem(NAME).search.read_text()
    assert len(whole) == ATTEMPTS and events > 2 * ATTEMPTS
    for point in range(1, events + 1):
        root, codes = tmp_path / f"killed_{point}", list[str]()
        await search(root, codes, point)
        before = len(codes)
        reached = sum(isinstance(event, VerdictReached) for event in read_history(RunPaths(root).journal))
        await search(root, codes)
        assert codes[:before] + codes[before:] == whole or before > reached, "what has a verdict is not judged again"
        assert len(codes) - before == ATTEMPTS - reached
        assert RunPaths(root).problem(NAME).search.read_text() == state
        assert tree(root) == tree(tmp_path / "whole")
