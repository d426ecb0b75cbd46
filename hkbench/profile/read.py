"""The files that a plan's steps left -> one `KernelProfile`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from hkbench.device_kinds import Profiler
from hkbench.errors import InputMissing, UsageError
from hkbench.profile import ncu, proton, rocprof, rocprofv3
from hkbench.profile.choose import Plan, Step
from hkbench.profile.derived import Agent, amd_figures, nvidia_figures
from hkbench.profile.dispatches import OwnerOf, Run, profile_of
from hkbench.profile.tables import unreadable
from hkbench.profile.torch_profiler import profile_of_totals
from hkbench.records import DeviceFacts, KernelProfile
from hkbench.sandbox import folders


def read_profile(
    plan: Plan, owner_of: OwnerOf, facts: DeviceFacts | None = None, failed: Mapping[str, str] | None = None
) -> KernelProfile:
    """Return one forward pass, from what the plan's steps wrote. `failed`: by a step's name, why it gave nothing.

    Counters of a failed step are left out, and a note gives the reason. `facts`: the device, for shares of its peaks.

    Raises:
        InputMissing: a step that is not in `failed` left no file.
        ProfileUnreadable: a file is damaged.
        UsageError: the first step, the one with the times, failed, or the plan has no step.
    """
    failed = failed or {}
    if not plan.steps:
        raise UsageError("torch's profiler leaves no files: read the runner's answer by kernel_profile")
    first, *others = plan.steps
    if first.name in failed:
        raise UsageError(f"without times there is no profile: {failed[first.name]}; profile by torch")
    if plan.profiler is Profiler.NCU:
        profile = _ncu(plan, owner_of, facts)
    elif plan.profiler is Profiler.PROTON:
        profile = _proton(plan, owner_of)
    else:
        profile = _amd(plan, [step for step in others if step.name not in failed], owner_of, facts)
    return profile.model_copy(update={"notes": (*plan.notes, *failed.values(), *profile.notes)})


def _ncu(plan: Plan, owner_of: OwnerOf, facts: DeviceFacts | None) -> KernelProfile:
    run = ncu.read(_only(plan, plan.steps[0].expected[0]))
    figures = partial(nvidia_figures, facts=facts)
    source = "ncu (caches flushed before each kernel)"
    return profile_of(source, run, [run], plan.forwards, owner_of, figures, facts, gaps=False)


def _proton(plan: Plan, owner_of: OwnerOf) -> KernelProfile:
    path = _only(plan, plan.steps[0].expected[0])
    kernels = [(name, calls / plan.forwards, seconds / plan.forwards) for name, calls, seconds in proton.read(path)]
    profile = profile_of_totals("proton (kernel times)", kernels, None, True, owner_of)
    if profile is None:
        raise unreadable(path, "has kernels that took no time")
    return profile


def _amd(plan: Plan, counted: list[Step], owner_of: OwnerOf, facts: DeviceFacts | None) -> KernelProfile:
    read_trace, read_counters = _READERS[plan.profiler]
    timed = read_trace(_only(plan, plan.steps[0].expected[0]))
    runs: list[Run] = [read_counters(_only(plan, step.expected[0])) for step in counted]
    notes = []
    if _counts_nothing(runs):
        runs = []
        notes.append(f"{plan.profiler} counts nothing on this part: no wave, no cycle; no counter is used")
    agent = _agent(plan)
    figures = partial(amd_figures, facts=facts, agent=agent)
    source = f"{plan.profiler} (kernel trace, {len(runs)} counter passes)"
    profile = profile_of(source, timed, runs, plan.forwards, owner_of, figures, facts)
    if runs and agent is None:
        notes.append("the number of XCDs is not known: no occupancy and no use of matrix units")
    return profile.model_copy(update={"notes": (*notes, *profile.notes)})


def _counts_nothing(runs: list[Run]) -> bool:
    """Return whether counters are 0 that no launched kernel leaves at 0: some versions do not know the part.

    See issue 57 of ROCm/rocprofiler-sdk.
    """
    seen = [d.counters[name] for run in runs for d in run.dispatches for name in _NEVER_ZERO if name in d.counters]
    return bool(seen) and not any(seen)


_READERS = {
    Profiler.ROCPROFV3: (rocprofv3.read_trace, rocprofv3.read_counters),
    Profiler.ROCPROFV2: (rocprof.read_trace, rocprof.read_counters),
    Profiler.ROCPROF: (rocprof.read_trace, rocprof.read_counters),
}

_NEVER_ZERO = ("GRBM_GUI_ACTIVE", "SQ_WAVES")


def _agent(plan: Plan) -> Agent | None:
    """Read rocprofv3's agent list, which is written beside the trace; the older tools write none."""
    if plan.profiler is not Profiler.ROCPROFV3:
        return None
    found = folders.matching(plan.folder, plan.steps[0].expected[1])
    return rocprofv3.read_agent(found[0]) if found else None


def _only(plan: Plan, pattern: str) -> Path:
    """Return the one file of a pattern."""
    found = folders.matching(plan.folder, pattern)
    if not found:
        raise InputMissing(
            f"{plan.folder}/{pattern}: {plan.profiler} wrote no such file; read what it printed, then profile again"
        )
    if len(found) > 1:
        raise unreadable(found[1], f"is one of {len(found)} files of {pattern}: several processes used the GPU")
    return found[0]
