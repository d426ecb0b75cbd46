"""Simulated agents for benchmarks/experience.py: pure Python, seeded; nothing is built, and no model is asked.

What is simulated is how kernels go wrong and how a model answers; every number of that is a constant below. What is
not: failures are records that are fingerprinted, remedies are taken from codes by what reads run folders, kept in a
database, and asked for as a lab does, with the problem at hand held out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from hkbench.experience.fingerprint import fingerprint
from hkbench.experience.mending import remedies
from hkbench.experience.rows import ErrorRow, ProblemRow, RemedyRow, RunRow, RunRows
from hkbench.experience.told import Told, ToldProblem
from hkbench.lab.experience import Memory, Recaller
from hkbench.records import (
    Conditions,
    DeviceKind,
    Failure,
    FailureKind,
    Hint,
    HintKind,
    Isolation,
    IsolationLevel,
    Pitfall,
    Problem,
    Remedy,
    SampleKey,
    Stage,
    Status,
    Trial,
    Verdict,
)

BACKEND = "hipkittens"
KINDS = 60  #: mistakes that the language invites
SILENT = 0.3  #: share of mistakes that show as wrong values, without a word; a choice
BREAKS = 0.1  #: a rewrite brings a new mistake
FOLLOWS = 0.8  #: a remedy that is shown is followed, the first one most often
HEEDS = 0.5  #: a mistake is not made of which the prompt says that others made it, and what mended it; a choice
MOST = 40  #: evaluations after which a problem is given up


@dataclass(frozen=True)
class Agent:
    """How a model writes kernels."""

    name: str
    flawless: float  #: first kernels without a mistake
    more: float  #: chance of one more mistake in a first kernel, each time
    alone: float  #: a mistake is mended without help


#: Less than 20 % of first kernels match PyTorch (KernelBench); after a failure 41 % fail (GLM-5.2 on MI350X).
USUAL = Agent("usual", 0.18, 0.1, 0.72)
#: Of a language that no model knows: 11 % of first drafts are correct (EvoKernel's NPU); the rest is a choice.
NEW_LANGUAGE = Agent("of a new language", 0.11, 0.5, 0.45)


@dataclass(frozen=True)
class Mistake:
    """A mistake that a language invites: what the compiler says of it, and the line that is wrong."""

    number: int
    silent: bool

    @property
    def line(self) -> str:
        return f"    kittens::bad_{self.number}(tile);"

    @property
    def mended(self) -> str:
        return f"    kittens::good_{self.number}(tile);"

    def failure(self, rng: random.Random) -> Failure:
        """Return it as a tool reports it: paths and lines are never the same."""
        if self.silent:
            message = f"{rng.randrange(9999)} of 16384 elements are wrong"
            return Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message=message)
        place = f"/tmp/hkb_{rng.randrange(10**6):06}/main.hip:{rng.randrange(400)}:{rng.randrange(80)}"
        message = f"{place}: error: no member named 'bad_{self.number}' in namespace 'kittens'"
        return Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message)

    def is_mended_by(self, remedy: Remedy) -> bool:
        return self.mended.strip() in remedy.text


def mistakes(seed: int, silent: float = SILENT) -> list[Mistake]:
    """Return what the language invites, the commonest first."""
    rng = random.Random(f"{seed}/mistakes")
    return [Mistake(number, rng.random() < silent) for number in range(KINDS)]


def drawn(known: Sequence[Mistake], rng: random.Random) -> Mistake:
    """Draw a mistake: the nth is made 1/n as often as the first."""
    return rng.choices(known, [1 / (place + 1) for place in range(len(known))])[0]


@dataclass
class Outcome:
    """What became of one problem."""

    evaluations: int
    failures_after: int  #: failures that follow a failure
    solved: bool
    told: ToldProblem


@dataclass
class Silent:
    """In place of a run folder's writer."""

    events: list[object] = field(default_factory=list)

    def event(self, event: object) -> None:
        self.events.append(event)


