"""The few figures of a profile that a stage wants in its prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hkbench.device_kinds import KINDS
from hkbench.records import KernelProfile, KernelUse, Owner, metrics
from hkbench.records.profile import Figure
from hkbench.store.sanitize import one_line

MAX_KERNELS = 3
NOTABLE_SHARE = 0.05  #: of the pass, below which a kernel is left out
SHOWN_NAME = 80
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_UNITS = {name: unit for model in KINDS for name, unit in model.counters.items()}


def key_metrics(profile: KernelProfile, names: Sequence[str]) -> tuple[str, ...]:
    """Return a line for each of the longest kernels, at most three, with those metrics alone, ordered as `names`.

    A metric that the profile lacks is left out, and so is a kernel that has none of them. Of kernels that are not the
    candidate's own only times and calls are said: what they do inside is nothing that it can change.
    """
    lines = []
    for use in profile.kernels[:MAX_KERNELS]:
        if use.share < NOTABLE_SHARE:
            break
        said = [f"{name} {value}" for name in names if (value := _value(use, name)) is not None]
        if said:
            lines.append(f"{_named(use)}: {', '.join(said)}")
    return tuple(lines)


def metric_names(profile: KernelProfile) -> tuple[str, ...]:
    """Return the metrics that a profile has, in the order of its kernels: figures, shape and resources, counters.

    Counters are those of `DeviceModel.counters`: newer versions of ncu give the mean, the least and the largest of each
    unasked.
    """

    def of(use: KernelUse) -> tuple[str, ...]:
        return (*_times(use), *use.figures, *_launch(use), *(name for name in use.counters if name in _UNITS))

    return tuple(dict.fromkeys(name for use in profile.kernels for name in of(use)))


def _named(use: KernelUse) -> str:
    """Return the kernel's name, which comes from the candidate, on one line, with the owner if it is another."""
    name = one_line(use.name, SHOWN_NAME).replace("`", "'")
    whose = {Owner.PYTORCH: " (PyTorch's)", Owner.LIBRARY: " (a library's)"}.get(use.owner, "")
    return f"`{name}`{whose}"


def _value(use: KernelUse, name: str) -> str | None:
    if name in (found := _times(use)):
        return found[name]
    if use.owner in (Owner.PYTORCH, Owner.LIBRARY):
        return None
    if name in use.figures:
        return _figure(use.figures[name])
    if name in use.counters:
        unit, value = _UNITS.get(name, ""), use.counters[name]
        return _figure(Figure(value=value, unit=unit)) if unit == "B" else f"{value:.4g} {unit}".rstrip()
    return _launch(use).get(name)


def _times(use: KernelUse) -> dict[str, str]:
    return {
        metrics.TIME_SHARE: f"{100 * use.share:.3g} %",
        metrics.TIME: f"{use.seconds * 1e3:.4g} ms a pass",
        metrics.CALLS: f"{use.calls} a pass",
    }


def _launch(use: KernelUse) -> dict[str, str]:
    """Return shape and resources, as far as the profiler says them."""
    found = {
        metrics.BLOCKS: (None if use.grid is None else math.prod(use.grid), ""),
        metrics.LDS: (use.lds_bytes, " B a block"),
        metrics.REGISTERS: (use.registers, " a thread"),
        metrics.VGPRS: (use.vgprs, " a lane"),
        metrics.AGPRS: (use.agprs, " a lane"),
        metrics.SCRATCH: (use.scratch_bytes, " B a lane"),
    }
    return {name: f"{value}{unit}" for name, (value, unit) in found.items() if value is not None}


def _figure(figure: Figure) -> str:
    if figure.unit == "fraction":
        return f"{100 * figure.value:.3g} %"
    for size, prefix in _PREFIXES:
        if figure.value >= size:
            return f"{figure.value / size:.3g} {prefix}{figure.unit}"
    return f"{figure.value:.3g} {figure.unit}"
