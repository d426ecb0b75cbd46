"""Where a problem stands, and rules on that: small conditions, all of which have to hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from hkbench.records import OperatorClass, ProblemFacts, Record, SizeSet, TensorFact, Track

STAGES = 3  #: of every category


class Situation(Record):
    """What a rule can look at. `None`: not known, and a condition on it does not hold."""

    stage: int = 0  #: stages finished; 0 after the seed
    stage_name: str | None = None  #: of the last one that was finished
    speedup: float | None = None  #: of the best kernel so far; `None`: none is correct yet, or nothing is measured
    correct: bool | None = False  #: whether a kernel is correct; `None`: it was compiled and not run, nobody knows
    gain: float | None = None  #: that speed-up over the one before the last finished stage
    roof: float | None = None  #: the best kernel's fraction of the roofline, 0..1
    kernel_size: int | None = None  #: the largest edge of a convolution's kernel
    intensity: float | None = None  #: FLOP/byte of the reference
    of_ridge: float | None = None  #: the intensity over the ridge point of the products' dtype
    steps: int | None = None  #: operators that eager PyTorch launches, about
    contains: frozenset[OperatorClass] | None = None  #: classes of operators in the reference
    dtypes: frozenset[str] | None = None  #: of the inputs and parameters, as torch names them
    track: Track | None = None


Points = Annotated[dict[str, Annotated[float, Field(gt=0.0, allow_inf_nan=False)]], Field(min_length=1)]


class Ridge(Record):
    """FLOP/byte from which arithmetic, not memory, is the limit; by dtype, for each set of sizes."""

    full: Points  #: of GPUs
    cpu: Points
    emulated: Points | None = None  #: `None`: those of the full sizes

    def point(self, sizes: SizeSet, dtype: str | None) -> float | None:
        """Return the ridge point of the dtype; `None` where none is known."""
        points = {SizeSet.CPU: self.cpu, SizeSet.EMULATED: self.emulated}.get(sizes) or self.full
        return None if dtype is None else points.get(dtype)


def situation(
    facts: ProblemFacts,
    ridge: Ridge,
    *,
    stage: int = 0,
    stage_name: str | None = None,
    speedup: float | None = None,
    correct: bool | None = False,
    gain: float | None = None,
    roof: float | None = None,
    track: Track | None = None,
) -> Situation:
    """Return what a problem's reference contains, and what came of it so far."""
    graph = facts.graph
    tensors = (fact for fact in (*facts.inputs, *facts.parameters) if isinstance(fact, TensorFact))
    point = None if graph is None else ridge.point(facts.sizes, graph.product_dtype)
    intensity = None if graph is None else graph.intensity
    return Situation(
        stage=stage,
        stage_name=stage_name,
        speedup=speedup,
        correct=correct,
        gain=gain,
        roof=roof,
        kernel_size=None if graph is None else graph.kernel_size,
        intensity=intensity,
        of_ridge=None if point is None or intensity is None else intensity / point,
        steps=None if graph is None else graph.steps,
        contains=None if graph is None else frozenset(graph.classes),
        dtypes=frozenset(fact.dtype for fact in tensors),
        track=track,
    )


def _listed(value: object) -> object:
    """Return a tuple; `"conv"` is short for `["conv"]`."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Classes = Annotated[tuple[OperatorClass, ...], BeforeValidator(_listed), Field(min_length=1)]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed), Field(min_length=1)]
Stage = Annotated[int, Field(ge=0, le=STAGES)]
Count = Annotated[int, Field(ge=0)]
Ratio = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Condition(Record):
    """Bounds on the fields of `Situation`; what is not named does not matter."""

    stage: Stage | None = None  #: so many stages are finished
    stage_at_least: Stage | None = None
    stage_name: str | None = None  #: the last finished stage
    correct: bool | None = None  #: whether there is a correct kernel
    speedup_below: Ratio | None = None
    speedup_at_least: Ratio | None = None
    gain_below: Ratio | None = None
    gain_at_least: Ratio | None = None
    roof_below: Fraction | None = None
    roof_at_least: Fraction | None = None
    kernel_size_at_most: Count | None = None
    kernel_size_at_least: Count | None = None
    intensity_below: Ratio | None = None
    intensity_at_least: Ratio | None = None
    of_ridge_below: Ratio | None = None
    of_ridge_at_least: Ratio | None = None
    steps_at_most: Count | None = None
    steps_at_least: Count | None = None
    contains: Classes | None = None  #: all of these classes of operators
    contains_any: Classes | None = None  #: at least one of them
    lacks: Classes | None = None  #: none of them
    dtype: Names | None = None  #: at least one of these dtypes
    track: Track | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise PydanticCustomError("empty_condition", "an empty condition would always hold; name what has to hold")
        return self

    def holds(self, at: Situation) -> bool:
        """Return whether all of it holds; what is not known does not."""
        return all(self._each(at))

    def _each(self, at: Situation) -> Iterable[bool]:
        yield self.stage is None or at.stage == self.stage
        yield self.stage_at_least is None or at.stage >= self.stage_at_least
        yield self.stage_name is None or at.stage_name == self.stage_name
        yield self.correct is None or at.correct is self.correct
        yield _within(at.speedup, self.speedup_at_least, self.speedup_below)
        yield _within(at.gain, self.gain_at_least, self.gain_below)
        yield _within(at.roof, self.roof_at_least, self.roof_below)
        yield _within(at.intensity, self.intensity_at_least, self.intensity_below)
        yield _within(at.of_ridge, self.of_ridge_at_least, self.of_ridge_below)
        yield _within(at.kernel_size, self.kernel_size_at_least, _above(self.kernel_size_at_most))
        yield _within(at.steps, self.steps_at_least, _above(self.steps_at_most))
        yield self.contains is None or (at.contains is not None and at.contains.issuperset(self.contains))
        yield self.contains_any is None or (at.contains is not None and not at.contains.isdisjoint(self.contains_any))
        yield self.lacks is None or (at.contains is not None and at.contains.isdisjoint(self.lacks))
        yield self.dtype is None or (at.dtypes is not None and not at.dtypes.isdisjoint(self.dtype))
        yield self.track is None or at.track is self.track


class Rule(Record):
    """What holds, and why that is a reason to skip a stage or to end a problem; `why` goes into the journal."""

    when: Condition
    why: Annotated[str, Field(min_length=1)]


def first(rules: Iterable[Rule], at: Situation) -> Rule | None:
    """Return the first rule that holds."""
    return next((rule for rule in rules if rule.when.holds(at)), None)


def _within(value: float | None, least: float | None, below: float | None) -> bool:
    if least is None and below is None:
        return True
    return value is not None and (least is None or value >= least) and (below is None or value < below)


def _above(count: int | None) -> int | None:
    """Return the bound that whole numbers up to `count` are below."""
    return None if count is None else count + 1
