"""What went wrong on the emulated device: faults, which the run survives, and refusals, which end it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """An instruction and where it comes from."""

    text: str  #: as LLVM prints it
    source: str  #: "FILE:LINE", "" where it is not known
    address: int  #: in the code object
    callers: tuple[str, ...] = ()  #: where the kernel calls what it was inlined from, the kernel's own line last

    def __str__(self) -> str:
        called = f", called at {', '.join(self.callers)}" if self.callers else ""
        return f"{self.source or f'address {self.address:#x}'}{called} ({self.text})"


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
    lane: int | None
    count: int  #: how often it was seen

    def __str__(self) -> str:
        cause = f" of {self.cause}" if self.cause else ""
        said = {
            "wait": f"uses what the load{cause} brings before s_waitcnt {self.missing} has proved it there",
            "race": f"meets an access{cause} by another wave to the same place in LDS, with no barrier between",
            "out_of_bounds": f"accesses {self.detail}, which is not the kernel's",
            "uninitialized": f"takes {self.detail} as an address or stores it, and nothing was written there"
            if self.cause is None
            else f"takes {self.detail} as an address or stores it, which {self.cause} read from LDS where nobody wrote",
        }[self.kind]
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{self.kernel}: {self.use} {said} (workgroup {self.workgroup}, wave {self.wave}{times})"


@dataclass(frozen=True)
class Refusal:
    """Why a launch was not executed to its end: "unsupported" or "budget"."""

    kind: str
    kernel: str
    at: Place | None
    reason: str

    def __str__(self) -> str:
        return f"{self.kernel}: {self.reason}{f' at {self.at}' if self.at else ''}"
