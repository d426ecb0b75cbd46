"""What makes a verdict hold: the rules, what confined the candidate, what the witnesses said."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from hkbench.records.base import BackendName, Record


class Rule(StrEnum):
    """What the evaluator demands beyond KernelBench's contract: prompts say it (prompts/rules.py), failures name it."""

    FRESH_RESULTS = "fresh-results"
    OWN_MEMORY = "own-memory"
    UNTOUCHED = "untouched-inputs"
    PARAMETERS_CHANGE = "parameters-change"
    SAME_PARAMETERS = "same-parameters"
    EXACT_FORM = "exact-form"
    NO_LEFTOVERS = "no-leftovers"
    OWN_KERNELS = "own-kernels"
    CLEAN_LAUNCHES = "clean-launches"
    CONFINED = "confined"


class Protection(StrEnum):
    """What confinement can keep a candidate from."""

    FILES = "files"  #: reading what it has no business with, writing outside of its folder
    NETWORK = "network"
    SIGNALS = "signals"  #: to processes that are not its own
    PROCESSES = "processes"  #: ptrace, /proc of others
    SYSCALLS = "syscalls"  #: mounts, io_uring, bpf and other doors into the kernel
    LIMITS = "limits"  #: memory, processes, disk, open files, CPU time, output


class IsolationLevel(StrEnum):
    """Ordered: `limits` < `partial` < `full`."""

    LIMITS = "limits"  #: rlimits, a clean environment, a private folder, the tree killed at the end; no more
    PARTIAL = "partial"  #: some of the protections hold
    FULL = "full"  #: all of them hold

    @property
    def rank(self) -> int:
        return list(IsolationLevel).index(self)


class Isolation(Record):
    """What confined the runners."""

    level: IsolationLevel
    layers: tuple[str, ...]  #: by what: "namespaces", "landlock 7", "seccomp", "bubblewrap", "guard"
    holds: tuple[Protection, ...]
    missing: tuple[str, ...] = ()  #: why a protection does not hold here, and what would change it


OWN_SHARE = (
    0.5  #: of the work (own, PyTorch's and libraries' kernels), that a candidate's own have to do in track `own`
)


#: Share of the smaller one of the baseline's and the candidate's time that the computation of PyTorch and libraries may
#: take of a call in track `own`. To hide a library's call behind a filler pays only where the library is more than
#: 1 / FOREIGN_SHARE times as fast as the baseline.
FOREIGN_SHARE = 0.05


class Ownership(StrEnum):
    """Whose work a candidate's answer is."""

    OWN = "own"
    NOT_OWN = "not_own"  #: PyTorch's or a library's, or no kernel that was seen accounts for the time
    NOT_ESTABLISHED = "not_established"  #: this machine or device gives no evidence

    @property
    def label(self) -> str:
        """Returns the name in prose: "not established"."""
        return self.value.replace("_", " ")

    @classmethod
    def known(cls, recorded: Self | None, share: float | None) -> Self | None:
        """Return what a record says; an older one says it by its share of the work, or not at all (`None`)."""
        if recorded is not None or share is None:
            return recorded
        return cls("own") if share >= OWN_SHARE else cls("not_own")


class Track(StrEnum):
    """Whose kernels have to do the work."""

    OWN = "own"  #: the candidate's own
    ANY = "any"  #: library calls are allowed, their share is reported


class Reach(StrEnum):
    """What device code a candidate's process can run beside its own, on a GPU."""

    OWN = "own"  #: PyTorch's that copies, fills, concatenates, counts or draws random numbers
    SIMPLE = "simple"  #: all of PyTorch's that works element by element or reduces
    ALL = "all"


class RuleSet(StrEnum):
    """By whose contract a candidate is judged. Clocks, ownership, confinement and limits are the same under both."""

    HKBENCH = "hkbench"
    KERNELBENCH = "kernelbench"


class Races(StrEnum):
    """What becomes of a candidate whose kernels do what the architecture does not guarantee, on an emulated GPU."""

    FAIL = "fail"
    WARN = "warn"  #: the verdict warns of it, and the values decide


class Work(Record):
    """Whose code did the work of a forward pass: shares of the device time (CPU: of the samples), 0..1."""

    own: float
    pytorch: float
    library: float
    other: float = 0.0  #: interpreter, C library, operating system: nobody's kernel
    unexplained: float = 0.0  #: share of a timed call for which no kernel accounts, nor the host
    #: Seconds of a call in which PyTorch or a library computed, and how many are allowed; `None`: an older record.
    foreign_seconds: float | None = None
    allowed_seconds: float | None = None
    source: str  #: the witness: "kineto", "instruction pointers sampled from outside"
    kernels: tuple[str, ...] = ()  #: the longest ones that are not the candidate's
    reach: Reach | None = None  #: of the process that told it, on a GPU in track `own`; `None`: nobody asked
    missed: str | None = None  #: how the candidate failed with less in reach

    @property
    def own_share(self) -> float | None:
        """Own kernels' share of the work alone, without `other`: what the track weighs. `None` where nothing worked."""
        weighed = self.own + self.pytorch + self.library
        return self.own / weighed if weighed > 0.0 else None


