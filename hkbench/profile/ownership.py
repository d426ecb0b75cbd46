"""Whose code did the work of a forward pass: the candidate's, PyTorch's, or a library's.

Three things are kept apart, because an honest candidate uses all of them beside its own kernels:

- work: kernels that do an operation (GEMM, convolution, reduction, softmax, norm, attention, element-wise arithmetic).
  Only this is weighed. It is the candidate's own if the kernel stands in its source as a `__global__` or Triton
  function, or in what its build left; unless its namespace is PyTorch's or a library's, its name has a vendor's full
  form, Triton compiled it from the file of an installed package, or its text is an installed one (`copies.py`).
  A kernel that nobody is known to have written is a library's: the candidate would have had to define it.
- housekeeping: memcpy, memset, fill, copy, cast, concatenation by PyTorch; interpreter, C library, spinning OpenMP
  threads. It is `other`, and counts against nobody, up to the bound below.
- what torch.compile generated is PyTorch's, CUTLASS, CK, CUB and Thrust templates are the library's, also where the
  candidate's build instantiated them.

The rows come from the candidate's process: native code could forge them. On a GPU they are believed where nothing of
PyTorch's or a library's was in that process's reach (`Reach`); on a CPU they can only make PyTorch's share larger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from hkbench.profile.kernel_owner import kernel_owner
from hkbench.profile.names import Built
from hkbench.profile.sampled_code import COPIES, GENERATORS, SLEEF
from hkbench.records import Owner, Ownership, Reach, Track, Work
from hkbench.records.trust import FOREIGN_SHARE, OWN_SHARE, Rule

MAX_OTHER = 0.9  #: of a GPU's time; beyond it the candidate's own kernels have to have a share at all
MIN_OWN_BESIDE_OTHER = 0.05
MAX_COPIES = 0.5  #: of the samples of a CPU pass, without anything of the candidate's own
MIN_SAMPLES = 20  #: of instruction pointers; below, the dispatcher's word is taken alone
MIN_WORKING_SAMPLES = 20  #: of anybody's arithmetic; below, a busy machine showed hardly more than waiting threads
FEW_OPERATORS = 0.15  #: share of a CPU pass; with less in its operators, something else called the code of PyTorch
HIDDEN = "[hidden]"  #: samples of threads that may not be looked at (sandbox/sampler.py)
DISPATCHER = "dispatcher (too few samples of instruction pointers)"
WAITING = "instruction pointers sampled from outside (waiting threads and the interpreter, hardly any work)"
_TOO_LITTLE = (DISPATCHER, WAITING)
ROW_LENGTH = 4
FOREIGN = (Owner.PYTORCH, Owner.LIBRARY)
#: Moments in which a thread did not wait; with as many, the share of PyTorch's operators is at most what was seen from
#: outside.
MIN_TICKS = 100
SIGMAS = 2.0  #: standard errors by which a share of ticks may be too high by chance
CPU_SLACK_SECONDS = 2e-5  #: of a CPU's call that PyTorch may always take: allocating an output takes some of it
#: The host needs up to this long to launch a kernel from Python while the trace is recorded, so that a shorter gap
#: between two kernels is the host's. In a longer one a kernel can have been kept from the trace.
GAP_SECONDS = 6e-5
UNEXPLAINED_SLACK_SECONDS = 2e-5
UNEXPLAINED_NOISE = 0.15  #: share of a timed call; clocks move, and the caches of timed calls are colder
MAX_UNEXPLAINED = 0.2  #: share of a timed call, beyond the slack and the noise
#: Seconds and kernels of a call whose launches take the host less time than the stream is held before it.
SHORT_CALL, FEW_KERNELS = 1e-4, 8
SHORT_NOISE = 0.1  #: share of such a call
MAX_KERNELS = 8
SHOWN_NAME = 100
MAX_ROWS = 1024
MAX_SECONDS = 1e6  #: seconds

#: Operators of PyTorch that do no work, by the dispatcher's names: they make or move memory, or compare two tensors for
#: the host (`equal`), as a candidate does that packs a weight anew when it has changed.
_NO_WORK = re.compile(
    r"^aten::(?:empty\w*|as_strided\w*|view\w*|_unsafe_view|detach\w*|alias|slice|select|resize_\w*|reshape\w*|expand\w*"
    r"|permute|transpose|t|squeeze\w*|unsqueeze\w*|narrow|unbind|split\w*|chunk|flatten|result_type|item"
    r"|_local_scalar_dense|resolve_\w+|is_\w+|set_|zero_|fill_|zeros\w*|ones\w*|full\w*|new_\w+|copy_|_to_copy|to|clone"
    r"|contiguous|cat|_cat|stack|lift\w*|random_?|manual_seed|equal)$"
)
_PYTORCH_OPERATOR = re.compile(
    r"^(?:aten|mkldnn|mkldnn_prepacked|onednn|mkl|quantized\w*|prepacked|inductor|torchvision|xnnpack)::"
    r"|^Torch-Compiled Region|CompiledFxGraph|CompiledFunction|^TorchDynamo"
)

_OTHER_OBJECT = re.compile(
    r"^(?:libgomp|libiomp5?|libomp|libc|libm|libmvec|libpthread|libdl|librt|libstdc\+\+|libgcc_s|ld-linux|ld|libpython|python"
    r"|libz|libffi|libcrypto|libssl|libexpat|libasan|libtsan|libubsan|libsqlite3|liblzma|libbz2)(?:[-.\d]|$)"
)
_ARITHMETIC = re.compile(r"/lib(?:m|mvec)[-.][^/]*$")
_NO_FILE = re.compile(r"^$|^\[anon|^//anon|^anon|^/memfd:|^/dev/zero|^\[heap\]|^\[stack|^/SYSV")
_SCRATCH = ("/dev/shm/", "/tmp/", "/var/tmp/")  # noqa: S108 - each candidate has its own, and nobody else sees its files
_KERNEL = re.compile(r"^\[(?:vdso|vsyscall|kernel|kernel\.kallsyms|unknown)\]")
#: PyTorch's bindings and its allocator, which compute nothing.
_BINDING = re.compile(r"^(?:libtorch_python|libc10|libshm|_C\.|functorch)")
_SPINS = re.compile(r"^lib(?:gomp|iomp5?|omp)(?:[-.\d]|$)")
_STANDING_FOR = {HIDDEN: Owner.LIBRARY, SLEEF: Owner.UNKNOWN, COPIES: Owner.UNKNOWN, GENERATORS: Owner.PYTORCH}
_TORCH_OBJECT = re.compile(r"^(?:libtorch|libcaffe2)|^libaoti")


BEYOND = (
    f"KernelBench does not ask for this, the rule {Rule.OWN_KERNELS} does: compute in kernels of this file, or "
    "evaluate with --track any"
)
NEEDS = (
    "it needs device code of PyTorch or of a library, beyond what copies, fills, works element by element or reduces"
)
_NOBODYS = "interpreter, C library, waiting threads"
_BY_NO_OPERATOR = ", called by no operator that computes"


def device_work(
    trace: Mapping[str, Any],
    defined: frozenset[str],
    built: Built,
    seconds: tuple[float, float] | None = None,
    quick: float | None = None,
    queued_slack: float | None = None,
) -> Work | None:
    """Return shares of one traced call's device time (see runner/trace.py), by whose kernels took it.

    `defined` are the kernels that the candidate's file defines; `built` is what `names.BuildFolder` found in its
    private folder; `seconds` are the medians of the timed calls, the candidate's and the baseline's, and `quick` is
    one of the candidate's quickest: a kernel that is kept from the trace is in each of them, a host that waits for a
    processor is not; `queued_slack` as of `unexplained`. None when the trace holds nothing that can be used. The
    answer is untrusted, so everything in it is checked.
    """
    rows = traced_rows(trace)
    if rows is None:
        return None
    named = [(name, taken, kernel_owner(name, kind, defined, built)) for name, kind, taken in rows]
    left_out = _seconds(trace.get("left_out_seconds"))
    total = sum(taken for _, taken, _ in named) + left_out
    share = {
        owner: sum(taken for _, taken, found in named if found is owner) / total if total else 0.0
        for owner in (Owner.CANDIDATE, Owner.PYTORCH, Owner.LIBRARY, Owner.UNKNOWN)
    }
    foreign = [(name, taken / total) for name, taken, owner in named if owner in FOREIGN and total]
    work = Work(
        own=share[Owner.CANDIDATE],
        pytorch=share[Owner.PYTORCH],
        # Names beyond the trace's bound: nobody writes that many kernels.
        library=share[Owner.LIBRARY] + (left_out / total if total else 0.0),
        other=share[Owner.UNKNOWN],
        source="kineto",
        kernels=_shown(foreign),
        unexplained=unexplained(trace, quick or seconds[0], queued_slack) if seconds else 0.0,
    )
    if seconds is None:
        return work
    foreign_seconds = (work.pytorch + work.library) * total
    return _timed(work, min(1.0, foreign_seconds / seconds[0]), seconds, 0.0)


def owner_of_operator(name: str) -> Owner:
    """Return whose operator it is, on a CPU."""
    return Owner.PYTORCH if _PYTORCH_OPERATOR.search(name) else Owner.CANDIDATE


def operator_share(trace: Mapping[str, Any]) -> float | None:
    """Return the share of a CPU trace's wall time that PyTorch's operators took, without those that do no work."""
    rows, wall = traced_rows(trace), _seconds(trace.get("wall_seconds"))
    if rows is None or not wall:
        return None
    return min(
        1.0, sum(s for name, _, s in rows if _PYTORCH_OPERATOR.search(name) and not _NO_WORK.search(name)) / wall
    )


def cpu_work(
    objects: Mapping[str, int | float],
    aten_share: float,
    private_folder: str,
    built: Built | None = None,
    ticks: Mapping[frozenset[str], float] | None = None,
    seconds: tuple[float, float] | None = None,
) -> Work:
    """Return shares of the instruction pointers sampled from outside, by the file that is mapped there.

    `objects`: path -> samples (`sampled_code.files_of`). Files in the private folder are the candidate's, unless
    torch.compile wrote them or a library was copied there (`built.objects`). Code without a file is a library's, as
    oneDNN and FBGEMM generate it: nothing tells from outside who wrote it. PyTorch's copies are nobody's work, but for
    a pass that is hardly anything else. `aten_share` (`operator_share`) is the dispatcher's word, which counts where it
    is more than what was sampled. Too few samples (a pass shorter than a few milliseconds) leave the dispatcher alone;
    of the rest of the wall time the interpreter is taken to have had half.

    `ticks`: the files in which the running threads were at one moment -> the number of such moments. The time of
    PyTorch and libraries is that of the moments in which any thread was in their code, so that further threads of the
    candidate do not hide it. `seconds`: the medians of the timed calls, the candidate's and the baseline's.
    """
    ticks = ticks or {}
    total = float(sum(objects.values()))
    if total < MIN_SAMPLES:
        rest = (1.0 - aten_share) / 2
        work = Work(own=rest, pytorch=aten_share, library=0.0, other=rest, source=DISPATCHER)
        return _timed(work, aten_share, seconds, CPU_SLACK_SECONDS)
    paths = {*objects, *chain.from_iterable(ticks)}
    owners = {path: object_owner(path, private_folder, built or Built()) for path in paths}
    if _only_copies(objects, owners):
        owners[COPIES] = Owner.PYTORCH
    counts = dict.fromkeys(Owner, 0.0)
    for path, samples in objects.items():
        counts[owners[path]] += samples / total
    called = aten_share >= FEW_OPERATORS
    foreign = [
        (_shown_file(path, owners[path], called), n / total) for path, n in objects.items() if owners[path] in FOREIGN
    ]
    if counts[Owner.CANDIDATE]:
        # An own kernel calls exp and the like of libm, or Sleef's through at::vec::Vectorized.
        arithmetic = sum(count for path, count in objects.items() if path == SLEEF or _ARITHMETIC.search(path)) / total
        counts[Owner.CANDIDATE] += arithmetic
        counts[Owner.UNKNOWN] -= arithmetic
    copying = objects.get(COPIES, 0.0) if owners.get(COPIES) is Owner.UNKNOWN else 0.0
    working = sum(counts[owner] for owner in (Owner.CANDIDATE, *FOREIGN)) * total + copying
    present = _presence(ticks, owners)
    # Threads that wait for one another may do so within an operator.
    telling = {seen: n for seen, n in ticks.items() if not all(map(spins, seen))}
    if sum(telling.values()) >= MIN_TICKS:
        # A traced call that loses its processor within an operator says too much of PyTorch.
        aten_share = min(aten_share, _presence(telling, owners))
    pytorch = max(aten_share, counts[Owner.PYTORCH])
    rest = counts[Owner.CANDIDATE] + counts[Owner.LIBRARY] + counts[Owner.UNKNOWN]
    # Where the dispatcher saw more than the samples did, the others share what is left.
    scale = (1.0 - pytorch) / rest if rest else 0.0
    work = Work(
        own=counts[Owner.CANDIDATE] * scale,
        pytorch=pytorch,
        library=counts[Owner.LIBRARY] * scale,
        other=counts[Owner.UNKNOWN] * scale,
        source="instruction pointers sampled from outside" if working >= MIN_WORKING_SAMPLES else WAITING,
        kernels=_shown(foreign),
    )
    return _timed(work, max(aten_share, present if ticks else pytorch + work.library), seconds, CPU_SLACK_SECONDS)


def _only_copies(objects: Mapping[str, float], owners: Mapping[str, Owner]) -> bool:
    """Return whether a pass is PyTorch's copies and nothing of the candidate's own; waiting threads do not count."""
    active = sum(count for path, count in objects.items() if not spins(path))
    own = sum(count for path, count in objects.items() if owners[path] is Owner.CANDIDATE)
    return objects.get(COPIES, 0.0) > MAX_COPIES * active and own < MIN_OWN_BESIDE_OTHER * active


def _shown_file(path: str, owner: Owner, called: bool) -> str:
    past = owner is Owner.PYTORCH and path != COPIES and not called
    return (Path(path).name or "code without a file") + (_BY_NO_OPERATOR if past else "")


def _presence(ticks: Mapping[frozenset[str], float], owners: Mapping[str, Owner]) -> float:
    """Estimate from below the share of the time in which PyTorch or a library was at work."""
    total = sum(ticks.values())
    if not total:
        return 0.0
    share = sum(n for seen, n in ticks.items() if any(owners[path] in FOREIGN for path in seen)) / total
    return max(0.0, share - SIGMAS * math.sqrt(share * (1.0 - share) / total))


def _timed(work: Work, foreign: float, seconds: tuple[float, float] | None, slack: float) -> Work:
    """Add the seconds that PyTorch and libraries took of a timed call, and those that they may take.

    `foreign`: their share of the candidate's time; `seconds`: the candidate's and the baseline's; `slack`: the least
    that is allowed.
    """
    if seconds is None:
        return work
    changed = {"foreign_seconds": foreign * seconds[0], "allowed_seconds": max(slack, FOREIGN_SHARE * min(seconds))}
    return work.model_copy(update=changed)


def unexplained(trace: Mapping[str, Any], seconds: float, queued_slack: float | None = None) -> float:
    """Return the share of a GPU's timed call, `seconds` long, for which neither kernels nor the host account.

    `queued_slack`: what may lie between the kernels of a short call (`CallLimits`), whatever gaps the trace has: its
    launches were queued before its clock began.

    It is the time that was measured beyond what the traced kernels took, as far as the trace has gaps for it that are
    longer than the host takes to launch a kernel. It is 0 where the trace lists no rows, or not all of them. A call
    whose launches are queued before its clock begins takes as long as its kernels.
    """
    busy, window, rows = _seconds(trace.get("busy_seconds")), _seconds(trace.get("wall_seconds")), trace.get("rows")
    if not isinstance(rows, list) or len(rows) >= MAX_ROWS or not busy or not window or seconds <= 0.0:
        return 0.0
    if queued_slack is not None and seconds <= SHORT_CALL and len(rows) <= FEW_KERNELS:
        return max(0.0, seconds * (1.0 - SHORT_NOISE) - busy - queued_slack) / seconds
    missing = seconds * (1.0 - UNEXPLAINED_NOISE) - busy - UNEXPLAINED_SLACK_SECONDS
    until, gaps = 0.0, 0.0
    for row in rows:
        if not (isinstance(row, list) and len(row) == ROW_LENGTH):
            continue
        start, duration = _seconds(row[1]), _seconds(row[2])
        gaps += max(0.0, start - until - GAP_SECONDS)
        until = max(until, start + duration)
    gaps += max(0.0, window - until - GAP_SECONDS)
    return min(1.0, max(0.0, min(missing, gaps)) / seconds)


def own_objects(paths: Iterable[str], private_folder: str, built: Built) -> set[str]:
    """Return the mapped files whose code may be the candidate's by their names, also code that has no file."""
    return {
        path for path in paths if _NO_FILE.search(path) or object_owner(path, private_folder, built) is Owner.CANDIDATE
    }


