"""What the next prompt says about the last attempt, in the words of the tool that judged it."""

from __future__ import annotations

from collections.abc import Sequence

from hkbench.prompts.config import PromptBook
from hkbench.prompts.context import Reflection, SynthesisTask
from hkbench.prompts.error_classes import classify
from hkbench.prompts.places import quoted
from hkbench.prompts.text import clean, ending, first_errors
from hkbench.records import (
    REFUSALS,
    Advice,
    BackendName,
    Failure,
    FailureKind,
    Hint,
    HintKind,
    KernelProfile,
    KernelResources,
    Mismatch,
    Owner,
    Pitfall,
    Remedy,
    Shapes,
    Status,
    Verdict,
)
from hkbench.store.sanitize import one_line

DETAIL_LIMIT = 4000  # characters: enough for the causes of a failed build, little beside the parent's code
REMEDY_LIMIT = 400
_KERNELS_SHOWN = 8
_SHAPE_LIMIT = 500  #: characters of what failed at one shape
_NOT_TIMED = (Status.COMPILED, Status.EMULATED)  #: and nothing is wrong
_FAULTS_SHOWN = 4  #: beside the first: one change often mends them all
_EMULATOR_SPEAKS = frozenset({FailureKind.RACE, FailureKind.OUT_OF_BOUNDS, FailureKind.UNSUPPORTED})
_COMPILER_SPEAKS = frozenset({FailureKind.BUILD_ERROR, FailureKind.LOAD_ERROR})
_WHOSE = {
    Owner.CANDIDATE: "your kernel",
    Owner.PYTORCH: "PyTorch's own",
    Owner.LIBRARY: "a library's",
    Owner.UNKNOWN: "owner unknown",
}


#: The fields of a judge's answer as a prompt calls them.
_SAID = {
    "critical_issue": "The critical issue",
    "why_it_matters": "Why it matters",
    "minimal_fix_hint": "The smallest fix",
    "bottleneck": "The bottleneck",
    "optimisation_method": "The method",
    "modification_plan": "The plan",
}


def with_advice(reflection: Reflection, advice: Advice) -> Reflection:
    """Return the reflection with a judge's answer."""
    said = {_SAID[name]: ending(value, DETAIL_LIMIT) for name, value in advice.model_dump().items()}
    return reflection.model_copy(update={"advice": said})


def with_remedies(reflection: Reflection, remedies: Sequence[Remedy]) -> Reflection:
    """Return the reflection with what mended such a failure in earlier runs."""
    said = tuple(as_shown(one) for one in remedies)
    return reflection.model_copy(update={"remedies": tuple(one for one in said if one.text not in reflection.hints)})


def as_shown(remedy: Remedy) -> Remedy:
    """Return a remedy with its text as a prompt shows it: one short line without control characters."""
    return remedy.model_copy(update={"text": one_line(clean(remedy.text), REMEDY_LIMIT)})


def pitfall_as_shown(pitfall: Pitfall) -> Pitfall:
    """Return a pitfall with its texts as a prompt shows them."""
    error = one_line(clean(pitfall.error), REMEDY_LIMIT)
    return pitfall.model_copy(update={"error": error, "remedy": as_shown(pitfall.remedy)})


def hints_of(reflection: Reflection | None, task: SynthesisTask | None = None) -> tuple[Hint, ...]:
    """Return the hints that a prompt shows."""
    found = [Hint(kind=hint.kind, text=hint.text) for hint in task.hints] if task is not None else []
    if reflection is not None:
        found += [Hint(kind=HintKind.RULE, text=text) for text in reflection.hints]
        advice = "; ".join(f"{what}: {said}" for what, said in reflection.advice.items())
        found += [Hint(kind=HintKind.ADVICE, text=advice)] if advice else []
        found += [Hint(kind=HintKind.REMEDY, text=one.text) for one in reflection.remedies]
    return tuple(found)


