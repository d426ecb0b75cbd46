"""What a profile says of a slow candidate: at most three sentences, each with what it suggests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hkbench.profile import derived
from hkbench.profile.limits import launched_share, limit_of
from hkbench.profile.names import base
from hkbench.records import DeviceFacts, KernelUse, Owner, metrics

MAX_FINDINGS = 3
NOTABLE_SHARE = 0.05
LARGE_SHARE = 0.2  #: of the pass, from which a kernel's own figures are worth a sentence
MEMORY_BOUND = 0.6  #: of the memory's peak; measured copies reach some 0.8 of a data sheet
FEW_WAVES = 0.125  #: of the device's slots; a matrix kernel with 8 waves a compute unit fills a quarter
VECTOR_LOAD = 16.0  #: B a lane, the widest load there is: whatever brings more fetches what it does not want
SCALAR_LOAD = 4.5  #: B a lane and load: 4-byte loads with what is fetched beside
STREAMING = 0.6  #: L2 hit rate below which a kernel reads most bytes once
LOW_OCCUPANCY = 0.3
IDLE_MATRIX = 0.1
BUSY_MATRIX = 0.3  #: from which few waves are what a matrix kernel wants
NOTABLE_CONFLICTS = 0.2
SHOWN_NAME = 60

_CAST = re.compile(r"aten::(?:_to_copy|copy_)|direct_copy_kernel|_copy_kernel|bfloat16_copy|float16_copy")
#: Of a kernel's own name: not "convert", "gamma", "nonlinear".
_MATRIX = re.compile(
    r"gemm|matmul|(?<![a-z])mma?(?![a-z])|conv(?![a-z])|conv(?=olution)|attn|attention|mfma|(?<![a-z])linear",
    re.IGNORECASE,
)
_MFMA = "SQ_INSTS_VALU_MFMA_MOPS_"


@dataclass(frozen=True)
class Pass:
    """One forward pass: its kernels, longest first, and its wall seconds where the profiler left them as they are."""

    kernels: tuple[KernelUse, ...]
    wall: float | None
    on_gpu: bool


@dataclass(frozen=True)
class Found:
    """A sentence and its weight: the share of the pass that it might save, by a rough guess."""

    weight: float
    text: str


def findings(run: Pass, facts: DeviceFacts | None = None) -> tuple[str, ...]:
    """Return what matters of it, most important first. What the profile does not tell is not spoken of."""
    found = [*_casts(run), *_foreign(run)]
    if run.on_gpu:
        found += [*_launches(run), *_host(run)]
        for use in run.kernels:
            if use.share >= LARGE_SHARE and use.owner in (Owner.CANDIDATE, Owner.UNKNOWN):
                found += _kernel(use, facts)
    found.sort(key=lambda one: -one.weight)
    return tuple(one.text for one in found[:MAX_FINDINGS])


def _casts(run: Pass) -> Iterator[Found]:
    casts = sum(use.share for use in run.kernels if _CAST.search(use.name))
    if casts > NOTABLE_SHARE:
        yield Found(
            casts, f"{casts:.0%} of the time goes to PyTorch's dtype conversions and copies; convert in the kernel"
        )


def _foreign(run: Pass) -> Iterator[Found]:
    own = sum(use.share for use in run.kernels if use.owner is Owner.CANDIDATE)
    if own < 0.5:
        yield Found(
            1.0 - own,
            f"only {own:.0%} of the time is spent in your own kernels; PyTorch or a library does the rest: "
            "do that work in your kernels",
        )


def _launches(run: Pass) -> Iterator[Found]:
    launches = sum(use.calls for use in run.kernels)
    if launches > 3:
        yield Found(
            min(0.5, 0.02 * launches),
            f"{launches} kernels run per pass; each one reads and writes memory again: fuse them",
        )


def _host(run: Pass) -> Iterator[Found]:
    busy = sum(use.seconds for use in run.kernels)
    if run.wall is not None and run.wall > 2 * busy + 2e-5:
        yield Found(
            1.0 - busy / run.wall,
            f"the GPU works {busy * 1e3:.3f} ms of {run.wall * 1e3:.3f} ms: host work between launches dominates; "
            "launch fewer kernels, and do not synchronise, allocate or copy to the host in forward",
        )


def _kernel(use: KernelUse, facts: DeviceFacts | None) -> Iterator[Found]:
    yield from _spills(use)
    yield from _matrix(use)
    yield from _occupancy(use, facts)
    yield from _grid(use, facts)
    yield from _scattered(use)
    yield from _loads(use)
    yield from _conflicts(use)
    yield from _memory(use)


def _spills(use: KernelUse) -> Iterator[Found]:
    local = _value(use, metrics.LOCAL_TRAFFIC)
    if use.scratch_bytes:
        what = f"keeps {use.scratch_bytes} bytes a lane in scratch memory"
    elif local:
        what = f"moves {local / 1e6:.3g} MB a call to and from local memory"
    else:
        return
    yield Found(
        0.7 * use.share,
        f"{_named(use)} {what} (spilled registers or arrays that are indexed at run time): use smaller tiles, "
        "unroll so that every index is a constant, or allow more registers with __launch_bounds__",
    )


def _matrix(use: KernelUse) -> Iterator[Found]:
    busy = _value(use, metrics.MATRIX_UNIT_USE)
    works = any(name.startswith(_MFMA) and value > 0 for name, value in use.counters.items())
    named = _MATRIX.search(base(use.name)) is not None
    if busy is None or busy >= IDLE_MATRIX or not (works or named or busy > derived.TENSOR_AT_WORK):
        return
    if not works and busy <= derived.TENSOR_AT_WORK:
        advice = "it does its products without them: use matrix instructions (MFMA, tensor cores)"
    else:
        advice = "load the next tile while the present one is multiplied, and give each wave larger tiles"
    yield Found(
        0.8 * use.share * (1 - busy), f"{_named(use)} keeps the matrix units busy {busy:.0%} of the time; {advice}"
    )


def _occupancy(use: KernelUse, facts: DeviceFacts | None) -> Iterator[Found]:
    measured = _value(use, metrics.OCCUPANCY)
    limit = limit_of(use, facts) if facts is not None else None
    if limit is None or limit.share >= LOW_OCCUPANCY or (_value(use, metrics.MATRIX_UNIT_USE) or 0.0) >= BUSY_MATRIX:
        return
    shown = "" if measured is None else f" (measured: {measured:.0%})"
    yield Found(
        0.4 * use.share * (1 - limit.share),
        f"{_named(use)} can fill {limit.share:.0%} of the device's wave slots{shown}, because {limit.reason}; "
        "use less of it, or give each wave more independent work to hide latency",
    )


def _grid(use: KernelUse, facts: DeviceFacts | None) -> Iterator[Found]:
    launched = launched_share(use, facts) if facts is not None else None
    if launched is None or launched >= FEW_WAVES:
        return
    assert use.grid is not None and use.block is not None
    yield Found(
        0.6 * use.share * (1 - launched),
        f"{_named(use)} is launched with {math.prod(use.grid)} blocks of {math.prod(use.block)} threads, which fill "
        f"{launched:.0%} of the device's wave slots: split the work among more of them (a wave or a block a row, "
        "several blocks a reduction)",
    )


def _scattered(use: KernelUse) -> Iterator[Found]:
    width = _value(use, metrics.LOAD_WIDTH)
    if width is None or width <= 1.05 * VECTOR_LOAD:
        return
    yield Found(
        0.6 * use.share * (1 - VECTOR_LOAD / width),
        f"a load of {_named(use)} touches {width:.0f} bytes a lane, more than any load wants: neighbouring threads "
        "read far apart; let neighbours read neighbouring addresses",
    )


def _loads(use: KernelUse) -> Iterator[Found]:
    width, hits = _value(use, metrics.LOAD_WIDTH), _value(use, metrics.L2_HIT_RATE)
    matrix = _value(use, metrics.MATRIX_UNIT_USE)
    if width is None or hits is None or hits >= STREAMING or width > SCALAR_LOAD:
        return
    if (matrix or 0.0) > derived.TENSOR_AT_WORK:
        return
    if (_value(use, metrics.BANDWIDTH_OF_PEAK) or 0.0) >= MEMORY_BOUND:
        return  # at the memory's peak the width of the loads costs nothing
    yield Found(
        0.5 * use.share,
        f"a load of {_named(use)} brings at most {width:.1f} bytes a lane: no vector loads; read 16 bytes at once "
        "(float4, or eight 16-bit values)",
    )


def _conflicts(use: KernelUse) -> Iterator[Found]:
    lost = _value(use, metrics.LDS_CONFLICTS)
    if lost is not None and lost >= NOTABLE_CONFLICTS:
        yield Found(
            0.3 * use.share * lost,
            f"bank conflicts take {lost:.0%} of the LDS (shared memory) cycles of {_named(use)}: pad or swizzle rows",
        )


def _memory(use: KernelUse) -> Iterator[Found]:
    peak, hits = _value(use, metrics.BANDWIDTH_OF_PEAK), _value(use, metrics.L2_HIT_RATE)
    if peak is None or peak < MEMORY_BOUND:
        return
    again = "" if hits is None or hits < STREAMING else " or reorder blocks so that caches serve more"
    yield Found(
        0.3 * use.share,
        f"{_named(use)} is bound by memory, at {peak:.0%} of the data sheet's bandwidth: only fewer bytes help; "
        f"fuse with its neighbours, keep intermediate results in registers{again}",
    )


def _value(use: KernelUse, name: str) -> float | None:
    figure = use.figures.get(name)
    return None if figure is None else figure.value


def _named(use: KernelUse) -> str:
    """Return the kernel's own name, without arguments and namespaces."""
    name = base(use.name) or use.name
    return f"`{name if len(name) <= SHOWN_NAME else f'{name[:SHOWN_NAME]}...'}`"