@lru_cache(maxsize=256)
def spins(path: str) -> bool:
    """Return whether a mapped file is OpenMP's, whose threads run while they wait for others."""
    return _SPINS.search(Path(path).name) is not None


@lru_cache(maxsize=256)
def computes(path: str) -> bool:
    """Return whether code in a mapped file may be anybody's arithmetic: not the kernel's or the interpreter's."""
    return object_owner(path, "/dev/null", Built()) is not Owner.UNKNOWN


def object_owner(path: str, private_folder: str, built: Built) -> Owner:
    """Return whose code lies in a mapped file; `UNKNOWN` is nobody's."""
    if _KERNEL.search(path):
        return Owner.UNKNOWN
    path = path.removesuffix(" (deleted)")
    folder = private_folder.rstrip("/") + "/"
    if path.startswith(folder):
        made_by = built.objects.get(path)
        if made_by == "library":
            return Owner.LIBRARY
        return Owner.PYTORCH if made_by == "inductor" or "/torchinductor_" in path else Owner.CANDIDATE
    if path.startswith(_SCRATCH) and not Path(path).exists():
        return Owner.CANDIDATE
    if _NO_FILE.search(path):
        return Owner.LIBRARY
    if path in _STANDING_FOR:
        return _STANDING_FOR[path]
    name = Path(path).name
    if _BINDING.search(name) or _OTHER_OBJECT.search(name) or "/lib-dynload/" in path:
        return Owner.UNKNOWN
    if _TORCH_OBJECT.search(name):
        return Owner.PYTORCH
    return Owner.LIBRARY


