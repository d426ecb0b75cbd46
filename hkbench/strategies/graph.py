"""Graph search: from one kernel on, edits by rules and by a model, chosen by what the edits so far brought."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from hkbench.categories import Advice, StageGuide
from hkbench.errors import UsageError
from hkbench.lab import Ask, Attempt, Flight, Lab, Proposal, Sample, best_of
from hkbench.moves import MOVES, KernelSpace, Priors, key_of
from hkbench.records import CONFIRM, Flag, Layout, MoveGain, MoveGains, RegisterUse, Verdict, bottleneck_of
from hkbench.search import DEFAULTS, GraphSearch, Kind, Outcome, Request, SearchMismatch
from hkbench.strategies.base import Attempts, Samples, Seeded, Strategy

START = "start"
_DIFF = "Answer with a unified diff against the kernel above, in a code block, or with the whole file."


class GraphOptions(Seeded):
    samples: Samples = 3
    """generations that the search starts from, where the problem has no START"""

    attempts: Attempts = 40
    """kernels that are judged, the start and confirmations among them"""

    moves: Annotated[Literal["rules", "model", "both"], Flag()] = "both"
    """who edits: rules (no model is asked), the model, or both"""

    in_flight: Annotated[int, Field(ge=1), Flag("N")] = 1
    """edits of a problem that are judged side by side: as many as there are devices"""

    whole_budget: bool = False
    """use every attempt, also when the last ones brought nothing"""

    min_pred_gain: Annotated[float, Field(ge=0.0, allow_inf_nan=False), Flag("X")] = 0.0
    """leave out edits whose predicted gain is below that: 0.02 is two per cent"""

    profile_every: Annotated[int, Field(ge=0), Flag("N")] = 1
    """profile the correct kernels of every Nth attempt, which tells what they wait for; 0: of none"""

    learn_from: Annotated[Path | None, Field(exclude=True), Flag("FILE")] = None
    """global_tactic_graph.json of an earlier run: what moves gained there weighs those of a model"""

    learnt: Annotated[tuple[MoveGain, ...], Flag(name="")] = ()

    @model_validator(mode="before")
    @classmethod
    def _read_gains(cls, told: dict[str, Any]) -> dict[str, Any]:
        path = told.get("learn_from")
        return told if path is None else {**told, "learnt": _gains(Path(path))}


def _gains(path: Path) -> tuple[MoveGain, ...]:
    try:
        return MoveGains.model_validate_json(path.read_bytes()).moves
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}): name the file that a finished search left"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "its form"
        raise ValueError(
            f"{path} is not what a search leaves as global_tactic_graph.json: {where}: {first['msg']}"
        ) from None


class Graph(Strategy[GraphOptions]):
    """Search for a faster kernel among the edits of one."""

    name = "graph"
    summary = "a search over edits of a kernel, by rules and by the model"
    Options = GraphOptions
    layout = Layout.TREE
    profiles_fast = keeps_assembly = True

    async def run(self, lab: Lab, options: GraphOptions) -> None:
        start = await self._start(lab, options)
        if start is None or start.candidate is None:
            lab.decide(1, "exit", "no start", "no kernel is correct, so that there is nothing to make faster")
            return
        search = _Search(lab, start, options)
        async with lab.flight() as flight:
            while await search.begin(flight):
                await search.take_next(flight)
        lab.decide(search.attempt, "exit", search.end(), f"{search.describe_best()}")

    async def _start(self, lab: Lab, options: GraphOptions) -> Sample | None:
        """Judge the kernel that the search starts from: the problem's own, else the best of some generations."""
        if lab.problem.start is not None:
            [[start]] = await lab.expand([Proposal(lab.problem.start, START)])
        elif options.moves == "rules":
            raise UsageError(
                f"{lab.problem.name} has no START, the kernel that a search by rules starts from: add one, or let a "
                "model write the first kernels (--moves both)"
            )
        else:
            prompt = await lab.prompt(1, None)
            start = best_of(await lab.evaluate(await lab.generate(prompt, 1, options.samples)))
        return start if start.sound else None

    def describe(self, attempt: Attempt) -> str | None:
        return attempt.rule or (attempt.stage or START).replace("-", "_")

    def ends_early(self, options: GraphOptions) -> bool:
        return not options.whole_budget

    def asks_model(self, options: GraphOptions) -> bool:
        return options.moves != "rules"

    def min_calls(self, options: GraphOptions) -> int:
        return options.samples * self.asks_model(options)

    def max_calls(self, options: GraphOptions) -> int:
        return (options.samples + options.attempts - 1) * self.asks_model(options)


