"""What a run may ask of the experience: by facts, not by names, and nothing of what is held out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
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
    Pitfall,
    Problem,
    Record,
    Remedy,
    Source,
    Status,
)
from hkbench.stats import share_interval

MAX_REMEDIES = 8  #: that are answered; a prompt shows fewer
MAX_MOVES = 64
MAX_PITFALLS = 8
MIN_PROBLEMS = 2  #: in which an error was met, for it to be a pitfall of the language
MAX_SIMILAR = 8
LEAST_LIKENESS = 0.25
LEAST_SHARE = 0.5  #: what helped less often than not is not answered
OFTEN = 2  #: tries since it is shown, from which on they alone count
NEAR = 0.5  #: of the surest one's lower bound: a remedy below is not answered beside that
#: Stage and kind, and the place that stands before a compiler's error (fingerprint.py).
_BEFORE_MESSAGE = re.compile(r"\w+/\w+: (?:(?:PATH|FILE)\S* )?(?:(?:fatal )?error: )?")


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
        self.database = Database(path, create=True)
        self._gains: dict[object, tuple[MoveGain, ...]] = {}
        self._pitfalls: dict[object, tuple[Pitfall, ...]] = {}
        self._held_for: tuple[str, int] | None = None  # the problem, and the version of the file, that it was set for

    def facts(self) -> ExperienceFacts:
        """Return what a run records of the file."""
        return self.database.facts()

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
        found = self.database.rows(queries.KERNEL, traits.digest, *where)
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
        """Return what helped after such a failure, the surest first: after the same one, else of the same symbol.

        The prompts' own hints are not among them. Neither is what helped less often than not, in all or since it is
        shown, nor what stands far behind the surest.
        """
        self._hold(problem)
        found = self._remedies(queries.REMEDIES_OF_FINGERPRINT, failure.digest, backend, failure.symbol)
        if not found and failure.symbol is not None:
            found = self._remedies(queries.REMEDIES_OF_SYMBOL, failure.symbol, backend, failure.symbol)
        return tuple(found[:MAX_REMEDIES])

    def _remedies(self, query: str, value: str, backend: BackendName, symbol: str | None) -> list[Remedy]:
        known: list[tuple[float, Remedy]] = []
        for text, *counts, _, run, problem, attempt, sample in self.database.rows(query, value, backend):
            sure = _sureness(*counts)
            if sure is not None:
                source = Source(run=run, problem=problem, attempt=attempt, sample=sample)
                helped, tried = counts[:2]
                known.append((sure, Remedy(text=text, symbol=symbol, source=source, helped=helped, tried=tried)))
        known.sort(key=lambda one: (-one[0], one[1].text))
        return [one for sure, one in known if sure >= NEAR * known[0][0]]

    def moves(self, problem: Problem, backend: BackendName) -> tuple[MoveGain, ...]:
        """Return what moves brought to kernels of the backend, by class of bottleneck."""
        self._hold(problem)
        state = self.database.version(), self._held_for, backend
        if state not in self._gains:  # over all samples: the one look-up that takes longer as the file grows
            self._gains = {state: move_gains(self.database, backend)[:MAX_MOVES]}
        return self._gains[state]

    def pitfalls(self, problem: Problem, backend: BackendName) -> tuple[Pitfall, ...]:
        """Return the errors that kernels of the backend had on most problems, of those with a sure remedy."""
        self._hold(problem)
        state = self.database.version(), self._held_for, backend
        if state not in self._pitfalls:  # over many tries, as the moves
            self._pitfalls = {state: tuple(islice(self._common(backend), MAX_PITFALLS))}
        return self._pitfalls[state]

    def _common(self, backend: BackendName) -> Iterator[Pitfall]:
        for digest, symbol, problems, text in self.database.rows(
            queries.PITFALLS, backend, MIN_PROBLEMS, 2 * MAX_PITFALLS
        ):
            known = self._remedies(queries.REMEDIES_OF_FINGERPRINT, digest, backend, symbol)
            said = _BEFORE_MESSAGE.match(text)  # None: nothing but stage and kind is known
            if said is not None and known:
                yield Pitfall(error=text[said.end() :], problems=problems, remedy=known[0])

    def similar(self, problem: Problem, traits: Traits, backend: BackendName | None = None) -> tuple[Similar, ...]:
        """Return the problems that are most like one, each by its best kernel, the most alike first."""
        self._hold(problem)
        best: dict[tuple[str, str, str], Similar] = {}
        for row in self.database.rows(queries.SIMILAR, backend):
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
        state = problem.sha256, self.database.version()
        if state == self._held_for:
            return
        self._held_for = state
        known = self.database.rows(queries.PROBLEMS)
        sources = {problem.sha256} if self._is_held(problem) else set()
        named = [row for row in known if self._hold_out.search(row[1]) or row[2] in sources]
        sources |= {row[2] for row in named}
        equals = {row[3] for row in named} - {None}
        self.database.hold({(row[0], row[1]) for row in known if row[2] in sources or row[3] in equals})

    def close(self) -> None:
        self.database.close()


def _sureness(helped: int, tried: int, helped_shown: int, tried_shown: int) -> float | None:
    """Return how sure a remedy is; `None`: it helped less often than not.

    It is the lower bound of the share of tries that it helped in. Once it was shown often enough, only those count: a
    change that was found by looking back has never failed.
    """
    shown = tried_shown >= OFTEN
    if helped < LEAST_SHARE * tried or (shown and helped_shown < LEAST_SHARE * tried_shown):
        return None
    return (share_interval(helped_shown, tried_shown) if shown else share_interval(helped, tried)).low


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
