"""What today's rules make of a recorded verdict, as far as the record says it. Nothing is run, no torch.

The order is the evaluator's own (`evaluate.py`): values, clocks, floor, work, static rules, speed-up. A step that the
record does not suffice for ends it: then the sample has to be judged again. What stopped a candidate before a step says
nothing of that step, so a failure stands unless the rule that it rests on has changed.

What the record has no figures of is taken as it was found then, and the verdict says so: the kernel trace, the time
after the call, other streams. A suspicion that rests on them stays. One that today's thresholds raise anew is not held
against the sample: the evaluator measures a suspect twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from hkbench.device_kinds import model_of
from hkbench.evaluation import clocks
from hkbench.evaluation.measure import Measurement, Samples, conclude
from hkbench.evaluation.refusal import NO_FLOOR, NO_WORK, forbidden, refusal
from hkbench.reading import read_apart
from hkbench.records import (
    Clocks,
    Conditions,
    Failure,
    FailureKind,
    Finding,
    Stage,
    Status,
    Track,
    Trial,
    Verdict,
)
from hkbench.regrade.tolerances import Held, held

#: Failures that a wider tolerance could have spared: they rest on a comparison of values.
_OF_VALUES = frozenset({FailureKind.WRONG_VALUES, FailureKind.NOT_REPEATABLE, FailureKind.STALE_PARAMETERS})
#: Of a file that is refused without findings.
_UNREAD = frozenset({FailureKind.SYNTAX_ERROR, FailureKind.LIMIT, FailureKind.NO_MODEL_NEW})
AS_THEN = "today's thresholds for the kernel trace and the time after the call: the record has what they came to alone"


@dataclass(frozen=True)
class Rules:
    """What verdicts are held against."""

    track: Track
    rtol: Mapping[str, float]  #: by dtype: all of them, changed ones included


@dataclass(frozen=True)
class Regraded:
    """Today's verdict, or why it takes another evaluation; neither: the verdict stays as it is."""

    verdict: Verdict | None = None
    again: str | None = None


def regrade(verdict: Verdict, code: bytes, rules: Rules) -> Regraded:
    """Return what becomes of a verdict; `code` is the candidate's file."""
    if verdict.status in (Status.COMPILED, Status.EMULATED):
        return Regraded()
    if sha256(code).hexdigest() != verdict.conditions.candidate_sha256:
        return Regraded(again="code.py is not the code that was judged")
    found = _Record(verdict, code, rules)
    try:
        now = found.failed() if verdict.status is Status.INCORRECT else found.timed()
    except _NotRecorded as lack:
        return Regraded(again=str(lack))
    if now == verdict:
        return Regraded()
    if now.clocks is not None:
        not_checked = tuple(dict.fromkeys((*now.conditions.not_checked, AS_THEN)))
        now = _with(now, conditions=now.conditions.model_copy(update={"not_checked": not_checked}))
    return Regraded(now)


class _NotRecorded(Exception):
    """The record does not suffice; the message says for what."""


