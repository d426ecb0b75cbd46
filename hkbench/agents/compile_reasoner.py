"""The compile reasoner: what of a kernel the compiler refuses, and what to write in its place."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hkbench.agents.research import Research
from hkbench.prompts import AgentHint, HintTopic
from hkbench.records import Advice, FailureKind, QuestionKind, Record, Said

QUESTION = QuestionKind.MEND_BUILD
ORIGIN = "compile reasoner"
#: Failures before a kernel runs.
BUILD_FAILURES = frozenset(
    {
        FailureKind.SYNTAX_ERROR,
        FailureKind.NO_MODEL_NEW,
        FailureKind.BUILD_ERROR,
        FailureKind.BUILD_TIMEOUT,
        FailureKind.LOAD_ERROR,
        FailureKind.FORBIDDEN,
    }
)


class CompileTask(Record):
    """What it is given, beside the kernel and what the tools said of it."""

    version: Literal[1] = 1
    seen: int  #: attempts so far that ended with this error
    research: Research | None = None  #: of an error that came again


class CompileAdvice(Advice):
    """What it answers."""

    cause: Said = Field(description="what the compiler refuses and why, by the line or the name that it is about")
    fix: Said = Field(description="what to write in its place, exactly")


def hint(advice: Advice | None, text: str) -> AgentHint | None:
    """Return the hint for the next kernel: the advice, else the answer as it stands, else none."""
    said = f"{advice.cause}\nFix: {advice.fix}" if isinstance(advice, CompileAdvice) else text.strip()
    return AgentHint(topic=HintTopic.COMPILE, text=said, origin=ORIGIN) if said else None
