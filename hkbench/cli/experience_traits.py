"""What the problems of run folders are compared by: their own code says it, run by the evaluator's processes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hkbench.cli.recorded import kept_problems
from hkbench.engine import factory
from hkbench.errors import HkbenchError
from hkbench.experience.facts import Traits, traits
from hkbench.experience.feed import KnownTraits
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, EvaluationSettings, Problem, SizeSet
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run_file

Key = tuple[str, str]  #: a problem's sha256, and the sizes in force


def traits_of_runs(runs: Sequence[Path], known: Mapping[Key, Traits]) -> list[KnownTraits]:
    """Return for each run what its problems are compared by; `None` where its folder lacks one's file, or that fails.

    What is in `known` is not asked again: without it all, no process is started.
    """
    kept: list[tuple[str, dict[str, Problem]]] = []
    for run in runs:
        config = read_run_file(RunPaths(run)).config
        kept.append((config.sizes, kept_problems(RunPaths(run), config, config.problems)))
    asked = {(one.sha256, sizes): one for sizes, problems in kept for one in problems.values()}
    found: dict[Key, Traits | None] = dict(known)
    missing = {key: problem for key, problem in asked.items() if key not in found}
    if missing:
        found |= asyncio.run(_ask(missing))
    return [
        {name: found.get((problem.sha256, sizes)) for name, problem in problems.items()} for sizes, problems in kept
    ]


async def _ask(missing: Mapping[Key, Problem]) -> dict[Key, Traits | None]:
    found: dict[Key, Traits | None] = dict.fromkeys(missing)
    for sizes in sorted({sizes for _, sizes in missing}):
        async with factory.local_evaluator(DeviceKind.CPU, EvaluationSettings(), SizeSet(sizes)) as evaluator:
            for key, problem in missing.items():
                if key[1] == sizes:
                    with suppress(HkbenchError):  # of this problem: its kernels cannot be found by facts
                        found[key] = traits(await evaluator.problem_facts(problem))
    return found


def traits_of_problem(path: Path, sizes: SizeSet) -> tuple[Problem, Traits]:
    """Return a problem file, and what it is compared by.

    Raises:
        InputMissing: the file is not there, or cannot be used.
    """
    problem = load_problem(path)

    async def ask() -> Traits:
        async with factory.local_evaluator(DeviceKind.CPU, EvaluationSettings(), sizes) as evaluator:
            return traits(await evaluator.problem_facts(problem))

    return problem, asyncio.run(ask())
