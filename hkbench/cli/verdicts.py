"""A verdict in a few lines."""

from __future__ import annotations

from statistics import median

from hkbench.records import (
    FurtherBaseline,
    Interval,
    KernelResources,
    LoweredPrecision,
    Readback,
    RuleSet,
    Shapes,
    Status,
    Verdict,
)
from hkbench.store.sanitize import strip_escapes

DETAIL_LINES = 30


def describe(verdict: Verdict) -> str:
    """Describe a verdict for a terminal: what came out, why, and what to keep in mind."""
    conditions = verdict.conditions
    lines = [f"{verdict.problem} on {conditions.device_name} ({conditions.backend})"]
    if verdict.status in (Status.INCORRECT, Status.REFUSED):
        lines += _failure(verdict)
    elif verdict.status is Status.EMULATED:
        lines.append(f"correct on an emulated {conditions.arch}, never run on the hardware")
        lines.append(f"  {len(verdict.trials)} trials passed against a {conditions.reference_precision} reference")
        lines += [kernel_resources(kernel) for kernel in verdict.resources]
    elif verdict.status is Status.COMPILED:
        lines.append("compiled, not run")
        lines += [kernel_resources(kernel) for kernel in verdict.resources]
    else:
        lines += _figures(verdict)
    lines += _by_ours(verdict)
    if verdict.shapes is not None:
        lines += _shapes(verdict.shapes)
    if (language := verdict.language) is not None:
        what = "kernels that ran" if language.ran else "kernels in the source, not seen running"
        lines.append(f"{what}: {language.backend} ({strip_escapes(language.reason)})")
    lines += [f"lowers the precision: {strip_escapes(_lowered(one))}" for one in verdict.precision]
    lines += [f"warning: {strip_escapes(warning)}" for warning in conditions.warnings]
    if conditions.not_checked:
        lines.append(f"not checked: {'; '.join(conditions.not_checked)}")
    return "\n".join(lines)


def _failure(verdict: Verdict) -> list[str]:
    failure = verdict.failure
    assert failure is not None
    trial = "" if failure.trial is None else f" in trial {failure.trial}"
    word = "refused" if verdict.status is Status.REFUSED else "not correct"
    lines = [f"{word}: {failure.kind} at stage {failure.stage}{trial}", f"  {strip_escapes(failure.message)}"]
    if failure.rule is not None:
        place = "" if failure.line is None else f", at line {failure.line}"
        beyond = " (KernelBench does not ask for it, see --rules)" if failure.is_beyond_kernelbench else ""
        lines += [f"  rule broken: {failure.rule}{place}{beyond}", f"  to change: {failure.change}"]
    if failure.detail:
        detail = strip_escapes(failure.detail).splitlines()
        lines += [f"  | {line}" for line in detail[:DETAIL_LINES]]
        if len(detail) > DETAIL_LINES:
            lines.append(f"  | ... {len(detail) - DETAIL_LINES} more lines in the JSON verdict")
    return lines


def _lowered(one: LoweredPrecision) -> str:
    value = "" if one.value is None else f" = {one.value}"
    place = "" if one.where is None else f", {one.where}"
    return f"{one.flag}{value} (by its {one.seen}{place})"


def _by_ours(verdict: Verdict) -> list[str]:
    """Say under other rules than hkbench's whose they are, and what hkbench's would have refused."""
    if verdict.conditions.rules is RuleSet.HKBENCH:
        return []
    found = [
        f"  {failure.kind}{'' if failure.rule is None else f' (rule {failure.rule})'}: {strip_escapes(failure.message)}"
        for failure in verdict.would_fail
    ]
    told = "hkbench's would refuse it:" if found else "what was tried of hkbench's passes too"
    return [f"by KernelBench's rules; {told}", *found]