class _Record:
    def __init__(self, verdict: Verdict, code: bytes, rules: Rules) -> None:
        self._verdict = verdict
        self._code = code
        self._rules = rules
        self._held = held(verdict, rules.rtol)

    def failed(self) -> Verdict:
        """Decide again on an incorrect candidate."""
        verdict, failure = self._verdict, self._verdict.failure
        assert failure is not None, "an incorrect verdict names its failure"
        if failure.kind is FailureKind.FORBIDDEN:
            return self._forbidden_then()
        if failure.kind in _OF_VALUES and self._held.wider:
            raise _NotRecorded("its first failing comparison ended it, and tolerances are wider now")
        if failure.stage is Stage.EXTRACT or (failure.stage is Stage.PARSE and failure.kind in _UNREAD):
            return verdict
        findings = self._findings()
        if findings == verdict.findings:
            return verdict
        conditions = verdict.conditions.model_copy(update={"track": self._rules.track})
        return _with(verdict, findings=findings, conditions=conditions)

    def _forbidden_then(self) -> Verdict:
        """Decide again where a static rule refused what had passed all else; the record has no times of it."""
        self._check_values_known()
        if self._held.outcome is Held.FAILS:
            return self._wrong(self._findings())
        findings = self._findings()
        failed = forbidden(findings)
        if failed is None:
            raise _NotRecorded("no static rule forbids it today, and the record of what is forbidden has no times")
        if self._rules.track is Track.OWN and self._verdict.conditions.track is Track.ANY:
            raise _NotRecorded("the record of what is forbidden does not say whose kernels did the work")
        return _with(self._verdict, findings=findings, failure=failed.failure, conditions=self._conditions())

    def timed(self) -> Verdict:
        """Decide again on a candidate whose answers were right."""
        self._check_values_known()
        findings = self._findings()
        if self._held.outcome is Held.FAILS:
            return self._wrong(findings)
        measured = self._measured()
        agreed = self._clocks(measured)
        self._check_witnesses(agreed)
        verdict, track = self._verdict, self._rules.track
        refused = refusal(measured.candidate.median.value, agreed, verdict.floor, verdict.work, track)
        if refused is None:
            failed = forbidden(findings)
            if failed is not None:
                return self._incorrect(failed.failure, findings, self._held.trials)
        speedup = None if refused is not None else measured.speedup
        return _with(
            verdict,
            status=Status.REFUSED if speedup is None else Status.FAST if speedup.value >= 1.0 else Status.SLOW,
            failure=refused,
            trials=self._held.trials,
            baseline=measured.baseline,
            candidate=measured.candidate,
            speedup=speedup,
            clocks=agreed,
            findings=findings,
            profile=None if refused is not None else verdict.profile,
            conditions=self._conditions(measured.warnings),
        )

    def _check_values_known(self) -> None:
        if self._held.outcome is Held.UNKNOWN:
            raise _NotRecorded(self._held.text)

    def _findings(self) -> tuple[Finding, ...]:
        return read_apart(self._code, self._verdict.conditions.backend, self._rules.track).findings

    def _measured(self) -> Measurement:
        """Return the recorded times by today's formulas.

        Not recorded: until the device is idle; once also after the call.
        """
        left, right = self._verdict.baseline, self._verdict.candidate
        if left is None or right is None or left.judge_wall is None or right.judge_wall is None:
            raise _NotRecorded("the record lacks the evaluator's clock of the timed calls (an older run)")
        baseline, candidate = (
            Samples(
                seconds=[seconds - side.unreported for seconds in side.samples],
                wall=list(side.judge_wall or ()),
                rest=list(side.judge_rest or ()),
            )
            for side in (left, right)
        )
        if not _are_sound(baseline) or not _are_sound(candidate):
            raise _NotRecorded("the recorded times are damaged")
        model = model_of(self._verdict.conditions.device)
        return conclude(baseline, candidate, left.clock, left.warmups, model, unreported=right.unreported)

    def _clocks(self, measured: Measurement) -> Clocks:
        """Return the recorded witnesses, those that the record suffices for by today's thresholds."""
        then = self._verdict.clocks
        if then is None:
            raise _NotRecorded("the record lacks the witnesses of time (an older run)")
        reasons = clocks.by_wall(*measured.samples, model_of(self._verdict.conditions.device))
        if then.agree:
            if reasons:
                raise _NotRecorded(f"suspect by today's thresholds, and a suspect is measured twice: {reasons[0]}")
            return then
        others = [reason for reason in then.reasons if not clocks.is_by_wall(reason)]
        return then.model_copy(update={"agree": not (reasons or others), "reasons": (*reasons, *others)})

    def _check_witnesses(self, agreed: Clocks) -> None:
        """Check that the evaluator looked in vain for a floor or share of work that is missing."""
        if not agreed.agree:
            return  # neither is asked
        verdict = self._verdict
        for value, sentence in ((verdict.floor, NO_FLOOR), (verdict.work, NO_WORK)):
            looked_for = any(text.startswith(sentence) for text in verdict.conditions.not_checked)
            if value is None and not looked_for:
                raise _NotRecorded(f"the record does not say {sentence.removesuffix(': ')} (an older run)")

    def _wrong(self, findings: tuple[Finding, ...]) -> Verdict:
        failure = Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message=self._held.text)
        return self._incorrect(failure, findings, ())  # which of the trials pass is not in the record

    def _incorrect(self, failure: Failure, findings: tuple[Finding, ...], trials: tuple[Trial, ...]) -> Verdict:
        parts = dict.fromkeys(
            ("baseline", "candidate", "speedup", "clocks", "floor", "work", "ownership", "language", "profile")
        )
        conditions = self._conditions()
        return _with(
            self._verdict, status=Status.INCORRECT, failure=failure, findings=findings, trials=trials,
            conditions=conditions, **parts,
        )  # fmt: skip

    def _conditions(self, warnings: tuple[str, ...] = ()) -> Conditions:
        conditions = self._verdict.conditions
        merged = tuple(dict.fromkeys((*conditions.warnings, *warnings)))
        changed = {"track": self._rules.track, "tolerances": self._held.tolerances, "warnings": merged}
        return conditions.model_copy(update=changed)


def _are_sound(samples: Samples) -> bool:
    """Return whether there are times, each positive and with the evaluator's own beside it, and none after a call."""
    figures = (*samples.seconds, *samples.wall)
    whole = (
        bool(samples.seconds)
        and len(samples.seconds) == len(samples.wall)
        and len(samples.rest) in (0, len(samples.wall))
    )
    whole = whole and all(math.isfinite(value) and value >= 0.0 for value in samples.rest)
    return whole and all(math.isfinite(value) and value > 0.0 for value in figures)


def _with(verdict: Verdict, **changed: Any) -> Verdict:
    """Return a verdict with some parts changed, checked like any other."""
    return Verdict.model_validate({name: getattr(verdict, name) for name in Verdict.model_fields} | changed)
