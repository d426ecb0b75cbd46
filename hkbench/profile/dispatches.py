"""Kernel launches as any profiler lists them -> one `KernelProfile`. Each reader makes `Dispatch`es and ends here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hkbench.profile.findings import Pass, findings
from hkbench.profile.tables import unreadable
from hkbench.records import DeviceFacts, KernelProfile, KernelUse, Owner
from hkbench.records.profile import Figure

MAX_KERNELS = 64
MAX_LAUNCHES = 50_000  #: of one run, the last ones
NAME_LIMIT = 400

OwnerOf = Callable[[str], Owner]
FiguresOf = Callable[[Mapping[str, float], float | None], dict[str, Figure]]


@dataclass(frozen=True)
class Dispatch:
    """One launch of one kernel. Seconds, bytes; `None` where the profiler does not say."""

    name: str
    begin: float | None = None  #: seconds, on the profiler's own clock
    seconds: float | None = None
    grid: tuple[int, ...] | None = None  #: blocks
    block: tuple[int, ...] | None = None  #: threads
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    registers: int | None = None
    lds_bytes: int | None = None
    scratch_bytes: int | None = None
    counters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """The launches of one run of the command, in order, and where they were read."""

    path: Path
    dispatches: tuple[Dispatch, ...]


_ALIKE = ("grid", "block", "vgprs", "agprs", "sgprs", "registers", "lds_bytes", "scratch_bytes")


def profile_of(
    source: str,
    timed: Run,
    counted: Sequence[Run],
    forwards: int,
    owner_of: OwnerOf,
    figures_of: FiguresOf,
    facts: DeviceFacts | None = None,
    gaps: bool = True,
) -> KernelProfile:
    """Return one forward pass, from runs that each made `forwards` passes (warm-ups counted in) after setting up.

    `timed` gives calls, times and launch shapes; `counted` the counters, merged by the kernel's name as means of a
    call: dispatch numbers differ from run to run. `gaps`: whether the profiler left the time between kernels as it is.

    Raises:
        ProfileUnreadable: no kernel of `timed` has a time.
    """
    notes: list[str] = []
    passes = last_passes(timed, forwards, notes)
    groups = by_name(passes)
    seconds = {name: sum(d.seconds or 0.0 for d in group) / forwards for name, group in groups.items()}
    total = sum(seconds.values())
    if total <= 0:
        raise unreadable(timed.path, "gives no kernel a time")
    counters = _merged_counters(groups, counted, forwards, notes)
    uses = []
    for name, spent in sorted(seconds.items(), key=lambda item: -item[1])[:MAX_KERNELS]:
        group = groups[name]
        calls = max(1, round(len(group) / forwards))
        found = counters.get(name, {})
        use = KernelUse(
            name=_plain(name),
            owner=owner_of(name),
            calls=calls,
            seconds=spent,
            share=spent / total,
            counters=found,
            figures=figures_of(found, spent / calls),
            **_alike(group, counters_of(counted, name)),
        )
        uses.append(use)
    if len(seconds) > MAX_KERNELS:
        notes.append(f"the {len(seconds) - MAX_KERNELS} shortest kernels are left out")
    kernels = tuple(uses)
    wall = _wall(passes, forwards) if gaps else None
    return KernelProfile(
        source=source,
        kernels=kernels,
        seconds=total,
        findings=findings(Pass(kernels, wall, on_gpu=True), facts),
        notes=tuple(dict.fromkeys(notes)),
    )


def last_passes(run: Run, forwards: int, notes: list[str]) -> tuple[Dispatch, ...]:
    """Return the launches of the passes alone, without those of setting up before them.

    The longest list of kernels that stands `forwards` times at the end. Where the end does not repeat (kernels chosen
    by data, something after the last pass) all launches of kernels that ran at least once a pass are taken; a note
    says so.
    """
    dispatches = run.dispatches[-MAX_LAUNCHES:]
    names = [d.name for d in dispatches]
    for length in range(len(names) // forwards, 0, -1):
        if any(names[-1 - number * length] != names[-1] for number in range(forwards)):
            continue  # most lengths end here, before anything is copied
        begin = len(names) - length * forwards
        if names[begin:] == names[-length:] * forwards:
            return dispatches[begin:]
    groups = by_name(dispatches)
    kept = tuple(d for d in dispatches if len(groups[d.name]) >= forwards)
    notes.append(
        f"{run.path.name}: the {forwards} passes do not launch the same kernels in the same order; "
        "calls and times are means that may count in launches from outside of the passes"
    )
    return kept


def by_name(dispatches: Iterable[Dispatch]) -> dict[str, list[Dispatch]]:
    """Return the launches of each kernel."""
    groups: dict[str, list[Dispatch]] = defaultdict(list)
    for dispatch in dispatches:
        groups[dispatch.name].append(dispatch)
    return dict(groups)


def counters_of(counted: Sequence[Run], name: str) -> list[Dispatch]:
    """Return the launches of one kernel in the counted runs: some profilers name registers only there."""
    return [d for run in counted for d in run.dispatches if d.name == name]


def _merged_counters(
    groups: Mapping[str, list[Dispatch]], counted: Sequence[Run], forwards: int, notes: list[str]
) -> dict[str, dict[str, float]]:
    """Return each counter's mean over the calls of each kernel; of a counter in two runs, the earlier one's."""
    merged: dict[str, dict[str, float]] = {name: {} for name in groups}
    for run in counted:
        counted_groups = by_name(last_passes(run, forwards, notes))
        for name, group in groups.items():
            other = counted_groups.get(name, [])
            if len(other) != len(group):
                notes.append(f"{run.path.name}: {len(other)} launches of {_plain(name)[:60]}, timed were {len(group)}")
            for counter, value in mean_counters(other).items():
                merged[name].setdefault(counter, value)
    return merged


def mean_counters(group: Sequence[Dispatch]) -> dict[str, float]:
    """Return the mean of each counter that every one of the launches has."""
    if not group:
        return {}
    shared = set(group[0].counters).intersection(*(d.counters for d in group[1:]))
    return {name: sum(d.counters[name] for d in group) / len(group) for name in sorted(shared)}


def _alike(group: Sequence[Dispatch], others: Sequence[Dispatch]) -> dict[str, tuple[int, ...] | int]:
    """Return what all launches of a kernel have in common; counted runs fill in what the timed one leaves open."""
    common: dict[str, tuple[int, ...] | int] = {}
    for key in _ALIKE:
        values = {getattr(d, key) for d in group}
        if values == {None}:
            values = {getattr(d, key) for d in others}
        if len(values) == 1 and (value := values.pop()) is not None:
            common[key] = value
    return common


def _wall(passes: Sequence[Dispatch], forwards: int) -> float | None:
    """Return the mean seconds from a pass's first kernel to its last one's end; None for uneven passes."""
    if len(passes) % forwards:
        return None
    length = len(passes) // forwards
    total = 0.0
    for number in range(forwards):
        part = passes[number * length : (number + 1) * length]
        begins = [d.begin for d in part if d.begin is not None]
        ends = [d.begin + d.seconds for d in part if d.begin is not None and d.seconds is not None]
        if len(begins) != length or len(ends) != length:
            return None
        total += max(ends) - min(begins)
    return total / forwards


def _plain(name: str) -> str:
    """Cut, and without control characters and what UTF-8 cannot hold."""
    text = name[:NAME_LIMIT].encode(errors="replace").decode()
    return "".join(sign if sign.isprintable() else "?" for sign in text)