class _Search:
    """A searcher over a space of kernels, whose requests are attempts of a lab."""

    def __init__(self, lab: Lab, start: Sample, options: GraphOptions) -> None:
        assert start.candidate is not None and start.verdict is not None
        self._lab = lab
        self._options = options
        by_rule, by_model = options.moves != "model", options.moves != "rules"
        priors = Priors((*options.learnt, *lab.known_moves()) if by_model else ())  # a rule's edits need none
        self._space = KernelSpace(start.candidate.source, lab.backend, by_rule, by_model, priors)
        self._space.waits_for(self._space.start, bottleneck_of(start.verdict))
        self._samples = {self._space.start: start}
        outcome = outcome_of(self._space.start, start.verdict)
        features = self._space.features(self._space.start)
        constants = replace(DEFAULTS, min_gain=math.log1p(options.min_pred_gain))
        self.searcher = GraphSearch(self._space, outcome, features=features, seed=options.seed, constants=constants)
        self.attempt = 1  #: the last that was begun
        self._requests: dict[int, Request] = {}  # by attempt, those in flight
        names = sorted({move.name for move in self._space.moves(self._space.start)})
        lab.decide(1, "space", f"{self._space.size:,} states by rule", ", ".join(names))

    @property
    def left(self) -> int:
        """The attempts that may still be begun."""
        return self._options.attempts - self.attempt

    @property
    def goes_on(self) -> bool:
        """Whether further attempts may be begun. A new best is confirmed first, whatever the last ones brought."""
        stop = self.searcher.stop and not self.searcher.confirming and not self._options.whole_budget
        return self.left > 0 and not stop

    async def begin(self, flight: Flight) -> bool:
        """Begin what the searcher asks for, until as much as may be is in flight; False when nothing is."""
        while len(self._requests) < self._options.in_flight and self.goes_on:
            request = self.searcher.propose()
            if request is None:
                break
            self.attempt = await flight.begin(self._made(request, self.attempt + 1))
            self._requests[self.attempt] = request
        return bool(self._requests)

    async def take_next(self, flight: Flight) -> None:
        """Tell the searcher of the next attempt that is judged."""
        attempt, samples = await flight.next_judged()
        self._tell(self._requests.pop(attempt), best_of(samples))
        self._lab.keep_search(json.dumps(self.searcher.to_json(), indent=1))

    def _made(self, request: Request, attempt: int) -> Ask | Proposal:
        """Return the attempt of a request: a rule's edit, a second measurement, or a question to the model."""
        profile = self._options.profile_every > 0 and (attempt - 1) % self._options.profile_every == 0
        parent = self._samples[request.parent]
        to = request.move.to
        if request.kind is Kind.CONFIRM:
            return Proposal(self._space.source(request.parent), CONFIRM, parent, again=True, profile=profile)
        if to is not None:
            return Proposal(self._space.source(to), self._said(request), parent, profile=profile)
        kind = MOVES[request.move.name]
        guidance = (Advice(text=kind.guidance[self._lab.backend]), Advice(text=_DIFF))
        stage = StageGuide(name=kind.name.replace("_", "-"), focus=kind.summary, guidance=guidance)
        return Ask(parent, self._lab.reflect_on(parent), stage=stage, profile=profile)

    def _said(self, request: Request) -> str:
        """Name a rule's edit by what it changes."""
        assert request.move.to is not None
        found = self._space.difference(request.move.to, request.parent)
        changes = ", ".join(f"{site.label}: {before} -> {now}" for site, before, now in found)
        return f"{request.move.name} ({changes})" if changes else request.move.name

    def _tell(self, request: Request, sample: Sample) -> None:
        assert sample.verdict is not None
        if request.move.to is not None:
            key = request.move.to
            if sample.candidate is None or key_of(sample.candidate.source) != key:
                raise SearchMismatch(
                    f"attempt {sample.key.attempt} of {sample.key.problem} was recorded with another kernel than the "
                    "search asks for now: hkbench's rules have changed since; begin another run (--new)"
                )
        elif sample.candidate is not None:
            key = self._space.add(sample.candidate.source)
        else:
            key = f"no code {request.number}"
        if key not in self._samples:
            self._samples[key] = sample
        self._space.waits_for(key, bottleneck_of(sample.verdict))
        self.searcher.tell(request, outcome_of(key, sample.verdict))

    def end(self) -> str:
        """Say why the search ends."""
        if self.left <= 0:
            return "all attempts are used"
        if self.searcher.stop:
            return "the last ones brought nothing"
        if self.searcher.pruned:
            return f"no edit promises a gain of {self._options.min_pred_gain:.1%}"
        return "every state is measured"

    def describe_best(self) -> str:
        """Say which kernel is the best, and how it came about."""
        best = self._samples[self.searcher.best.key].key
        measured = f"measured {self.searcher.best.measurements} times" if self.searcher.best.measurements > 1 else ""
        gain = self.searcher.best.reward
        return ", ".join(
            filter(None, [f"best: {best.attempt}.{best.sample}, x{math.exp(gain):.2f} of the start", measured])
        )


def outcome_of(key: str, verdict: Verdict) -> Outcome:
    """Return what a verdict says of a state, in units of the baseline's time.

    Where nothing is timed, the compiler's figures are the cost: registers, and a thousandfold what is spilt.
    """
    if verdict.failure is not None:
        return Outcome(key, None)
    if verdict.speedup is not None:
        gain = verdict.speedup
        low, high = (None, None) if gain.low is None or gain.high is None else (1.0 / gain.high, 1.0 / gain.low)
        return Outcome(key, 1.0 / gain.value, low, high)
    use = RegisterUse.of(verdict.resources)
    return Outcome(key, 1.0 + use.registers + 1000.0 * use.scratch_bytes + float(verdict.compiler_findings))