def reflect_on(
    verdict: Verdict,
    candidate_source: str | None,
    attempt: int,
    book: PromptBook,
    backend: BackendName,
    *,
    sample: int = 1,
) -> Reflection:
    """Return the reflection on `verdict`, which judged the best sample of `attempt`, its `sample`th.

    A correct candidate, slow or fast, gets its times, its profile and the hints for `slow`; one that was only compiled
    the compiler's figures and findings, and no hints: those for `slow` speak of a profile. After a failed build the
    hints for the classes of its errors come before those for every failed build; where there are several classes, each
    hint names the line that it is about.
    """
    failure = verdict.failure
    kind = failure.kind if failure else FailureKind.SLOW
    return Reflection(
        attempt=attempt,
        sample=sample,
        code=None if candidate_source is None else clean(candidate_source),
        status=verdict.status,
        kind=None if verdict.status in (Status.FAST, *_NOT_TIMED) else kind,
        stage=failure.stage if failure else None,
        message=_message(failure, verdict) if failure else None,
        detail=_detail(failure, candidate_source) if failure else None,
        mismatch=_mismatch(failure.mismatch) if failure and failure.mismatch else None,
        speedup=verdict.speedup.value if verdict.speedup else None,
        baseline_ms=verdict.baseline.median.value * 1e3 if verdict.baseline else None,
        candidate_ms=verdict.candidate.median.value * 1e3 if verdict.candidate else None,
        profile=_profile(verdict.profile) if verdict.profile else (),
        resources=tuple(_resources(one) for one in verdict.resources),
        hints=()
        if verdict.status in _NOT_TIMED
        else tuple(clean(hint) for hint in _hints(failure, kind, book, backend)),
    )


def _hints(failure: Failure | None, kind: FailureKind, book: PromptBook, backend: BackendName) -> list[str]:
    general = book.hints(kind, backend)
    if failure is None or kind not in _COMPILER_SPEAKS:
        return general
    # A message is the first line of the detail, without the notes by which that line is understood.
    found = classify(clean(failure.detail or "")) or classify(clean(failure.message))
    special: dict[str, str] = {}
    for key, line in found.items():
        for hint in book.class_hints((key,), backend):
            special.setdefault(hint, f"{line}: {hint}" if line is not None and len(found) > 1 else hint)
    return [*special.values(), *(hint for hint in general if hint not in special)]


def _message(failure: Failure, verdict: Verdict) -> str:
    message = ending(failure.message, DETAIL_LIMIT)
    if failure.signal and failure.signal not in message:
        message += f" (signal {clean(failure.signal)})"
    if failure.rule is not None:
        place = "" if failure.line is None else f", line {failure.line}"
        message += f" (fair play: {failure.rule}{place}). To change: {failure.change}."
    passed = sum(trial.passed for trial in verdict.trials)
    if failure.kind is FailureKind.SHAPES and verdict.shapes is not None:
        return _shapes_message(verdict.shapes)
    if passed and failure.kind not in REFUSALS:
        message += (
            f" {passed} of the {len(verdict.trials)} trials passed, with other seeds, inputs or parameters: suspect a "
            "case that depends on the data, a race or uninitialised memory."
        )
    return message


def _shapes_message(shapes: Shapes) -> str:
    """Name the visible shapes that failed, and how; of hidden ones how many."""
    said = [f"right at the stated shape, but only on {shapes.right} of {len(shapes.results)} further shapes."]
    named = [(one.described, one.failure) for one in shapes.failed if one.visible and one.failure is not None]
    said += [f"At {where}: {failure.kind}: {ending(failure.message, _SHAPE_LIMIT)}" for where, failure in named]
    hidden = [one for one in shapes.failed if not one.visible]
    if hidden:
        kinds = ", ".join(f"{one.kind}: {one.failure.kind}" for one in hidden if one.failure is not None)
        said.append(f"Hidden shapes that failed: {len(hidden)} ({kinds}).")
    return "\n".join(said)