def _figures(verdict: Verdict) -> list[str]:
    assert verdict.speedup is not None and verdict.baseline is not None and verdict.candidate is not None
    word = "correct, at least as fast" if verdict.status is Status.FAST else "correct, slower"
    word += ", unsettled" if verdict.unsettled else ""
    ratio, runs = verdict.speedup, len(verdict.candidate.samples)
    lines = [
        f"{word}: speed-up {ratio.value:.2f}x (95 %: {ratio.low:.2f} to {ratio.high:.2f})",
        f"  baseline  {_time(verdict.baseline.median)} (eager)",
        f"  candidate {_time(verdict.candidate.median)}, {runs} interleaved runs, {verdict.candidate.clock}",
        f"  {len(verdict.trials)} trials passed against {_reference(verdict)}",
    ]
    lines += [line for further in verdict.baselines for line in _further(further)]
    if (over := verdict.over_best) is not None:
        lines.append(f"  over the fastest baseline {over.value:.2f}x (95 %: {over.low:.2f} to {over.high:.2f})")
    if (sol := verdict.sol) is not None:
        counts = "" if sol.counted is None else f", which counts {sol.counted:.0%} of what a pass moves or computes"
        lines.append(f"  {sol.fraction:.0%} of the speed of light by a {sol.bound} bound{counts}")
    if verdict.readback is not None:
        lines += _readback(verdict.readback)
    if verdict.profile is not None:
        lines += [f"  profile: {strip_escapes(finding)}" for finding in verdict.profile.findings]
    return lines


def _readback(found: Readback) -> list[str]:
    """Return one line of what most readings during the measurement said."""
    read = found.during or (found.after,)
    figures = {
        "MHz": [one.clock_mhz for one in read],
        "MHz memory": [one.memory_clock_mhz for one in read],
        "W": [one.power_watts for one in read],
        "degrees": [one.temperature for one in read],
    }
    known = {unit: [value for value in values if value is not None] for unit, values in figures.items()}
    said = [f"{median(values):.0f} {unit}" for unit, values in known.items() if values]
    said += [] if found.joules_per_pair is None else [f"{found.joules_per_pair:.3g} J a pair of calls"]
    return [f"  clocks: {', '.join(said)}"] if said else []


def _further(found: FurtherBaseline) -> list[str]:
    if found.timing is None or found.speedup is None:
        return [f"  baseline  {found.name}: not timed, {strip_escapes(found.reason or '')}"]
    over = found.speedup
    line = f"  baseline  {_time(found.timing.median)} ({found.name}): speed-up {over.value:.2f}x"
    return [f"{line} (95 %: {over.low:.2f} to {over.high:.2f})", *(f"    {strip_escapes(one)}" for one in found.notes)]


def _reference(verdict: Verdict) -> str:
    if verdict.conditions.rules is RuleSet.KERNELBENCH:
        return "eager's answers, by torch.allclose"
    return f"a {verdict.conditions.reference_precision} reference"


def _shapes(shapes: Shapes) -> list[str]:
    """Return how many further shapes it is right at, and the speed-ups there."""
    gains = [f"{one.speedup.value:.2f}x" for one in shapes.results if one.speedup is not None]
    what = f"{shapes.described}; speed-ups there: {', '.join(gains)}" if gains else shapes.described
    return [f"  {strip_escapes(what)}"]


def _time(interval: Interval) -> str:
    return f"{interval.value * 1e3:.4g} ms (95 %: {interval.low * 1e3:.4g} to {interval.high * 1e3:.4g})"


def kernel_resources(kernel: KernelResources) -> str:
    """Return the lines on one kernel of an AMD GPU."""
    figures = {
        "VGPRs": kernel.vgprs,
        "AGPRs": kernel.agprs,
        "SGPRs": kernel.sgprs,
        "LDS bytes": kernel.lds_bytes,
        "scratch bytes/lane": kernel.scratch_bytes_per_lane,
        "VGPR spills": kernel.vgpr_spills,
        "waves/SIMD": kernel.occupancy_waves_per_simd,
    }
    said = ", ".join(f"{value} {name}" for name, value in figures.items() if value is not None)
    what = "function not inlined" if kernel.is_function else said
    lines = [f"  {kernel.arch} {strip_escapes(kernel.name)}: {what}"]
    if kernel.limited_by:
        step = f"; {kernel.next_step}" if kernel.next_step else ""
        lines.append(
            f"    with its largest workgroup ({kernel.max_workgroup_size} threads): "
            f"{kernel.whole_workgroup_waves_per_simd} of 8 waves/SIMD, "
            f"limited by {' and '.join(kernel.limited_by)}{step}"
        )
    if kernel.dynamic_lds:
        kept = kernel.whole_workgroup_waves_per_simd
        known = "" if kept is None else f"; up to {kernel.lds_budget} bytes a workgroup keep {kept} waves/SIMD"
        lines.append(f"    uses LDS whose size only the launch says{known}")
    if kernel.instructions:
        counts = ", ".join(f"{count} {name}" for name, count in kernel.instructions.items())
        lines.append(f"    instructions in the code (not executions): {counts}")
    lines += [f"    finding: {strip_escapes(finding)}" for finding in kernel.findings]
    return "\n".join(lines)