def judgement(work: Work, track: Track) -> str | None:
    """Return why the work was not the candidate's, or None. In track `any` nothing is asked."""
    return None if track is Track.ANY else not_own(work)


def ownership(work: Work | None) -> Ownership:
    """Say whose work it was, whatever the track; `None`: there is no evidence."""
    if work is None:
        return Ownership.NOT_ESTABLISHED
    if not_own(work) is not None:
        return Ownership.NOT_OWN
    if work.reach not in (None, Reach.OWN):  # its process alone tells
        return Ownership.NOT_ESTABLISHED
    return Ownership.NOT_ESTABLISHED if work.source in _TOO_LITTLE else Ownership.OWN


def not_own(work: Work) -> str | None:
    """Say why the work was not the candidate's; None where nothing says so."""
    weighed = work.own + work.pytorch + work.library
    on_gpu = work.source == "kineto"
    if work.missed is not None and work.reach is Reach.ALL:
        return f"{NEEDS}; without it: {work.missed}{_advice(work)}"
    if work.unexplained > MAX_UNEXPLAINED:
        return (
            f"no kernel accounts for {work.unexplained:.0%} of the time that was measured: kernels were kept from the "
            f"trace, or the device waited for the host for more than {GAP_SECONDS * 1e6:.0f} us at once, as for an "
            f"allocation; allocate and build before forward{_advice(work)}"
        )
    if on_gpu and work.other > MAX_OTHER and work.own < MIN_OWN_BESIDE_OTHER:
        return (
            f"copies and fills by PyTorch took {work.other:.0%} of the device time, the candidate's own kernels "
            f"{work.own:.0%}{_advice(work)}"
        )
    if work.foreign_seconds is not None and work.allowed_seconds is not None:
        if not on_gpu and work.foreign_seconds <= CPU_SLACK_SECONDS == work.allowed_seconds:
            return None  # in a call of microseconds, allocating the output takes most of the time
        if work.foreign_seconds > work.allowed_seconds:
            return (
                f"PyTorch and libraries computed for {work.foreign_seconds * 1e6:.3g} us of a call; beside copies, "
                f"fills and casts at most {work.allowed_seconds * 1e6:.3g} us are allowed, {FOREIGN_SHARE:.0%} of what "
                f"the faster side takes (own kernels {work.own:.0%}, PyTorch's {work.pytorch:.0%}, libraries' "
                f"{work.library:.0%}){_advice(work)}"
            )
    if weighed <= 0.0 or work.own >= OWN_SHARE * weighed or work.source == WAITING:
        return None
    return (
        f"the candidate's own kernels did {work.own / weighed:.0%} of the work, PyTorch's {work.pytorch / weighed:.0%}"
        f", libraries' {work.library / weighed:.0%}; at least {OWN_SHARE:.0%} has to be its own{_advice(work)}"
    )


