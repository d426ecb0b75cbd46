"""Which profiler is used, and how it is run on a candidate: as data, for the code that starts processes.

A plan is one or more commands around a wrapped one. The wrapped command (hkbench/runner/profiled.py) loads the
candidate and makes a known number of equal forward passes at its end. It runs as often as the plan has steps.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hkbench.device_kinds import Profiler
from hkbench.errors import UsageError
from hkbench.profile import ncu, proton, rocprof, rocprofv3
from hkbench.profile.counters import counter_set, packed
from hkbench.profile.installed import Find, find_program, standings
from hkbench.protocol.constants import PROTON_SESSION
from hkbench.records import DeviceKind
from hkbench.store.sanitize import one_line

#: ncu replays each launch, so it gets few passes; a trace costs next to nothing.
_PASSES = {Profiler.NCU: 2}
_TRACED_PASSES = 5


@dataclass(frozen=True)
class Choice:
    """The profiler to use, and why not a better one."""

    profiler: Profiler
    program: str | None = None  #: its path; None for torch's
    passed_over: tuple[str, ...] = ()  #: one sentence for each that would have come first


@dataclass(frozen=True)
class Step:
    """One run of the profiler. Nothing is started here."""

    name: str
    command: tuple[str, ...]
    expected: tuple[str, ...]  #: patterns of the files that it writes, below the plan's folder
    environment: Mapping[str, str] = field(default_factory=dict)  #: to add to the runner's own
    inputs: Mapping[Path, str] = field(default_factory=dict)  #: files to write before, with their text
    folders: tuple[Path, ...] = ()  #: folders to make before


@dataclass(frozen=True)
class Plan:
    """What to run for one profile. The first step gives times, the others counters; `read_profile` reads them all."""

    profiler: Profiler
    folder: Path
    forwards: int  #: equal forward passes of the wrapped command that the profiler sees at its end
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()


def choose(kind: DeviceKind, arch: str | None, find: Find = find_program, further: Profiler | None = None) -> Choice:
    """Return the best profiler for a device: rocprofv3, rocprofv2, rocprof on ROCm, ncu on CUDA, else torch's.

    A `further` one, Proton, comes before torch's where a GPU is left without one of its maker's.
    """
    passed_over: list[str] = []
    for one in standings(kind, arch, find):
        if one.obstacle is None:
            return Choice(one.profiler, one.program, tuple(passed_over))
        passed_over.append(one.obstacle)
    if further is Profiler.PROTON and passed_over and proton.is_installed():
        return Choice(Profiler.PROTON, sys.executable, tuple(passed_over))
    return Choice(Profiler.TORCH, passed_over=tuple(passed_over))


def passes(profiler: Profiler) -> int:
    """Return how many forward passes this profiler should see."""
    return _PASSES.get(profiler, _TRACED_PASSES)


def plan(choice: Choice, arch: str | None, folder: Path, wrapped: Sequence[str], forwards: int) -> Plan:
    """Return the steps that `choice` takes in `folder`, which has to be empty; none for torch's profiler.

    Raises:
        UsageError: the wrapped command makes no forward pass.
    """
    if forwards < 1:
        raise UsageError(f"a profile takes at least one forward pass, not {forwards}")
    program = choice.program
    if choice.profiler is Profiler.TORCH or program is None:
        return Plan(Profiler.TORCH, folder, forwards, (), choice.passed_over)
    if choice.profiler is Profiler.PROTON:
        session = Step(
            "session", tuple(wrapped), (proton.FILE,), environment={PROTON_SESSION: str(folder / proton.SESSION)}
        )
        return Plan(choice.profiler, folder, forwards, (session,), choice.passed_over)
    if choice.profiler is Profiler.NCU:
        return Plan(choice.profiler, folder, forwards, (_ncu(program, arch, folder, wrapped),), choice.passed_over)
    sets = packed(counter_set(arch))
    notes = choice.passed_over
    if not sets:
        notes = (*notes, f"which counters {arch or 'this part'} has is not known: times and resources only")
    steps = _AMD_STEPS[choice.profiler](program, folder, wrapped, sets)
    return Plan(choice.profiler, folder, forwards, steps, notes)


def _ncu(program: str, arch: str | None, folder: Path, wrapped: Sequence[str]) -> Step:
    scratch = folder / "tmp"
    return Step(
        name="metrics",
        command=ncu.command(program, folder / "ncu.csv", arch, wrapped),
        expected=("ncu.csv",),
        environment={
            "TMPDIR": str(scratch),  # its lock file may belong to another user in the common folder
            # How it finds its target. A Unix socket without a path works in a cage, a port does not.
            "NV_COMPUTE_PROFILER_LOCAL_CONNECTION_OVERRIDE": "uds",
        },
        folders=(scratch,),
    )


def _rocprofv3(program: str, folder: Path, wrapped: Sequence[str], sets: Sequence[Sequence[str]]) -> tuple[Step, ...]:
    trace = Step(
        "trace",
        rocprofv3.trace_command(program, folder, "trace", wrapped),
        (f"**/trace{rocprofv3.TRACE_SUFFIX}", f"**/trace{rocprofv3.AGENTS_SUFFIX}"),
    )
    counted = [
        Step(
            f"counters_{number}",
            rocprofv3.counter_command(program, names, folder, f"counters_{number}", wrapped),
            (f"**/counters_{number}{rocprofv3.COUNTERS_SUFFIX}",),
        )
        for number, names in enumerate(sets, 1)
    ]
    return (trace, *counted)


def _rocprofv2(program: str, folder: Path, wrapped: Sequence[str], sets: Sequence[Sequence[str]]) -> tuple[Step, ...]:
    steps = [
        Step("trace", rocprof.trace_command_v2(program, folder / "trace", wrapped), ("trace/**/*.csv",),
             folders=(folder / "trace",)),
    ]  # fmt: skip
    for number, names in enumerate(sets, 1):
        name = f"counters_{number}"
        request, output = folder / f"{name}.txt", folder / name
        command = rocprof.counter_command_v2(program, request, output, wrapped)
        inputs = {request: rocprof.request_text(names)}
        steps.append(Step(name, command, (f"{name}/**/*.csv",), inputs=inputs, folders=(output,)))
    return tuple(steps)


def _rocprof(program: str, folder: Path, wrapped: Sequence[str], sets: Sequence[Sequence[str]]) -> tuple[Step, ...]:
    steps = [Step("trace", rocprof.trace_command(program, folder / "trace.csv", wrapped), ("trace.csv",))]
    for number, names in enumerate(sets, 1):
        name = f"counters_{number}"
        request, output = folder / f"{name}.txt", folder / f"{name}.csv"
        command = rocprof.counter_command(program, request, output, wrapped)
        steps.append(Step(name, command, (output.name,), inputs={request: rocprof.request_text(names)}))
    return tuple(steps)


_AMD_STEPS = {Profiler.ROCPROFV3: _rocprofv3, Profiler.ROCPROFV2: _rocprofv2, Profiler.ROCPROF: _rocprof}


def printed(planned: Plan, step: Step, output: str) -> str:
    """Return all that a step's tool said: its `output`, and what it wrote among its results."""
    if planned.profiler is not Profiler.NCU:
        return output
    return f"{output}\n{ncu.messages(planned.folder / step.expected[0])}"