def _detail(failure: Failure, candidate_source: str | None) -> str | None:
    if failure.kind in _EMULATOR_SPEAKS:
        more = failure.detail.splitlines() if failure.detail else []
        named = [clean(line) for line in quoted(candidate_source, "\n".join([failure.message, *more]))]
        return ending("\n".join([*named, *more[:_FAULTS_SHOWN]]), DETAIL_LIMIT) or None
    if not failure.detail:
        return None
    if failure.kind not in _COMPILER_SPEAKS:
        return ending(failure.detail, DETAIL_LIMIT)
    detail = clean(failure.detail)
    if len(detail) <= DETAIL_LIMIT:
        return detail  # the build has cut it to its causes
    return first_errors(detail, DETAIL_LIMIT)


def _mismatch(found: Mismatch) -> str:
    share = 100 * found.wrong_elements / max(found.elements, 1)
    place = ", ".join(map(str, found.index))
    text = (
        f"{clean(found.output)}[{place}]: expected {_number(found.expected)}, got {_number(found.got)}; "
        f"{found.wrong_elements} of {found.elements} elements are wrong ({share:.3g} %)"
    )
    if found.max_abs_error is not None:
        text += f"; largest absolute error {_number(found.max_abs_error)}"
    if found.max_rel_error is not None:
        text += f"; largest relative error {_number(found.max_rel_error)}"
    return text


def _profile(profile: KernelProfile) -> tuple[str, ...]:
    lines = [
        f"{_short(use.name)}: {use.seconds * 1e3:.4g} ms, {use.share:.0%} of the pass, "
        f"{use.calls} call{'s' if use.calls != 1 else ''}, {_WHOSE[use.owner]}"
        for use in profile.kernels[:_KERNELS_SHOWN]
    ]
    left = len(profile.kernels) - _KERNELS_SHOWN
    if left > 0:
        lines.append(f"{left} more kernels")
    return (*lines, *(clean(finding) for finding in profile.findings))


def _resources(kernel: KernelResources) -> str:
    figures = {
        "VGPRs": kernel.vgprs,
        "AGPRs": kernel.agprs,
        "SGPRs": kernel.sgprs,
        "bytes of LDS": kernel.lds_bytes,
        "bytes of scratch a lane": kernel.scratch_bytes_per_lane,
        "VGPR spills": kernel.vgpr_spills,
        "SGPR spills": kernel.sgpr_spills,
        "waves a SIMD": kernel.occupancy_waves_per_simd,
    }
    said = ", ".join(f"{value} {what}" for what, value in figures.items() if value is not None)
    parts = ["device function, not inlined" if kernel.is_function else said or "no figures"]
    if kernel.limited_by:
        step = f" ({kernel.next_step})" if kernel.next_step else ""
        parts.append(
            f"with its largest workgroup ({kernel.max_workgroup_size} threads) "
            f"{kernel.whole_workgroup_waves_per_simd} of 8 waves a SIMD, "
            f"limited by {' and '.join(kernel.limited_by)}{step}"
        )
    if kernel.dynamic_lds:
        kept = kernel.whole_workgroup_waves_per_simd
        known = "" if kept is None else f"; up to {kernel.lds_budget} bytes a workgroup keep {kept} waves a SIMD"
        parts.append(f"the LDS asked for at launch is not counted{known}")
    if kernel.instructions:
        counts = ", ".join(f"{count} {clean(name)}" for name, count in kernel.instructions.items())
        parts.append(f"instructions in the code, not executions: {counts}")
    parts += [clean(finding) for finding in kernel.findings]
    return f"{_short(kernel.name)} ({clean(kernel.arch)}): {'; '.join(parts)}"


def _short(name: str) -> str:
    name = " ".join(clean(name).split())
    return name if len(name) <= 120 else f"{name[:117]}..."


def _number(value: float | int | bool) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
