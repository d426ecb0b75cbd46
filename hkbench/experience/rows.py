"""What is kept of a run: rows of the database, by table. Each class has the columns of its table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

LENGTH = 16  #: characters of a digest


class RunRow(NamedTuple):
    id: str  #: the same for all copies of a run, and as it grows
    digest: str  #: of all rows of the run
    name: str  #: of its folder
    started: str
    hkbench: str
    strategy: str
    model: str
    judge_model: str | None
    backend: str
    device: str
    device_name: str
    arch: str | None
    track: str
    rules: str
    sizes: str
    warm: int  #: it was made with an experience
    calls: int
    tokens: int
    cost: float | None
    currency: str | None


class ProblemRow(NamedTuple):
    run: str
    name: str
    sha256: str
    facts: str | None  #: digest of what its own code says; `None`: that is not known
    classes: str  #: of its operators, as JSON
    dtype: str | None
    elements: int | None


class SampleRow(NamedTuple):
    run: str
    problem: str
    attempt: int
    sample: int
    model: str | None  #: that answered; `None`: none was asked
    status: str
    kind: str | None
    stage: str | None
    fingerprint: str | None
    symbol: str | None
    speedup: float | None
    low: float | None
    high: float | None
    unsettled: int
    build_seconds: float | None  #: `None`: it was not built, or not in this run
    seconds: float  #: of the evaluation
    trials: int
    passed: int
    tokens: int | None
    cost: float | None
    sha256: str | None
    parent_attempt: int | None
    parent_sample: int | None
    move: str | None  #: that made it from its parent, where that was timed; else `None`
    bottleneck: str | None  #: what the parent waits for; `None`: not known
    log_gain: float | None  #: over the parent; `None`: it has no speed-up
    gained: int  #: by more than the intervals


class ErrorRow(NamedTuple):
    run: str
    fingerprint: str
    kind: str
    stage: str
    symbol: str | None
    text: str  #: that the fingerprint is of


class MendRow(NamedTuple):
    """A failed sample, and the next correct one that descends from it."""

    run: str
    problem: str
    attempt: int
    sample: int
    fingerprint: str
    by_attempt: int
    by_sample: int
    steps: int  #: attempts from the one to the other
    added: int | None  #: lines; `None`: one of the two codes is not there
    removed: int | None


class RemedyRow(NamedTuple):
    """A hint that followed a failure, or the change that mended it, with what came of it in one problem of a run."""

    run: str
    problem: str
    backend: str
    fingerprint: str
    symbol: str | None
    kind: str  #: a `HintKind`, or "change"
    text: str
    attempt: int  #: of the first sample that it was tried for
    sample: int
    helped: int
    tried: int


class KernelRow(NamedTuple):
    """The best correct kernel of a problem."""

    run: str
    problem: str
    attempt: int
    sample: int
    sha256: str
    status: str
    speedup: float | None
    low: float | None
    high: float | None
    unsettled: int
    code: str  #: last, so that the others are read without it


Row = ProblemRow | SampleRow | ErrorRow | MendRow | RemedyRow | KernelRow
TABLES: dict[type[RunRow | Row], str] = {
    RunRow: "run",
    ProblemRow: "problem",
    SampleRow: "sample",
    ErrorRow: "error",
    MendRow: "mend",
    RemedyRow: "remedy",
    KernelRow: "kernel",
}
#: Tables of a run's rows, beside that of runs.
PARTS: tuple[type[Row], ...] = (ProblemRow, SampleRow, ErrorRow, MendRow, RemedyRow, KernelRow)


@dataclass(frozen=True)
class RunRows:
    """All rows of one run."""

    run: RunRow
    parts: tuple[Row, ...]

    def __iter__(self) -> Iterator[RunRow | Row]:
        yield self.run
        yield from self.parts


def digest_of(run: RunRow, parts: tuple[Row, ...]) -> str:
    """Return the digest of a run's rows, its own column left out."""
    lines = sorted(json.dumps([TABLES[type(row)], *row]) for row in parts)
    return sha256("\n".join([json.dumps(run._replace(digest="")), *lines]).encode()).hexdigest()[:LENGTH]
