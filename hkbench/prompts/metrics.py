"""What a profiler counted, as lines of a prompt."""

from __future__ import annotations

from hkbench.prompts.text import clean
from hkbench.records import KernelProfile, KernelUse, Owner
from hkbench.records.profile import Figure

KERNELS = 3  #: of the candidate's longest
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def metric_lines(profile: KernelProfile) -> tuple[str, ...]:
    """A line a metric of the candidate's longest kernels: derived figures, then the profiler's own counters.

    Counters are means of a call. What a part does not count is not there.
    """
    own = [use for use in profile.kernels if use.owner is Owner.CANDIDATE][:KERNELS]
    return tuple(f"{_name(use)}: {metric}" for use in own for metric in _metrics(use))


def _metrics(use: KernelUse) -> list[str]:
    launch = {
        "grid": use.grid,
        "block": use.block,
        "registers a thread": use.registers,
        "VGPRs": use.vgprs,
        "AGPRs": use.agprs,
        "SGPRs": use.sgprs,
        "bytes of LDS or shared memory a block": use.lds_bytes,
        "bytes of scratch a lane": use.scratch_bytes,
    }
    said = [f"{name} = {_plain(value)}" for name, value in launch.items() if value is not None]
    said += [f"{clean(name)} = {_scaled(figure)}" for name, figure in use.figures.items()]
    return said + [f"{clean(name)} = {value:.6g}" for name, value in use.counters.items()]


def _plain(value: int | tuple[int, ...]) -> str:
    return str(value) if isinstance(value, int) else " x ".join(map(str, value))


def _scaled(figure: Figure) -> str:
    if figure.unit == "fraction":
        return f"{figure.value:.1%}"
    for factor, prefix in _SCALES:
        if abs(figure.value) >= factor:
            return f"{figure.value / factor:.3g} {prefix}{figure.unit}"
    return f"{figure.value:.3g} {figure.unit}"


def _name(use: KernelUse) -> str:
    name = " ".join(clean(use.name).split())
    return name if len(name) <= 80 else f"{name[:77]}..."