class KernelLanguage(Record):
    """What a candidate's kernels are written in, whatever was asked for (see hkbench/backends/language.py)."""

    backend: BackendName
    reason: str
    kernels: tuple[str, ...] = ()  #: those that are written in it
    ran: bool  #: told from kernels that were seen running; else from the source alone


class Clocks(Record):
    """Three witnesses of the same calls. Seconds."""

    candidate: float  #: median by events (CPU: perf_counter), in the runner
    baseline: float
    candidate_overhead: float  #: median of (the evaluator's wall clock - the runner's figure)
    baseline_overhead: float
    trace: float | None = None  #: busy device time of one call by the kernel trace
    agree: bool
    reasons: tuple[str, ...] = ()  #: where they do not agree


class Contention(Record):
    """What else wanted the processors while a CPU's calls were timed, by the kernel's counts. `None`: not counted."""

    baseline_queued: float | None = None  #: share of the time in which its threads could run that they waited, 0..1
    candidate_queued: float | None = None  #: likewise; its own threads may wait for one another
    pressure: float | None = None  #: share of the baseline's calls in which some task waited (/proc/pressure/cpu)
    stolen: float | None = None  #: share of the processors' time that the hypervisor gave to others
    others: float | None = None  #: processors at work for others than evaluator and runners, on average
    measurements: int = 1  #: how many were made; what is said here is of the last one
    waited_seconds: float = 0.0  #: for the machine to be quiet
    reasons: tuple[str, ...] = ()  #: for which the measurement is unsettled

    @property
    def counted(self) -> bool:
        """Tell whether the kernel counts anything that would show other work."""
        return self.baseline_queued is not None or self.pressure is not None


class BoundQuality(StrEnum):
    """How near the least time of a `Floor` is to what a perfect kernel would take, by what it counts."""

    TIGHT = "tight"  #: what eager moves at least (inputs, parameters, outputs) or its one dense product, nearly whole
    LOOSE = "loose"  #: a part of that: what may be cached, folded, skipped or done another way is left out
    UNKNOWN = "unknown"  #: nothing says what the reference moves and computes at least


TIGHT_SHARE = 0.9  #: of what a pass moves or computes that a tight bound counts


class Floor(Record):
    """The least time that a device can take: bytes over bandwidth, operations over peak rate."""

    seconds: float
    bytes: int
    operations: int | None = None  #: `None`: not counted, the reference has structure that algebra could use
    bound: Literal["bytes", "operations"]
    #: Of inputs, parameters and outputs, each once; operations of all products. `None`: an older record.
    all_bytes: int | None = None
    all_operations: int | None = None
    own_rate: bool | None = None  #: the rate that operations are held against is the one of their dtype

    @property
    def counted(self) -> float | None:
        """Return the share of what one pass has to move, or to compute, that the bound counts, 0..1."""
        part, whole = (
            (self.bytes, self.all_bytes) if self.bound == "bytes" else (self.operations or 0, self.all_operations)
        )
        return min(1.0, part / whole) if whole else None

    @property
    def quality(self) -> BoundQuality:
        """Return how near the bound is to what a perfect kernel would take."""
        if self.counted is None:
            return BoundQuality.UNKNOWN
        if self.bound == "bytes":  # with products of which it says nothing, these may take longer
            whole = self.operations is not None or not self.all_operations
        else:
            whole = self.own_rate is True
        return BoundQuality.TIGHT if whole and self.counted >= TIGHT_SHARE else BoundQuality.LOOSE


class Sol(Record):
    """How near a candidate is to the speed of light: the least time of its device over its own, 0..1."""

    fraction: float
    bound: BoundQuality
    counted: float | None = None  #: share of the bytes or operations of one eager pass that the floor counts, 0..1


class LoweredPrecision(Record):
    """A setting by which PyTorch or a library computes with fewer bits than its inputs have, also if it is put back."""

    flag: str  #: "torch.backends.cuda.matmul.allow_tf32"; of a built file or a source the function that sets it
    value: str | None = None  #: that it was set to; `None`: not seen
    seen: Literal["setter", "built file", "source"]  #: a setter's is the runner's word, a built file's the evaluator's
    where: str | None = None  #: "line 12", the name of the file


class Severity(StrEnum):
    ADVICE = "advice"
    WARNING = "warning"
    HARD = "hard"  #: no honest use exists: the candidate is refused


class Finding(Record):
    """One hit of a static rule."""

    rule: str
    severity: Severity
    line: int | None
    text: str  #: what stands there, cut
    why: str
