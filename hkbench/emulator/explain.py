"""Faults as the author of a kernel reads them: by the names that were written, one for all that one change mends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hkbench.emulator.faults import Fault, Place, Refusal
from hkbench.emulator.program import Program

_LOOKED = 400  #: instructions behind a use among which the wait is looked for that was meant for it
_COUNTER = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")


def explained(faults: Sequence[Fault], program: Program) -> list[Fault]:
    """Return the faults with names made short; those of a kind at the same line of the kernel are one."""
    merged: dict[tuple[str, ...], list[Fault]] = {}
    for fault in faults:
        merged.setdefault((fault.kind, fault.kernel, _line(fault.use)), []).append(fault)
    return [_one(alike, program) for alike in merged.values()]


def refused(refusal: Refusal) -> Refusal:
    """Return a refusal with names made short."""
    at = None if refusal.at is None else _short(refusal.at)
    return replace(refusal, kernel=plain(refusal.kernel), at=at)


def written_waits(waits: Mapping[int, bool], program: Program) -> Iterator[tuple[Place, bool]]:
    """Return the places of executed waits (`Outcome.waits`), where they are known, and whether each was of use."""
    for number, used in waits.items():
        line = program.code.lines[number]
        if line.place:
            yield _short(Place(line.text, line.place, line.address)), used


def plain(mangled: str) -> str:
    """Return a function's name without namespaces and parameters: `_Z4gemm7globals` is `gemm`."""
    rest, name = mangled.removeprefix("_Z").lstrip("NKL"), ""
    while mangled.startswith("_Z") and (length := re.match(r"\d+", rest)) is not None:
        name = rest[length.end() : length.end() + int(length[0])]
        rest = rest[length.end() + int(length[0]) :]
        if not mangled.startswith("_ZN"):
            break
    return name or mangled


def enough(waits: Iterable[str]) -> str:
    """Return the weakest wait that has each of these in it: of each counter the lowest number."""
    found: dict[str, int] = {}
    other: dict[str, None] = {}
    for wait in waits:
        counters = _COUNTER.findall(wait)
        for counter, number in counters:
            found[counter] = min(int(number), found.get(counter, int(number)))
        if not counters:
            other[wait] = None
    return " ".join([*(f"{counter}({number})" for counter, number in found.items()), *other])


def _one(alike: Sequence[Fault], program: Program) -> Fault:
    """Return the first of these, with the lines of all causes and the wait that is enough for all of them."""
    first = alike[0]
    causes = dict.fromkeys(_line(fault.cause) for fault in alike)
    causes.pop(_line(first.cause))
    passed = next(filter(None, (_passed(fault, program) for fault in alike)), "")
    return replace(
        first,
        kernel=plain(first.kernel),
        use=_short(first.use),
        cause=None if first.cause is None else _short(first.cause),
        missing=enough(fault.missing for fault in alike),
        also=tuple(map(_file, causes)),
        passed=_file(passed),
        count=sum(fault.count for fault in alike),
    )


def _passed(fault: Fault, program: Program) -> str:
    """Return the line of the wait that was written between the two, and that the compiler moved the use above."""
    at = program.code.index.get(fault.use.address)
    if fault.kind != "wait" or fault.cause is None or at is None:
        return ""
    (file, use), (other, cause) = _split(fault.use.written), _split(fault.cause.written)
    for line in program.code.lines[at : at + _LOOKED] if file == other else ():
        if line.text.startswith("s_waitcnt"):
            place, number = _split(line.place)
            if place == file and cause < number < use:
                return line.place
    return ""


def _split(place: str) -> tuple[str, int]:
    file, _, number = place.rpartition(":")
    return file, int(number or 0)


def _short(place: Place) -> Place:
    return replace(place, source=_file(place.source), callers=tuple(map(_file, place.callers)))


def _file(place: str) -> str:
    """Return a place without folders, which are the build's."""
    return place.rpartition("/")[2]


def _line(place: Place | None) -> str:
    return "" if place is None else place.written or hex(place.address)
