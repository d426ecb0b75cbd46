"""What a model that reads a kernel is asked, and the forms of a judge's answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints

from hkbench.records.base import Record
from hkbench.records.generation import Role, SampleKey

Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class QuestionKind(StrEnum):
    """What a model that reads a kernel is asked to do."""

    REPAIR = "repair"  #: the judge, a kernel that is not correct
    OPTIMISE = "optimise"  #: and one that is
    MEND_BUILD = "mend_build"  #: the compile reasoner of strategy agents
    MEND_ANSWERS = "mend_answers"  #: its correctness reasoner
    MEET_TARGET = "meet_target"  #: its performance reasoner

    @property
    def role(self) -> Role:
        """Who is asked."""
        return _ROLES.get(self, Role.JUDGE)


_ROLES = {
    QuestionKind.MEND_BUILD: Role.COMPILE_REASONER,
    QuestionKind.MEND_ANSWERS: Role.CORRECTNESS_REASONER,
    QuestionKind.MEET_TARGET: Role.PERFORMANCE_REASONER,
}


class AnswerForm(StrEnum):
    """How an answer of the judge could be read."""

    JSON = "json"
    MENDED = "mended"  #: JSON with faults that left no doubt of what is meant
    UNUSABLE = "unusable"


class Advice(BaseModel):
    """An answer of a model that reads a kernel. What it says beyond the fields is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: ClassVar[int] = 1  #: of the form


class RepairAdvice(Advice):
    """Why a kernel is not correct."""

    critical_issue: Said = Field(description="the one fault to mend first, named precisely")
    why_it_matters: Said = Field(description="how it leads to what was observed")
    minimal_fix_hint: Said = Field(description="the smallest change that mends it")


class OptimisationAdvice(Advice):
    """What keeps a correct kernel from being faster."""

    bottleneck: Said = Field(description="what limits the kernel, with the metric that shows it")
    optimisation_method: Said = Field(
        validation_alias=AliasChoices("optimisation_method", "optimization_method"),
        description="the one change that pays most",
    )
    modification_plan: Said = Field(description="the steps of that change in this code")


FORMS: dict[QuestionKind, type[RepairAdvice] | type[OptimisationAdvice]] = {
    QuestionKind.REPAIR: RepairAdvice,
    QuestionKind.OPTIMISE: OptimisationAdvice,
}


class AdviceRead(Record):
    """What was read in an answer, beside the answer in the run folder."""

    kind: QuestionKind
    about: SampleKey
    metrics: tuple[str, ...] = ()  #: lines of the kernel's profile that the question showed
    form: AnswerForm
    note: str | None  #: what was wrong with it, or what was put right
    said: dict[str, str] | None  #: its fields; `None`: it cannot be used
    version: int = 1  #: of the form of the answer
    told: dict[str, Any] | None = None  #: what an agent was given to reason on; `None`: of a judge
