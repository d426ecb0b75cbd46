"""What went wrong on the emulated device: faults, which the run survives, and refusals, which end it."""

from __future__ import annotations

from dataclasses import dataclass

OCCURRENCE = " (workgroup "  #: what follows it in the text of a fault tells where that was seen first


@dataclass(frozen=True)
class Place:
    """An instruction and where it comes from."""

    text: str  #: as LLVM prints it
    source: str  #: "FILE:LINE", "" where it is not known
    address: int  #: in the code object
    callers: tuple[str, ...] = ()  #: where the kernel calls what it was inlined from, the kernel's own line last

    @property
    def written(self) -> str:
        """The innermost line in the kernel's own file: what its author wrote, not what a library has below."""
        own = not self.callers or _file(self.callers[0]) == _file(self.source)
        return self.source if own else self.callers[0]

    def __str__(self) -> str:
        library = self.written != self.source
        called = f", called at {', '.join(self.callers)}" if self.callers else ""
        inside = f", inside {self.source}" if library else called
        return f"{self.written or f'address {self.address:#x}'} ({self.text}{inside})"


def _file(place: str) -> str:
    return place.rpartition(":")[0]


@dataclass(frozen=True)
class Fault:
    """Something that the architecture does not guarantee, or that touches what is not the kernel's.

    `kind`: "wait" (a register or LDS used before its load was waited for), "race" (LDS, between two waves of a
    workgroup), "out_of_bounds", "uninitialized".
    """

    kind: str
    kernel: str
    use: Place
    cause: Place | None  #: the load, or the other wave's access
    missing: str  #: the wait that is missing: "vmcnt(3)", "lgkmcnt(0)", "a barrier"
    detail: str
    workgroup: tuple[int, int, int]
    wave: int
    count: int  #: how often it was seen
    also: tuple[str, ...] = ()  #: lines of further causes
    passed: str = ""  #: "FILE:LINE" of the wait in the source that the compiler moved the use above

    def __str__(self) -> str:
        times = f", {self.count} times" if self.count > 1 else ""
        seen = f"{OCCURRENCE}{self.workgroup}, wave {self.wave}{times})"
        return f"{self.kernel}: {self.use} {self._what()}{self._mend()}{seen}"

    def _what(self) -> str:
        """Return what is wrong."""
        also = f" and of {', '.join(self.also)}" if self.also else ""
        cause = f" of {self.cause}{also}" if self.cause else ""
        return {
            "wait": f"uses what the load{cause} brings, before any wait has proved that it is there",
            "race": f"meets an access{cause} by another wave to the same place in LDS, with no barrier between",
            "out_of_bounds": f"accesses {self.detail}, which is not the kernel's",
            "uninitialized": f"takes {self.detail} as an address or stores it, and nothing was written there"
            if self.cause is None
            else f"takes {self.detail} as an address or stores it, which {self.cause} read from LDS where nobody wrote",
        }[self.kind]

    def _mend(self) -> str:
        """Return the sentence that says what is missing, where it is known."""
        if self.passed:
            after = "__builtin_amdgcn_sched_barrier(0) after that wait"
            return f". The compiler moved it above the s_waitcnt of {self.passed}; missing: {after}"
        if self.kind == "race":
            return f". Missing between the two lines: {self.missing}, and before it the wait for what was written"
        return f". Missing before the use: s_waitcnt {self.missing}" if self.kind == "wait" else ""


@dataclass(frozen=True)
class Refusal:
    """Why a launch was not executed to its end: "unsupported" or "budget"."""

    kind: str
    kernel: str
    at: Place | None
    reason: str

    def __str__(self) -> str:
        return f"{self.kernel}: {self.reason}{f' at {self.at}' if self.at else ''}"
