"""What crosses between the controller and the card of a node: validated records, as JSON, and a candidate's bytes.

Contents go in place of paths: neither side's folders mean anything to the other one.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from hkbench.errors import WorkerLost
from hkbench.records import (
    BackendName,
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
    Isolation,
    Problem,
    ProblemFacts,
    Record,
    SizeSet,
    SlotTimes,
    Stage,
    Verdict,
)
from hkbench.records.base import FolderName


class CardOrder(Record):
    """How a card evaluates. `keeps_profile`: what profilers wrote comes back with the verdict."""

    kind: DeviceKind | None
    settings: EvaluationSettings
    sizes: SizeSet | None
    builds: int
    keeps_profile: bool = False


class Work(Record):
    """One candidate to be evaluated; its bytes come beside this."""

    problem: Problem
    backend: BackendName
    file_name: FolderName  #: of the candidate, as messages name it
    profile: bool = True  #: as the settings say; else not at all


class Ready(Record):
    """The evaluator of a card has opened it."""

    said: Literal["ready"] = "ready"
    devices: tuple[DeviceFacts, ...]
    isolation: Isolation
    sizes: SizeSet


class Entered(Record):
    """A stage has begun; `lent`: the card is lent for it."""

    said: Literal["entered"] = "entered"
    stage: Stage
    lent: bool


class Judged(Record):
    """The verdict, and the files that are kept beside it: by the name of their folder, then by their own."""

    said: Literal["judged"] = "judged"
    verdict: Verdict
    turns: SlotTimes | None
    assembly: str | None = None
    kept: dict[FolderName, dict[FolderName, str]] = {}


class Answered(Record):
    """What was asked for is done, and says nothing."""

    said: Literal["answered"] = "answered"


class FactsFound(Record):
    said: Literal["facts_found"] = "facts_found"
    facts: ProblemFacts


class Failed(Record):
    """The work failed; `error` is the name of a class of hkbench/errors.py."""

    said: Literal["failed"] = "failed"
    error: str
    message: str


Message = Annotated[Ready | Entered | Judged | Answered | FactsFound | Failed, Field(discriminator="said")]
_MESSAGES: TypeAdapter[Ready | Entered | Judged | Answered | FactsFound | Failed] = TypeAdapter(Message)


def written(message: Record) -> bytes:
    """Return a message as it crosses."""
    return message.model_dump_json().encode(errors="backslashreplace")


def read(data: bytes) -> Ready | Entered | Judged | Answered | FactsFound | Failed:
    """Return the message that came.

    Raises:
        WorkerLost: it is none.
    """
    try:
        return _MESSAGES.validate_json(data)
    except ValidationError as error:
        raise WorkerLost(f"a card sent what is no message of this hkbench: {error.errors()[0]['msg']}") from error