#: What a profiler prints -> what it means and what to do. Sources: docs/profilers.md.
_MEANINGS = (
    (r"EXCEEDS_HW_LIMIT|exceeds? (?:the )?(?:capabilit|hardware|hw)|not enough .*counters",
     "this part counts fewer counters in one run than hkbench asks for; the profile goes without them"),
    (r"CAP_PERFMON|SYS_PERFMON|could not be locked for profiling|perf_event_paranoid",
     "counters need the capability CAP_PERFMON (in a container: --cap-add=PERFMON or SYS_ADMIN); or profile by torch"),
    (r"ERR_NVGPUCTRPERM|does not have permission to (?:access|profile)",
     "the driver lets only administrators read counters: run as root, with CAP_SYS_ADMIN, or set the driver's option "
     "NVreg_RestrictProfilingToAdminUsers=0"),
    (r"/dev/(?:kfd|dri)\S*.*(?:permission|cannot open)|permission denied.*/dev/(?:kfd|dri)",
     "this user may not open the GPU's device files: join the groups render and video, or pass the devices to the "
     "container"),
    (r"InterprocessLock|nsight-compute-lock", "another user's lock file is in the way: set TMPDIR to an empty folder"),
    (r"ERR_NVCMPTRESOURCE|driver resource was unavailable",
     "another profiler holds the counters: end it (also a monitoring service such as DCGM), then run again"),
    (r"Launching the target application failed",
     "the profiler could not start the command, as where it may make no named pipe: profile by torch"),
    (r"failed to connect to the CUDA driver",
     "the profiler found no CUDA driver where candidates run: profile by torch"),
    (r"LibraryNotLoaded", "the profiler cannot load the driver's library in this sandbox: profile by torch"),
    (r"no kernels were profiled", "the command launched no kernel on the GPU"),
    (r"(?:failed to find|unknown|invalid|unable to find|not (?:found|supported|valid)).{0,60}"
     r"(?:counter|metric)|(?:counter|metric)\b.{0,80}(?:not (?:found|supported|valid)|unknown|invalid)",
     "this part or this version has no such counter; the profile goes without this run's"),
    (r"unrecognized (?:arguments?|option)|invalid choice|unknown option",
     "this version does not take the options that hkbench gives: update it, or profile by torch"),
    (r"error while loading shared libraries|cannot open shared object",
     "the profiler's installation is incomplete: install it again"),
)  # fmt: skip
_SHOWN = 300  #: characters of what was printed


def meaning(output: str) -> str | None:
    """Return what a message that is known says and what to do; None where none is known."""
    return next((text for pattern, text in _MEANINGS if re.search(pattern, output, re.IGNORECASE)), None)


def explain(profiler: Profiler, step: str, returncode: int | None, output: str) -> str:
    """Return what to say of a step that failed: what happened, what it means, what to do.

    `returncode` None: out of time.
    """
    if returncode is None:
        return f"{profiler} ({step}) did not end in time; give it more by --profile-timeout"
    known = meaning(output)
    lines = [shown for line in output.splitlines() if (shown := one_line(line, _SHOWN))]
    said = lines[-1] if lines else "it printed nothing"
    ended = f"ended by signal {-returncode}" if returncode < 0 else f"ended with {returncode}"
    return f"{profiler} ({step}) {ended}: {known or f'{said}; run its command by hand, or profile by torch'}"
