"""What a lab asks of earlier runs. Each answer is recorded, so that a resume gets it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hkbench.experience.facts import Traits
from hkbench.experience.fingerprint import Fingerprint, fingerprint
from hkbench.records import (
    BackendName,
    DeviceFacts,
    EvaluationSettings,
    ExperienceRecalled,
    Failure,
    KernelSource,
    KnownKernel,
    MoveGain,
    Pitfall,
    Problem,
    RecallKind,
    Remedy,
    SampleKey,
)
from hkbench.store.recorder import Recorder

#: That a prompt shows: a second one beside the surest makes a false one likelier to be followed, and helps no sooner
#: (benchmarks/experience.py). Where the first was in vain, the next prompt shows the next.
MAX_REMEDIES = 1
Recalled = Mapping[tuple[RecallKind, str], ExperienceRecalled]  #: by what was asked, what was answered before


class Memory(Protocol):
    """Answer what is known of earlier runs, held-out problems left out."""

    def kernel(
        self, problem: Problem, traits: Traits, backend: BackendName, device: DeviceFacts, settings: EvaluationSettings
    ) -> KnownKernel | None:
        """Return the best kernel for such a problem on such a device."""

    def remedies(self, problem: Problem, failure: Fingerprint, backend: BackendName) -> tuple[Remedy, ...]:
        """Return what mended such a failure, the surest first."""

    def moves(self, problem: Problem, backend: BackendName) -> tuple[MoveGain, ...]:
        """Return what moves brought."""

    def pitfalls(self, problem: Problem, backend: BackendName) -> tuple[Pitfall, ...]:
        """Return the commonest errors of several problems, with what mended them."""


class Recaller:
    """Ask a run's experience for one problem; what was answered before is answered again."""

    def __init__(
        self, memory: Memory, problem: Problem, backend: BackendName, recorder: Recorder, recalled: Recalled
    ) -> None:
        self._memory = memory
        self._problem = problem
        self._backend = backend
        self._recorder = recorder
        self._recalled = dict(recalled)
        self._shown: dict[str, SampleKey] = {}  # text of a remedy -> the sample that it was shown for

    def kernel(self, traits: Traits, device: DeviceFacts, settings: EvaluationSettings) -> KnownKernel | None:
        """Return the best kernel that is known for such a problem on such a device."""
        name = self._problem.name
        known = self._recalled.get((RecallKind.KERNEL, traits.digest))
        if known is None:
            found = self._memory.kernel(self._problem, traits, self._backend, device, settings)
            if found is not None:
                self._recorder.save_known_kernel(name, found.code)  # before the event that tells of it
            origin = found.origin if found is not None else None
            known = self._record(RecallKind.KERNEL, traits.digest, kernel=origin)
        code = self._recorder.known_kernel(name)
        return None if known.kernel is None or code is None else KnownKernel(code=code, origin=known.kernel)

    def remedies(self, failure: Failure) -> tuple[Remedy, ...]:
        """Return what mended such a failure, the surest first."""
        mark = fingerprint(failure)
        known = self._recalled.get((RecallKind.REMEDIES, mark.digest))
        if known is None:
            found = self._memory.remedies(self._problem, mark, self._backend)
            known = self._record(RecallKind.REMEDIES, mark.digest, remedies=found)
        return known.remedies

    def moves(self) -> tuple[MoveGain, ...]:
        """Return what moves brought."""
        known = self._recalled.get((RecallKind.MOVES, ""))
        if known is None:
            known = self._record(RecallKind.MOVES, "", moves=self._memory.moves(self._problem, self._backend))
        return known.moves

    def pitfalls(self) -> tuple[Pitfall, ...]:
        """Return the commonest errors of several problems, with what mended them."""
        known = self._recalled.get((RecallKind.PITFALLS, ""))
        if known is None:
            found = self._memory.pitfalls(self._problem, self._backend)
            known = self._record(RecallKind.PITFALLS, "", pitfalls=found)
        return known.pitfalls

    def to_show(self, failure: Failure, about: SampleKey) -> tuple[Remedy, ...]:
        """Return the remedies for the prompt that tells of a sample: none that was shown for another one in vain."""
        new = [one for one in self.remedies(failure) if self._shown.get(one.text, about) == about][:MAX_REMEDIES]
        self._shown |= {one.text: about for one in new}
        return tuple(new)

    def _record(
        self,
        what: RecallKind,
        about: str,
        kernel: KernelSource | None = None,
        remedies: tuple[Remedy, ...] = (),
        moves: tuple[MoveGain, ...] = (),
        pitfalls: tuple[Pitfall, ...] = (),
    ) -> ExperienceRecalled:
        event = ExperienceRecalled(
            problem=self._problem.name,
            what=what,
            about=about,
            kernel=kernel,
            remedies=remedies,
            moves=moves,
            pitfalls=pitfalls,
        )
        self._recorder.event(event)
        self._recalled[what, about] = event
        return event