def _advice(work: Work) -> str:
    """Name the time that is not weighed, the longest kernels of others, the rule and what to change."""
    nobodys = f"; {work.other:.0%} of the time was nobody's work ({_NOBODYS}) and is not weighed"
    longest = f"; the longest others: {', '.join(work.kernels)}" if work.kernels else ""
    return f"{nobodys if work.source != 'kineto' else ''}{longest}. {BEYOND}"


def traced_rows(trace: Mapping[str, Any]) -> list[tuple[str, str, float]] | None:
    """Return (name, kind, seconds) of a trace's kernels, or None without a list. Other rows are passed over."""
    reported = trace.get("kernels")
    if "error" in trace or not isinstance(reported, list):
        return None
    return [
        (row["name"], str(row.get("kind")), _seconds(row.get("seconds")))
        for row in reported[:MAX_ROWS]
        if isinstance(row, dict) and isinstance(row.get("name"), str)
    ]


def _seconds(value: object) -> float:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MAX_SECONDS
    return float(value) if usable and isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _shown(foreign: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    longest = sorted(foreign, key=lambda item: -item[1])[:MAX_KERNELS]
    return tuple(f"{plain_name(name)} ({share:.0%})" for name, share in longest)


def plain_name(name: str) -> str:
    """Cut, without control characters and lone surrogates."""
    text = name.encode(errors="replace").decode()
    text = "".join(sign if sign.isprintable() else "?" for sign in text)
    return text if len(text) <= SHOWN_NAME else f"{text[:SHOWN_NAME]}..."
