#!/usr/bin/env python3
"""What an experience is worth to simulated agents, and what it costs at 100,000 samples.

    python benchmarks/experience.py agents
    python benchmarks/experience.py scale

agents: each of PROBLEMS problems is left out in turn, and worked on with what the runs of the others left: warm beside
cold, with a tenth of the entries false, and with all of them false. benchmarks/experience_agents.py says what is
simulated. scale: a file of 100,000 samples: its size, the times of look-ups, eight writers at once, and writers that
are killed. It takes one core, but for the writers.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import experience_agents as agents
from benchmarks.experience_scale import scale
from hkbench.experience.ask import Experience
from hkbench.experience.database import Database
from hkbench.experience.rows import RemedyRow
from hkbench.lab.experience import Memory
from hkbench.stats import bootstrap_interval

PROBLEMS = 40
SEEDS = 25  #: agents a problem
RUNS = 5  #: earlier ones of each problem
WITHIN = 11  #: evaluations of a judge loop: a seed and ten rounds
NAMES = tuple(f"{number}_P" for number in range(1, PROBLEMS + 1))


@dataclass(frozen=True)
class Arm:
    """What agents came to: by problem, means over its agents."""

    name: str
    evaluations: tuple[float, ...]
    failures_after: tuple[float, ...]
    within: float  #: share of agents that had a correct kernel within `WITHIN` evaluations


def arm(
    name: str,
    agent: agents.Agent,
    known: Sequence[agents.Mistake],
    memory: Callable[[str], Memory | None],
    seeds: int,
    heeds: float = agents.HEEDS,
) -> Arm:
    """Let `seeds` agents work on each problem; all arms have the same first kernels."""
    evaluations, failures, within = [], [], 0
    for problem in NAMES:
        asked = memory(problem)
        draws = (random.Random(f"{problem}/{seed}") for seed in range(seeds))
        found = [agents.work(agent, problem, known, draw, asked, heeds=heeds) for draw in draws]
        evaluations.append(statistics.fmean(one.evaluations for one in found))
        failures.append(statistics.fmean(one.failures_after for one in found))
        within += sum(one.solved and one.evaluations <= WITHIN for one in found)
        close(asked)
    return Arm(name, tuple(evaluations), tuple(failures), within / (seeds * len(NAMES)))


def close(memory: Memory | None) -> None:
    if isinstance(memory, Experience):
        memory.close()


def asked_of(path: Path) -> Callable[[str], Memory | None]:
    """Return what opens the file for a problem, that problem held out."""
    return lambda problem: Experience(path, f"^{problem}$")


def fill(path: Path, agent: agents.Agent, known: Sequence[agents.Mistake], runs: int, false_share: float) -> Path:
    """Put cold runs of all problems into a file; a share of what is kept of remedies is false, with its record."""
    rng = random.Random(f"false/{false_share}")
    wrong = replace(known[0], number=999).mended.strip()

    def falsify(row: RemedyRow) -> RemedyRow:
        return row._replace(text=f"`{row.symbol}` became `{wrong}`") if rng.random() < false_share else row

    with Database(path, create=True) as database:
        for number in range(runs):
            run = f"cold {number}"
            told = [
                agents.work(agent, problem, known, random.Random(f"{run} {problem}"), None, run).told
                for problem in NAMES
            ]
            database.add(agents.rows_of(run, told, falsify))
    return path


def learn(path: Path, agent: agents.Agent, known: Sequence[agents.Mistake]) -> Path:
    """Add a run of each problem that was told what the file holds: what was shown gets its record."""
    told, run = [], "told"
    for problem in NAMES:
        asked = Experience(path, f"^{problem}$")
        told.append(agents.work(agent, problem, known, random.Random(f"{run} {problem}"), asked, run).told)
        asked.close()
    with Database(path) as database:
        database.add(agents.rows_of(run, told))
    return path


def arms(
    folder: Path, agent: agents.Agent, seeds: int, *, world: int = 0, silent: float = agents.SILENT, runs: int = RUNS
) -> list[Arm]:
    """Return what cold and warm agents come to, the problem that they work on held out.

    `world`: which mistakes there are; `silent`: the share of them that show as wrong values; `runs`: earlier ones of
    each problem.
    """
    known = agents.mistakes(world, silent)
    found = [arm("cold", agent, known, lambda _: None, seeds)]
    for name, share in (("warm", 0.0), ("warm, 10 % false", 0.1), ("warm, all false", 1.0)):
        path = fill(folder / f"{agent.name}-{world}-{silent}-{runs}-{share}.db", agent, known, runs, share)
        found.append(arm(name, agent, known, asked_of(path), seeds))
        if share == 0.0:
            found.append(arm("warm, pitfalls not heeded", agent, known, asked_of(path), seeds, heeds=0.0))
    found.append(arm("warm, all false, then told once", agent, known, asked_of(learn(path, agent, known)), seeds))
    return found


def tables(folder: Path, seeds: int) -> Iterator[str]:
    """Yield a table for each agent, then what the result depends on."""
    for agent in (agents.USUAL, agents.NEW_LANGUAGE):
        yield f"Agents {agent.name}:"
        yield from table(arms(folder, agent, seeds))
    yield "| agents | silent mistakes | earlier runs | warm | 10 % false | fail after a failure |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for agent in (agents.USUAL, agents.NEW_LANGUAGE):
        for silent, runs in ((0.0, 5), (0.0, 20), (0.3, 1), (0.3, 20)):
            cold, warm, _, false, *_ = arms(folder, agent, max(1, seeds // 3), world=1, silent=silent, runs=runs)
            changes = " | ".join(f"{_change(one, cold):+.0%}" for one in (warm, false))
            yield f"| {agent.name} | {silent:.0%} | {runs} | {changes} | {_rate(cold):.0%} to {_rate(warm):.0%} |"


def _change(one: Arm, cold: Arm) -> float:
    return statistics.fmean(one.evaluations) / statistics.fmean(cold.evaluations) - 1


def _rate(one: Arm) -> float:
    """Return the share of evaluations after a failure that fail."""
    return sum(one.failures_after) / sum(number - 1 for number in one.evaluations)


def mean(values: Sequence[float]) -> str:
    found = bootstrap_interval(values, lambda drawn: float(drawn.mean()), seed=0)
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def table(found: Sequence[Arm]) -> Iterator[str]:
    """Yield the rows; intervals are over problems."""
    cold = found[0]
    columns = ("agents", "evaluations to a correct kernel", "change", "fail after a failure", f"within {WITHIN}")
    yield f"| {' | '.join(columns)} |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for one in found:
        yield (
            f"| {one.name} | {mean(one.evaluations)} | {_change(one, cold):+.0%} | {_rate(one):.0%} | "
            f"{one.within:.1%} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["agents", "scale"])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--samples", type=int, default=100_000)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        if options.what == "agents":
            lines = tables(Path(folder), options.seeds)
        else:
            lines = scale(Path(folder), options.samples)
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
