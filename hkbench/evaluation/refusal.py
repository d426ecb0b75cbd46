"""Why right answers do not count, by what the witnesses said of them.

No torch: recorded verdicts are held against it too.
"""

from __future__ import annotations

from collections.abc import Sequence

from hkbench.evaluation import failures
from hkbench.profile import ownership
from hkbench.records import Clocks, Failure, FailureKind, Finding, Floor, Severity, Stage, Track, Work

#: Faster than MARGIN * floor is impossible. The flush writes twice the last-level cache, but under random replacement
#: a share of e^-2 = 13.5 % of the old lines outlives it and need not be read again; and Strassen's scheme saves 1/8 of
#: the multiplications a level, two levels 23 %. A quarter covers either.
MARGIN = 0.75

#: How `not_checked` begins for a witness that had nothing to say.
NO_FLOOR = "the least possible time: "
NO_WORK = "whose kernels did the work: "


def refusal(seconds: float, agreed: Clocks, least: Floor | None, work: Work | None, track: Track) -> Failure | None:
    """Return why a candidate whose median time is `seconds` is refused, if it is.

    `None` of a witness: it said nothing.
    """
    if not agreed.agree:
        return _refused(FailureKind.SUSPECT, "; ".join(agreed.reasons))
    if least is not None and seconds < MARGIN * least.seconds:
        what = f"{least.bytes} bytes" if least.bound == "bytes" else f"{least.operations} operations"
        message = (
            f"{seconds * 1e6:.1f} us are less than the {least.seconds * 1e6:.1f} us that {what} take on this device"
        )
        return _refused(FailureKind.IMPOSSIBLE, message)
    if work is not None:
        reason = ownership.judgement(work, track)
        if reason is not None:
            return _refused(FailureKind.NOT_OWN, reason)
    return None


def forbidden(findings: Sequence[Finding]) -> failures.CandidateFailed | None:
    """Return the failure of a candidate of which a static rule says that no honest one resembles it."""
    hard = next((finding for finding in findings if finding.severity is Severity.HARD), None)
    if hard is None:
        return None
    place = "" if hard.line is None else f"line {hard.line}: "
    return failures.failed(Stage.PARSE, FailureKind.FORBIDDEN, f"{place}{hard.text} ({hard.rule}: {hard.why})")


def _refused(kind: FailureKind, message: str) -> Failure:
    return failures.failed(Stage.TIME, kind, message).failure
