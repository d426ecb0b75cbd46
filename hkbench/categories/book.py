"""Categories of problems, each with its stages; which one a problem belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from hkbench.categories.rules import STAGES, Condition, Ridge, Rule, Situation, situation
from hkbench.device_kinds import model_of
from hkbench.records import BackendName, DeviceKind, GraphFacts, OperatorClass, Problem, ProblemFacts, Record
from hkbench.registry import KnownBackend

GENERIC = "generic"
MAX_METRICS = 3
#: An intensity this near to the ridge point may be on its other side on another device.
NEAR = 2.0

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise PydanticCustomError("pattern", "no regular expression: {error}", {"error": str(error)}) from error
    return text


def _metrics(found: dict[DeviceKind, tuple[str, ...]]) -> dict[DeviceKind, tuple[str, ...]]:
    for kind, names in found.items():
        for name in names:
            if name not in model_of(kind).metrics:
                known = {"name": name, "kind": kind.value, "known": ", ".join(model_of(kind).metrics)}
                raise PydanticCustomError("metric", "no profiler gives {name!r} on {kind}; known: {known}", known)
    return found


Patterns = tuple[Annotated[str, AfterValidator(_pattern)], ...]
Metrics = Annotated[
    dict[DeviceKind, Annotated[tuple[str, ...], Field(min_length=1, max_length=MAX_METRICS)]], AfterValidator(_metrics)
]


class Advice(Record):
    """A line of guidance for some backends or devices: what another one has no instruction for is left unsaid."""

    text: Text
    backends: Annotated[tuple[KnownBackend, ...], Field(min_length=1)] | None = None  #: `None`: for all
    devices: Annotated[tuple[DeviceKind, ...], Field(min_length=1)] = DeviceKind.known()

    def concerns(self, backend: BackendName, device: DeviceKind) -> bool:
        """Tell whether the line is for kernels of this backend on this kind of device."""
        runs = model_of(device).runs_what_is_for
        return (self.backends is None or backend in self.backends) and any(map(runs, self.devices))


class StageGuide(Record):
    """One stage: what it is about, what the prompt says, which metrics it shows, and when it is left out."""

    name: Name
    focus: Text
    guidance: Annotated[tuple[Advice, ...], Field(min_length=1)]
    metrics: Metrics = Field(default_factory=dict)
    skip: tuple[Rule, ...] = ()

    def guidance_for(self, backend: BackendName, device: DeviceKind) -> tuple[str, ...]:
        """Return the lines of guidance for kernels of a backend on a kind of device, in the order of the file."""
        return tuple(line.text for line in self.guidance if line.concerns(backend, device))


class Match(Record):
    """Which problems belong to a category: the traced pass decides, a name only where that says nothing."""

    graph: tuple[Condition, ...] = ()  #: any of them
    names: Patterns = ()  #: any of them, found in the problem's name
    levels: tuple[int, ...] | None = None  #: names count for problems of these levels only

    def by_graph(self, at: Situation) -> bool:
        return any(condition.holds(at) for condition in self.graph)

    def by_name(self, problem: Problem) -> str | None:
        """Return the pattern that is found in the name."""
        if self.levels is not None and problem.level not in self.levels:
            return None
        return next((pattern for pattern in self.names if re.search(pattern, problem.name)), None)


class Category(Record):
    """A kind of problem and its stages, in order."""

    name: Name
    title: Text
    match: Match = Match()
    stages: Annotated[tuple[StageGuide, ...], Field(min_length=STAGES, max_length=STAGES)]
    exit: tuple[Rule, ...] = ()  #: those of every category too, after its own


class Classification(Record):
    """What a problem is taken for, and on what ground."""

    category: str
    by: Literal["graph", "name", "generic"]
    why: str
    doubtful: str | None = None  #: why another category might be right


class CategoryBook(Record):
    """A checked categories file."""

    ridge: Ridge
    categories: tuple[Category, ...]  #: in the order in which they are tried
    sha256: str

    @cached_property
    def _by_name(self) -> dict[str, Category]:
        return {category.name: category for category in self.categories}

    def category(self, name: str) -> Category:
        """Return the category of that name; the generic one for a name that the book does not have."""
        return self._by_name.get(name, self._by_name[GENERIC])

    def classify(self, problem: Problem, facts: ProblemFacts) -> Classification:
        """Return the first category whose graph conditions hold, else the first matching name, else the generic one."""
        at = situation(facts, self.ridge)
        named = next(((c.name, p) for c in self.categories if (p := c.match.by_name(problem)) is not None), None)
        found = next((c.name for c in self.categories if c.match.by_graph(at)), None)
        if found is not None and facts.graph is not None:
            doubts = [*_doubts(facts.graph, at)]
            if named is not None and named[0] != found:
                doubts.append(f"its name says {named[0]}")
            return Classification(
                category=found, by="graph", why=_described(facts.graph, at), doubtful="; ".join(doubts) or None
            )
        untraced = "the reference could not be traced" if facts.graph is None else "no condition on the graph holds"
        if named is not None:
            why = f"the name matches {named[1]!r}"
            return Classification(category=named[0], by="name", why=why, doubtful=f"{untraced}: by the name alone")
        why = f"{untraced}, and no pattern matches the name"
        return Classification(category=GENERIC, by="generic", why=why, doubtful=None)


def _described(graph: GraphFacts, at: Situation) -> str:
    counts = ", ".join(name if calls == 1 else f"{calls} {name}" for name, calls in graph.classes.items())
    text = counts or "nothing that computes"
    if at.intensity is not None:
        text += f"; {at.intensity:.3g} FLOP/byte"
    if at.of_ridge is not None:
        text += f", {at.of_ridge:.2g}x the ridge point of {graph.product_dtype}"
    return text


def _doubts(graph: GraphFacts, at: Situation) -> Iterator[str]:
    if at.of_ridge is not None and 1 / NEAR < at.of_ridge < NEAR:
        yield f"its intensity is {at.of_ridge:.2g}x the ridge point, which differs from device to device"
    if graph.product_flops and at.of_ridge is None:
        yield f"the ridge point of {graph.product_dtype} is not known"
    if calls := graph.classes.get(OperatorClass.OTHER):
        yield f"{calls} operator{' is' if calls == 1 else 's are'} of no known class"
