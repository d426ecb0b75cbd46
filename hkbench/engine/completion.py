"""Complete a verdict with what is known of a candidate whose processes have ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hkbench.backends import Provision, find_backend
from hkbench.device_kinds import model_of
from hkbench.engine.assembly import assembly_of
from hkbench.engine.built_code import with_built_code
from hkbench.engine.confinement import Cages
from hkbench.engine.slots import BuildSlots
from hkbench.evaluation import frames
from hkbench.evaluation.job import EvaluateJob
from hkbench.records import DeviceFacts, DeviceKind, SlotTimes, Verdict

#: Beside the private folder of a candidate's runner: copies of what it built, for tools that read them.
DEVICE_CODE, ASSEMBLY = "device_code", "assembly"


@dataclass(frozen=True)
class EvaluationResult:
    """The verdict, or for a build-only evaluation what the candidate wanted built."""

    verdict: Verdict | None
    extensions: tuple[object, ...] = ()  #: recorded calls, as the candidate's process told them
    launched: frames.LaunchesCompiled | None = None
    output: str | None = None
    assembly: str | None = None  #: what the compiler made of it, where that is kept
    turns: SlotTimes | None = None


class Completion:
    """Of the evaluations on one kind of device. Reading what was built takes a build's slot."""

    def __init__(self, device: DeviceFacts, slots: BuildSlots, cages: Cages) -> None:
        self._device, self._slots, self._cages = device, slots, cages

    async def complete(
        self, found: EvaluationResult, job: EvaluateJob, provision: Provision | None
    ) -> EvaluationResult:
        """Add what a verdict lacks; `provision`: of the candidate's backend. Without a verdict nothing is added."""
        if found.verdict is None:
            return found
        verdict, assembly = await self._with_built_code(found.verdict, job), found.assembly
        if provision is not None:
            verdict = _with_provision(verdict, provision)
        if job.settings.keep_assembly:
            folder = Path(job.folder)
            async with self._slots.build():
                assembly = await assembly_of(folder, folder.with_name(ASSEMBLY), self._device.arch, self._cages)
        return replace(found, verdict=verdict, assembly=assembly)

    async def _with_built_code(self, verdict: Verdict, job: EvaluateJob) -> Verdict:
        """Add, on an AMD GPU, what the candidate's built device code says."""
        arch = self._device.arch
        amd = model_of(self._device.kind).runs_what_is_for(DeviceKind.ROCM)
        if arch is None or not find_backend(job.backend).reads_amd_code or not amd:
            return verdict
        folder = Path(job.folder)
        async with self._slots.build():
            return await with_built_code(verdict, folder, folder.with_name(DEVICE_CODE), arch, self._cages)


def _with_provision(verdict: Verdict, provision: Provision) -> Verdict:
    conditions = verdict.conditions
    update = {
        "versions": conditions.versions | provision.versions,
        "warnings": (*conditions.warnings, *provision.warnings),
    }
    return verdict.model_copy(update={"conditions": conditions.model_copy(update=update)})
