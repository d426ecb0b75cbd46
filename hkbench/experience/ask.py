"""What a run may ask of the experience: by facts, not by names, and nothing of what is held out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hkbench.experience import queries
from hkbench.experience.database import Database
from hkbench.experience.facts import Traits, likeness
from hkbench.experience.fingerprint import Fingerprint
from hkbench.experience.gains import move_gains
from hkbench.records import (
    BackendName,
    DeviceFacts,
    EvaluationSettings,
    ExperienceFacts,
    Interval,
    KernelSource,
    KnownKernel,
    MoveGain,
    Problem,
    Record,
    Remedy,
    Source,
    Status,
)
from hkbench.stats import share_interval

MAX_REMEDIES = 8  #: that are answered; a prompt shows fewer
MAX_MOVES = 64
MAX_SIMILAR = 8
LEAST_LIKENESS = 0.25
LEAST_SHARE = 0.5  #: what helped less often than not is not answered


class Similar(Record):
    """A problem of an earlier run that is like the one that is asked about, and what came of it."""

    source: Source
    likeness: float
    classes: dict[str, int]
    dtype: str | None
    backend: BackendName
    device_name: str
    status: Status
    speedup: float | None
    move: str | None  #: by which its best kernel was made


class Experience:
    """Answer one run's questions. `hold_out`: of problems with such a name nothing is answered, nor of their equals."""

    def __init__(self, path: Path, hold_out: str | None = None) -> None:
        """Open the file; one that is not there yet is made, and knows nothing. Errors as of `Database`."""
        self._hold_out = None if hold_out is None else re.compile(hold_out)
        self._database = Database(path, create=True)

    def facts(self) -> ExperienceFacts:
        """Return what a run records of the file."""
        return self._database.facts()

    def kernel(
        self, problem: Problem, traits: Traits, backend: BackendName, device: DeviceFacts, settings: EvaluationSettings
    ) -> KnownKernel | None:
        """Return the best kernel for the same facts, kind of device, backend, track and rules.

        A GPU's architecture has to be the same too. A kernel counts by the lower bound of its speed-up.
        """
        if self._is_held(problem):
            return None
        self._hold(problem)
        where = (backend, str(device.kind), device.arch, settings.track, settings.rules)
        found = self._database.rows(queries.KERNEL, traits.digest, *where)
        if not found:
            return None
        name, of, attempt, sample, digest, code, where, arch, status, speedup, low, high = found[0]
        gain = None if speedup is None else Interval(value=speedup, low=low, high=high)
        source = Source(run=name, problem=of, attempt=attempt, sample=sample)
        origin = KernelSource(
            source=source, sha256=digest, device_name=where, arch=arch, status=Status(status), speedup=gain
        )
        return KnownKernel(code=code, origin=origin)

    def remedies(self, problem: Problem, failure: Fingerprint, backend: BackendName) -> tuple[Remedy, ...]:
        """Return what helped after such a failure, the surest first: after the same one, then of the same symbol.

        The prompts' own hints are not among them, and neither is what helped less often than not.
        """
        self._hold(problem)
        same = self._remedies(queries.REMEDIES_OF_FINGERPRINT, failure.digest, backend, failure.symbol)
        akin: list[Remedy] = []
        if failure.symbol is not None and len(same) < MAX_REMEDIES:
            known = {one.text for one in same}
            found = self._remedies(queries.REMEDIES_OF_SYMBOL, failure.symbol, backend, failure.symbol)
            akin = [one for one in found if one.text not in known]
        return tuple([*same, *akin][:MAX_REMEDIES])

    def _remedies(self, query: str, value: str, backend: BackendName, symbol: str | None) -> list[Remedy]:
        known = [
            Remedy(
                text=text,
                symbol=symbol,
                source=Source(run=run, problem=problem, attempt=attempt, sample=sample),
                helped=helped,
                tried=tried,
            )
            for text, helped, tried, _, run, problem, attempt, sample in self._database.rows(query, value, backend)
            if helped >= LEAST_SHARE * tried
        ]
        return sorted(known, key=lambda one: (-share_interval(one.helped, one.tried).low, one.text))

    def moves(self, problem: Problem, backend: BackendName) -> tuple[MoveGain, ...]:
        """Return what moves brought to kernels of the backend, by class of bottleneck."""
        self._hold(problem)
        return move_gains(self._database, backend)[:MAX_MOVES]

    def similar(self, problem: Problem, traits: Traits, backend: BackendName | None = None) -> tuple[Similar, ...]:
        """Return the problems that are most like one, each by its best kernel, the most alike first."""
        self._hold(problem)
        best: dict[tuple[str, str, str], Similar] = {}
        for row in self._database.rows(queries.SIMILAR, backend):
            one = _similar(traits, row)
            place = (row[3], one.backend, one.device_name)
            known = best.get(place)
            if one.likeness >= LEAST_LIKENESS and (known is None or (one.speedup or 0.0) > (known.speedup or 0.0)):
                best[place] = one
        ranked = sorted(best.values(), key=lambda one: (-one.likeness, -(one.speedup or 0.0), one.source.described))
        return tuple(ranked[:MAX_SIMILAR])

    def _is_held(self, problem: Problem) -> bool:
        return self._hold_out is not None and self._hold_out.search(problem.name) is not None

    def _hold(self, problem: Problem) -> None:
        """Set what is left out: what is held out by its name, and whatever has the source or the facts of one of these.

        `problem` is the one that is asked for; where it is held out, its equals under other names are too.
        """
        if self._hold_out is None:
            return
        known = self._database.rows(queries.PROBLEMS)
        sources = {problem.sha256} if self._is_held(problem) else set()
        named = [row for row in known if self._hold_out.search(row[1]) or row[2] in sources]
        sources |= {row[2] for row in named}
        equals = {row[3] for row in named} - {None}
        self._database.hold({(row[0], row[1]) for row in known if row[2] in sources or row[3] in equals})

    def close(self) -> None:
        self._database.close()


def _similar(traits: Traits, row: Sequence[Any]) -> Similar:
    classes, dtype, elements, facts, run, problem, attempt, sample, backend, device_name, status, speedup, move = row
    counted = json.loads(classes)
    return Similar(
        source=Source(run=run, problem=problem, attempt=attempt, sample=sample),
        likeness=1.0 if facts == traits.digest else likeness(traits, Traits(facts, counted, dtype, elements or 0)),
        classes=counted,
        dtype=dtype,
        backend=backend,
        device_name=device_name,
        status=Status(status),
        speedup=speedup,
        move=move,
    )