def work(
    agent: Agent,
    name: str,
    known: Sequence[Mistake],
    rng: random.Random,
    memory: Memory | None,
    run: str = "run",
    heeds: float = HEEDS,
) -> Outcome:
    """Let an agent write a kernel until it is correct; `memory`: what it is told by, with each failure."""
    problem = simulated_problem(name)
    recaller = Recaller(memory, problem, BACKEND, cast(Any, Silent()), {}) if memory is not None else None
    warned = recaller.pitfalls() if recaller is not None and heeds else ()
    made = [] if rng.random() < agent.flawless else [drawn(known, rng)]
    while made and rng.random() < agent.more:
        made.append(drawn(known, rng))
    wary = random.Random(f"{name}/{rng.getstate()[1][:8]}")  # what is drawn here changes no draw of the other arms
    made = [one for one in made if not is_avoided(one, warned, heeds, wary)]
    samples: dict[SampleKey, Told] = {}
    hints: dict[int, tuple[Hint, ...]] = {}
    parent: SampleKey | None = None
    noise = random.Random(f"{rng.random()}")
    for attempt in range(1, MOST + 1):
        key = SampleKey(problem=name, attempt=attempt, sample=1)
        failure = made[0].failure(noise) if made else None
        mark = fingerprint(failure) if failure is not None else None
        samples[key] = Told(key, verdict_of(name, failure), code_of(name, made), mark, parent)
        if failure is None:
            return Outcome(attempt, max(0, attempt - 2), True, ToldProblem(run, name, samples, hints))
        shown: Sequence[Remedy] = recaller.to_show(failure, key) if recaller is not None else ()
        hints[attempt + 1] = tuple(Hint(kind=HintKind.REMEDY, text=one.text) for one in shown)
        if mends(agent, made[0], shown, rng):
            made = made[1:]
        if rng.random() < BREAKS:
            another = drawn(known, rng)
            made += [] if is_avoided(another, warned, heeds, wary) else [another]
        parent = key
    return Outcome(MOST, MOST - 1, False, ToldProblem(run, name, samples, hints))


def is_avoided(mistake: Mistake, warned: Sequence[Pitfall], heeds: float, rng: random.Random) -> bool:
    """Tell whether a mistake is not made: the prompt tells of it, and of what is right."""
    return any(mistake.is_mended_by(one.remedy) for one in warned) and rng.random() < heeds


def mends(agent: Agent, mistake: Mistake, shown: Sequence[Remedy], rng: random.Random) -> bool:
    """Tell whether the next kernel is without the mistake: a remedy that is followed decides, a false one too."""
    if shown and rng.random() < FOLLOWS:
        followed = rng.choices(shown, [1 / (place + 1) for place in range(len(shown))])[0]
        return mistake.is_mended_by(followed)
    return rng.random() < agent.alone


def code_of(name: str, made: Sequence[Mistake]) -> str:
    """Return a kernel with these mistakes; it has the right line where it has not the wrong one."""
    wrong = {mistake.number for mistake in made}
    lines = [Mistake(n, False).line if n in wrong else Mistake(n, False).mended for n in range(KINDS)]
    return "\n".join([f"// {name}", *lines])


def verdict_of(name: str, failure: Failure | None) -> Verdict:
    isolation = Isolation(level=IsolationLevel.LIMITS, layers=(), holds=())
    conditions = Conditions(
        backend=BACKEND,
        device=DeviceKind.ROCM,
        device_name="simulated",
        candidate_sha256=None,
        problem_sha256="0" * 64,
        isolation=isolation,
    )
    if failure is not None:
        return Verdict(problem=name, status=Status.INCORRECT, failure=failure, conditions=conditions)
    return Verdict(problem=name, status=Status.EMULATED, trials=(Trial(seed=1, passed=True),), conditions=conditions)


def simulated_problem(name: str) -> Problem:
    digest = sha256(name.encode()).hexdigest()
    return Problem(number=1, name=name, level=1, path=Path(name), source=name, sha256=digest)


def rows_of(
    name: str, told: Sequence[ToldProblem], falsify: Callable[[RemedyRow], RemedyRow] = lambda row: row
) -> RunRows:
    """Return the rows of a run; `falsify` may change what is kept of remedies."""
    run = RunRow(
        id=name, digest=name, name=name, started="2026-01-01", hkbench="0", strategy="reflect",
        model="simulated", judge_model=None, backend=BACKEND, device="rocm", device_name="simulated", arch="gfx942",
        track="own", rules="hkbench", sizes="full", warm=0, calls=0, tokens=0, cost=None, currency=None,
    )  # fmt: skip
    facts = [facts_row(name, one.name) for one in told]
    tried = [falsify(row) for one in told for row in remedies(one, BACKEND)]
    samples = (sample for one in told for sample in one.samples.values())
    marks = {sample.mark.digest: sample.mark for sample in samples if sample.mark is not None}
    errors = [ErrorRow(name, mark.digest, "build_error", "build", mark.symbol, mark.text) for mark in marks.values()]
    return RunRows(run, (*facts, *errors, *tried))


def facts_row(run: str, name: str) -> ProblemRow:
    problem = simulated_problem(name)
    return ProblemRow(run, name, problem.sha256, problem.sha256[:16], '{"matmul": 1}', "float32", 1)
