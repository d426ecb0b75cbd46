"""What the next prompt says about the last attempt, in the words of the tool that judged it."""

from __future__ import annotations

from hkbench.prompts.config import PromptBook
from hkbench.prompts.context import Reflection
from hkbench.prompts.text import clean, ending, first_errors
from hkbench.records import (
    REFUSALS,
    Backend,
    Failure,
    FailureKind,
    KernelProfile,
    KernelResources,
    Mismatch,
    Owner,
    Status,
    Verdict,
)

DETAIL_LIMIT = 4000  # characters: enough for the first errors, little beside the parent's code
_KERNELS_SHOWN = 8
_COMPILER_SPEAKS = frozenset({FailureKind.BUILD_ERROR, FailureKind.LOAD_ERROR})
_WHOSE = {
    Owner.CANDIDATE: "your kernel",
    Owner.PYTORCH: "PyTorch's own",
    Owner.LIBRARY: "a library's",
    Owner.UNKNOWN: "owner unknown",
}


def reflect_on(
    verdict: Verdict, candidate_source: str | None, attempt: int, book: PromptBook, backend: Backend
) -> Reflection:
    """The reflection on `verdict`, which judged the best sample of `attempt`.

    A correct candidate, slow or fast, gets its times, its profile and the hints for `slow`.
    """
    failure = verdict.failure
    kind = failure.kind if failure else FailureKind.SLOW
    return Reflection(
        attempt=attempt,
        code=None if candidate_source is None else clean(candidate_source),
        status=verdict.status,
        kind=None if verdict.status in (Status.FAST, Status.COMPILED) else kind,
        stage=failure.stage if failure else None,
        message=_message(failure, verdict) if failure else None,
        detail=_detail(failure) if failure else None,
        mismatch=_mismatch(failure.mismatch) if failure and failure.mismatch else None,
        speedup=verdict.speedup.value if verdict.speedup else None,
        baseline_ms=verdict.baseline.median.value * 1e3 if verdict.baseline else None,
        candidate_ms=verdict.candidate.median.value * 1e3 if verdict.candidate else None,
        profile=_profile(verdict.profile) if verdict.profile else (),
        resources=tuple(_resources(one) for one in verdict.resources),
        hints=tuple(clean(hint) for hint in book.hints(kind, backend)),
    )


def _message(failure: Failure, verdict: Verdict) -> str:
    message = ending(failure.message, DETAIL_LIMIT)
    if failure.signal and failure.signal not in message:
        message += f" (signal {clean(failure.signal)})"
    if failure.rule is not None:
        message += f" (fair play: {failure.rule})"
    passed = sum(trial.passed for trial in verdict.trials)
    if passed and failure.kind not in REFUSALS:
        message += (
            f" {passed} of the {len(verdict.trials)} trials passed, with other seeds, inputs or parameters: suspect a "
            "case that depends on the data, a race or uninitialised memory."
        )
    return message


def _detail(failure: Failure) -> str | None:
    if not failure.detail:
        return None
    cut = first_errors if failure.kind in _COMPILER_SPEAKS else ending
    return cut(failure.detail, DETAIL_LIMIT)


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
    return f"{_short(kernel.name)} ({clean(kernel.arch)}): {said or 'no figures'}"


def _short(name: str) -> str:
    name = " ".join(clean(name).split())
    return name if len(name) <= 120 else f"{name[:117]}..."


def _number(value: float | int | bool) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
