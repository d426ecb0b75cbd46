"""The correctness reasoner: why answers are wrong. It may change launch parameters, or the kernel by a diff."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from hkbench.experience.fingerprint import fingerprint
from hkbench.llm.diff import DiffError, apply_diff
from hkbench.moves.launch_values import with_values
from hkbench.prompts import AgentHint, HintTopic
from hkbench.records import Advice, BackendName, Failure, QuestionKind, Record, Said

QUESTION = QuestionKind.MEND_ANSWERS
ORIGIN = "correctness reasoner"
_VALUE = re.compile(r"\s*([A-Za-z_]\w*)\s*[=:]\s*(\d{1,6})\s*")
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_SHARES = ((0.99, "all"), (0.5, "most"), (0.01, "some"), (0.0, "few"))


class Trial(Record):
    """A change that was tried, and what became of it."""

    change: str
    outcome: str


class CorrectnessTask(Record):
    """What it is given, beside the kernel and its verdict."""

    version: Literal[1] = 1
    constants: dict[str, int]  #: of the kernel, that may be changed by name
    tried: tuple[Trial, ...] = ()  #: on this kernel
    left: int  #: changes that may still be tried before the kernel is given up


def _text(value: object) -> object:
    """Write an object of names and values as the text that is asked for."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    return "" if value is None else value


Loose = Annotated[str, BeforeValidator(_text)]


class CorrectnessAdvice(Advice):
    """What it answers. Launch parameters come before a diff, a diff before the hint."""

    diagnosis: Said = Field(description="what makes the answers wrong, by the line or expression that does it")
    constants: Loose = Field("", description="constants to change, as NAME=VALUE, NAME=VALUE; empty: none")
    diff: Loose = Field("", description="a unified diff of the file with the smallest fix; empty: none")
    hint: Loose = Field("", description="what the next version has to do otherwise, where neither is enough")


class Change(Record):
    """Code that the reasoner proposes."""

    by: str  #: what made it, as "constants BLOCK=64"
    by_constants: bool
    source: str


def change(advice: CorrectnessAdvice, source: str, backend: BackendName) -> tuple[Change | None, str | None]:
    """Return the code that an answer leads to; else, where it proposed some, why there is none."""
    if advice.constants.strip():
        values = _values(advice.constants)
        written = with_values(source, backend, values) if values else None
        if written is not None:
            said = ", ".join(f"{name}={value}" for name, value in values.items())
            return Change(by=f"constants {said}", by_constants=True, source=written), None
        refused = f"it proposed {advice.constants.strip()!r}, which changes no constant of the kernel"
    else:
        refused = None
    if advice.diff.strip():
        fenced = _FENCE.match(advice.diff)
        try:
            patched = apply_diff(fenced[1] if fenced is not None else advice.diff, source)
        except DiffError as error:
            return None, f"its diff does not apply: {error}"
        if patched != source:
            return Change(by="patch", by_constants=False, source=patched), None
        return None, "its diff changes nothing"
    return None, refused


def hint(advice: Advice | None, text: str, tried: Sequence[Trial], refused: str | None = None) -> AgentHint | None:
    """Return the hint for the next kernel: what is wrong, and what was tried in vain."""
    lines = [text.strip()]
    if isinstance(advice, CorrectnessAdvice):
        lines = [advice.diagnosis, advice.hint.strip(), f"Note: {refused}." if refused is not None else ""]
    lines += [f"Tried in vain: {one.change}: {one.outcome}" for one in tried]
    said = "\n".join(filter(None, lines))
    return AgentHint(topic=HintTopic.CORRECTNESS, text=said, origin=ORIGIN) if said else None


def signature(failure: Failure) -> str:
    """Return by what two failures count as the same: the fingerprint, and how many of the elements are wrong."""
    found = failure.mismatch
    if found is None:
        return fingerprint(failure).digest
    share = found.wrong_elements / max(found.elements, 1)
    return f"{fingerprint(failure).digest}/{next(name for least, name in _SHARES if share >= least)}"


def _values(text: str) -> dict[str, int]:
    """Read "BLOCK=64, num_warps=8"; empty where a part is something else."""
    parts = [_VALUE.fullmatch(part) for part in re.split(r"[,;\n]", text) if part.strip()]
    return {} if None in parts else {part[1]: int(part[2]) for part in parts if part is not None}
