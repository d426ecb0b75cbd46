"""What other rules make of a recorded verdict, case by case."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from support.run_folder import ISOLATED

from hkbench.analysis.tolerances import RTOL_BY_NAME
from hkbench.device_kinds.cpu import CPU
from hkbench.evaluation.clocks import compare
from hkbench.evaluation.measure import Samples, conclude
from hkbench.evaluation.refusal import MARGIN, NO_FLOOR, NO_WORK
from hkbench.reading import read_candidate
from hkbench.records import (
    Clocks,
    Conditions,
    DeviceKind,
    Failure,
    FailureKind,
    Floor,
    Interval,
    Stage,
    Status,
    Tolerance,
    Track,
    Trial,
    Verdict,
    Work,
)
from hkbench.regrade.verdicts import AS_THEN, Regraded, Rules, regrade

CODE = b"import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
HIDDEN = b"import base64\nexec(base64.b64decode('cGFzcw=='))\n" + CODE
OWN = Work(own=0.9, pytorch=0.1, library=0.0, source="kineto")
FOREIGN = Work(own=0.1, pytorch=0.9, library=0.0, source="kineto")
FLOAT32 = Tolerance(dtype="float32", rtol=1e-4, plain_rtol=1e-4, error=3e-6, eager_error=1e-6)
KNOWN = f"{NO_FLOOR}no peaks are known of a CPU"
SUSPECT_TRACE = "a call took 9.000 ms while it was traced and 1.000 ms when it was timed; both are the same call"


def rules(track: Track = Track.OWN, **rtol: float) -> Rules:
    return Rules(track=track, rtol=RTOL_BY_NAME | rtol)


def samples(seconds: float, hidden: float = 0.0, rest: float = 1e-4) -> Samples:
    times = [seconds * (1.0 + 0.001 * (n % 7)) for n in range(30)]
    wall = [time + 1e-4 + hidden for time in times]
    return Samples(times, [time + 1e-5 for time in times], wall, [rest] * len(times))


def recorded(
    speedup: float = 2.0,
    *,
    code: bytes = CODE,
    track: Track = Track.OWN,
    work: Work | None = OWN,
    floor: Floor | None = None,
    tolerances: tuple[Tolerance, ...] = (FLOAT32,),
    hidden: float = 0.0,
    rest: float = 1e-4,
    unreported: float = 0.0,
    failure: Failure | None = None,
    clocks: Clocks | None = None,
    not_checked: tuple[str, ...] = (KNOWN,),
    **changed: Any,
) -> Verdict:
    """A verdict as the evaluator would have written it of these times; with `failure` a refused one."""
    pair = samples(2e-2, rest=rest), samples(2e-2 / speedup, hidden, rest)
    measured = conclude(*pair, "perf_counter", 3, CPU, unreported=unreported)
    fast = Status.FAST if measured.speedup.value >= 1.0 else Status.SLOW
    verdict = Verdict(
        problem="1_ReLU",
        status=fast if failure is None else Status.REFUSED,
        failure=failure,
        trials=(Trial(seed=1, passed=True, max_abs_error=1e-6, max_error_over_tolerance=0.03),),
        baseline=measured.baseline,
        candidate=measured.candidate,
        speedup=measured.speedup if failure is None else None,
        clocks=clocks or compare(*pair, None, CPU),
        floor=floor,
        work=work,
        findings=read_candidate(code.decode(), "cpp", track),
        conditions=Conditions(
            backend="cpp",
            device=DeviceKind.CPU,
            device_name="a CPU",
            candidate_sha256=sha256(code).hexdigest(),
            problem_sha256="0" * 64,
            track=track,
            isolation=ISOLATED,
            tolerances=tolerances,
            not_checked=not_checked,
            warnings=measured.warnings,
        ),
    )
    return verdict.model_copy(update=changed)


def refused(kind: FailureKind, message: str = "as it was said then") -> Failure:
    return Failure(stage=Stage.TIME, kind=kind, message=message)


def incorrect(kind: FailureKind, stage: Stage, **more: Any) -> Verdict:
    nothing = dict.fromkeys(("baseline", "candidate", "speedup", "clocks", "floor", "work"))
    failure = Failure(stage=stage, kind=kind, message="what was said")
    return recorded(**more).model_copy(update={**nothing, "status": Status.INCORRECT, "failure": failure})


def verdict_of(found: Regraded) -> Verdict:
    assert found.verdict is not None, found.again
    return found.verdict


UNCHANGED = Regraded()


@pytest.mark.parametrize(
    "verdict",
    [
        recorded(2.0),
        recorded(0.5),
        recorded(2.0, rest=0.0),
        recorded(2.0, hidden=2e-4, unreported=1e-4),
        recorded(work=None, not_checked=(KNOWN, f"{NO_WORK}the trace and the samples say too little")),
        recorded(floor=Floor(seconds=1e-3, bytes=1000, bound="bytes"), not_checked=()),
        recorded(tolerances=()),
        incorrect(FailureKind.BUILD_ERROR, Stage.BUILD),
        incorrect(FailureKind.WRONG_VALUES, Stage.COMPARE),
        incorrect(FailureKind.TIMEOUT, Stage.TIME),
    ],
)
def test_the_same_rules_change_nothing(verdict: Verdict) -> None:
    assert regrade(verdict, CODE, rules()) == UNCHANGED


def test_what_was_refused_for_its_kernels_counts_where_library_calls_may_do_the_work() -> None:
    verdict = recorded(work=FOREIGN, failure=refused(FailureKind.NOT_OWN))
    now = verdict_of(regrade(verdict, CODE, rules(Track.ANY)))
    assert now.status is Status.FAST and now.failure is None
    assert now.speedup is not None and now.speedup.value == pytest.approx(2.0)
    assert now.conditions.track is Track.ANY and AS_THEN in now.conditions.not_checked
    slow = recorded(0.5, work=FOREIGN, failure=refused(FailureKind.NOT_OWN))
    assert verdict_of(regrade(slow, CODE, rules(Track.ANY))).status is Status.SLOW


def test_the_track_spares_nobody_the_other_checks() -> None:
    failure = refused(FailureKind.NOT_OWN)
    hidden = recorded(code=HIDDEN, work=FOREIGN, failure=failure)
    now = verdict_of(regrade(hidden, HIDDEN, rules(Track.ANY)))
    assert now.failure is not None and now.failure.kind is FailureKind.FORBIDDEN and now.speedup is None
    unknown = recorded(work=FOREIGN, failure=failure, not_checked=())
    assert "does not say the least possible time" in str(regrade(unknown, CODE, rules(Track.ANY)).again)
    floor = Floor(seconds=1.0, bytes=1000, bound="bytes")
    impossible = verdict_of(regrade(recorded(work=FOREIGN, failure=failure, floor=floor), CODE, rules(Track.ANY)))
    assert impossible.failure is not None and impossible.failure.kind is FailureKind.IMPOSSIBLE


def test_what_counted_is_refused_where_its_own_kernels_have_to_do_the_work() -> None:
    now = verdict_of(regrade(recorded(track=Track.ANY, work=FOREIGN), CODE, rules(Track.OWN)))
    assert now.status is Status.REFUSED and now.speedup is None and now.baseline is not None
    assert now.failure is not None and now.failure.kind is FailureKind.NOT_OWN
    assert "did 10% of the work" in now.failure.message
    assert verdict_of(regrade(recorded(track=Track.ANY), CODE, rules(Track.OWN))).status is Status.FAST


def test_work_that_was_looked_for_in_vain_refuses_nobody_and_work_not_looked_for_does_not_pass() -> None:
    in_vain = (KNOWN, f"{NO_WORK}the trace and the samples say too little")
    verdict = recorded(track=Track.ANY, work=None, not_checked=in_vain)
    assert verdict_of(regrade(verdict, CODE, rules(Track.OWN))).status is Status.FAST
    older = recorded(track=Track.ANY, work=None)
    assert "whose kernels did the work" in str(regrade(older, CODE, rules(Track.OWN)).again)


def test_a_rule_that_forbids_it_today() -> None:
    verdict = recorded(code=HIDDEN, findings=())
    now = verdict_of(regrade(verdict, HIDDEN, rules()))
    assert now.status is Status.INCORRECT and now.baseline is None and now.clocks is None and now.trials
    assert now.failure is not None and now.failure.kind is FailureKind.FORBIDDEN and now.failure.stage is Stage.PARSE
    assert "py-exec-decoded" in now.failure.message


def test_what_was_forbidden_has_no_times() -> None:
    no_more = incorrect(FailureKind.FORBIDDEN, Stage.PARSE)
    assert "no static rule forbids it today" in str(regrade(no_more, CODE, rules()).again)
    still = verdict_of(regrade(incorrect(FailureKind.FORBIDDEN, Stage.PARSE, code=HIDDEN), HIDDEN, rules()))
    assert still.failure is not None and still.failure.kind is FailureKind.FORBIDDEN
    any_track = incorrect(FailureKind.FORBIDDEN, Stage.PARSE, code=HIDDEN, track=Track.ANY)
    assert "whose kernels" in str(regrade(any_track, HIDDEN, rules(Track.OWN)).again)


def test_advice_of_today_stands_in_failed_verdicts_too() -> None:
    late = incorrect(FailureKind.RUNTIME_ERROR, Stage.RUN, code=HIDDEN).model_copy(update={"findings": ()})
    now = verdict_of(regrade(late, HIDDEN, rules()))
    assert now.failure == late.failure and "py-exec-decoded" in [finding.rule for finding in now.findings]
    unread = incorrect(FailureKind.SYNTAX_ERROR, Stage.PARSE, code=HIDDEN).model_copy(update={"findings": ()})
    assert regrade(unread, HIDDEN, rules()) == UNCHANGED


def test_the_speed_up_by_today_s_formula() -> None:
    """A mean was recorded, say, and it lay on the other side of 1.0."""
    mean = {"status": Status.FAST, "speedup": Interval(value=1.02, low=0.9, high=1.1)}
    then = recorded(0.98).model_copy(update=mean)
    now = verdict_of(regrade(then, CODE, rules()))
    assert now.status is Status.SLOW
    assert now.speedup is not None and now.speedup.value == pytest.approx(0.98)
    assert now.speedup.low <= now.speedup.value <= now.speedup.high


def test_a_suspicion_of_the_evaluator_s_clock_that_is_none_today() -> None:
    said = "the judge's clock saw 0.200 ms more per call than the candidate reported (1.000 ms); 0.1 ms explained"
    clocks = compare(samples(2e-2), samples(1e-2), None, CPU)
    then = clocks.model_copy(update={"agree": False, "reasons": (said,)})
    verdict = recorded(clocks=then, failure=refused(FailureKind.SUSPECT, said))
    now = verdict_of(regrade(verdict, CODE, rules()))
    assert now.status is Status.FAST and now.clocks is not None and now.clocks.agree and not now.clocks.reasons


@pytest.mark.parametrize("track", list(Track))
def test_a_suspicion_of_another_witness_stays(track: Track) -> None:
    clocks = compare(samples(2e-2), samples(1e-2), None, CPU)
    then = clocks.model_copy(update={"agree": False, "reasons": (SUSPECT_TRACE,)})
    verdict = recorded(clocks=then, failure=refused(FailureKind.SUSPECT, SUSPECT_TRACE))
    found = regrade(verdict, CODE, rules(track))
    assert found == UNCHANGED if track is Track.OWN else verdict_of(found).failure == verdict.failure


def test_a_suspicion_of_both_keeps_the_other_one() -> None:
    said = "the candidate reported a call that took 0.010 ms longer than the judge waited for its answer"
    clocks = compare(samples(2e-2), samples(1e-2), None, CPU)
    then = clocks.model_copy(update={"agree": False, "reasons": (said, SUSPECT_TRACE)})
    now = verdict_of(regrade(recorded(clocks=then, failure=refused(FailureKind.SUSPECT)), CODE, rules()))
    assert now.status is Status.REFUSED and now.failure is not None and now.failure.message == SUSPECT_TRACE


def test_a_new_suspicion_takes_a_second_measurement() -> None:
    honest = compare(samples(2e-2), samples(1e-2), None, CPU)
    found = regrade(recorded(hidden=0.01, clocks=honest), CODE, rules())
    assert found.verdict is None and "a suspect is measured twice: the evaluator's clock saw" in str(found.again)


def test_the_floor_by_today_s_margin() -> None:
    least = Floor(seconds=1e-2 / MARGIN * 1.1, bytes=1 << 20, bound="bytes")
    now = verdict_of(regrade(recorded(floor=least, not_checked=()), CODE, rules()))
    assert now.status is Status.REFUSED and now.failure is not None and now.failure.kind is FailureKind.IMPOSSIBLE
    enough = least.model_copy(update={"seconds": 1e-2 / MARGIN * 0.9})
    then = recorded(floor=enough, not_checked=(), failure=refused(FailureKind.IMPOSSIBLE))
    assert verdict_of(regrade(then, CODE, rules())).status is Status.FAST


def test_a_tighter_tolerance_by_the_largest_error() -> None:
    now = verdict_of(regrade(recorded(), CODE, rules(float32=5e-6)))
    assert now.status is Status.FAST
    (tolerance,) = now.conditions.tolerances
    assert (tolerance.rtol, tolerance.plain_rtol, tolerance.error) == (5e-6, 5e-6, 3e-6)
    assert now.trials[0].max_error_over_tolerance is None and now.trials[0].max_abs_error == 1e-6
    wrong = verdict_of(regrade(recorded(), CODE, rules(float32=2.5e-6)))
    assert wrong.status is Status.INCORRECT and wrong.trials == () and wrong.speedup is None
    assert wrong.failure is not None and wrong.failure.kind is FailureKind.WRONG_VALUES
    assert "largest float32 error is 3e-06" in wrong.failure.message
    assert regrade(recorded(), CODE, rules(float16=1e-4)) == UNCHANGED


@pytest.mark.parametrize(
    ("tolerance", "asked", "words"),
    [
        # Eager's own error, times two, would widen 2e-6 to 4e-6 at most: of 3e-6 nobody knows in which comparison.
        (FLOAT32.model_copy(update={"eager_error": 2e-6}), 2e-6, "eager's own error of up to 2e-06"),
        # Eager's error is beyond the widest tolerance: the evaluator would have drawn milder inputs.
        (FLOAT32.model_copy(update={"eager_error": 2e-6}), 1e-7, "is not in the record"),
        (FLOAT32.model_copy(update={"eager_error": None}), 1e-6, "is not in the record"),
        (Tolerance(dtype="float32", rtol=1e-4), 1e-5, "does not have the errors"),
    ],
)
def test_a_tighter_tolerance_that_the_record_does_not_decide(tolerance: Tolerance, asked: float, words: str) -> None:
    found = regrade(recorded(tolerances=(tolerance,)), CODE, rules(float32=asked))
    assert found.verdict is None and words in str(found.again)


def test_an_older_record_decides_what_no_widening_could_save() -> None:
    old = Tolerance(dtype="float32", rtol=1e-4)  # the trial used up 0.03 of it
    wrong = verdict_of(regrade(recorded(tolerances=(old,)), CODE, rules(float32=2e-7)))
    assert wrong.failure is not None and wrong.failure.kind is FailureKind.WRONG_VALUES
    two = recorded(tolerances=(old, old.model_copy(update={"dtype": "float16", "rtol": 5e-3})))
    assert regrade(two, CODE, rules(float32=2e-7)).again is not None  # whose share it was is not known
    widened = Tolerance(dtype="float32", rtol=3e-4, widened_by_eager=True)
    assert regrade(recorded(tolerances=(widened,)), CODE, rules()) == UNCHANGED


def test_a_wider_tolerance() -> None:
    now = verdict_of(regrade(recorded(), CODE, rules(float32=1e-3)))
    assert now.status is Status.FAST and now.conditions.tolerances[0].rtol == 1e-3
    for kind in (FailureKind.WRONG_VALUES, FailureKind.NOT_REPEATABLE, FailureKind.STALE_PARAMETERS):
        found = regrade(incorrect(kind, Stage.COMPARE), CODE, rules(float32=1e-3))
        assert found.verdict is None and "first failing comparison ended it" in str(found.again)
        assert regrade(incorrect(kind, Stage.COMPARE), CODE, rules(float32=1e-5)) == UNCHANGED
    for kind in (FailureKind.NOT_FINITE, FailureKind.WRONG_SHAPE, FailureKind.INPUT_MODIFIED):
        assert regrade(incorrect(kind, Stage.COMPARE), CODE, rules(float32=1e-3)) == UNCHANGED


def test_values_come_before_clocks_and_kernels() -> None:
    verdict = recorded(work=FOREIGN, failure=refused(FailureKind.NOT_OWN))
    now = verdict_of(regrade(verdict, CODE, rules(Track.ANY, float32=1e-6)))
    assert now.failure is not None and now.failure.kind is FailureKind.WRONG_VALUES
    forbidden = incorrect(FailureKind.FORBIDDEN, Stage.PARSE, code=HIDDEN)
    now = verdict_of(regrade(forbidden, HIDDEN, rules(float32=1e-6)))
    assert now.failure is not None and now.failure.kind is FailureKind.WRONG_VALUES


@pytest.mark.parametrize(
    ("missing", "words"),
    [({"clocks": None}, "lacks the witnesses of time"), ({"baseline": None}, "lacks the evaluator's clock")],
)
def test_an_older_record_lacks_a_witness(missing: dict[str, None], words: str) -> None:
    verdict = recorded(failure=refused(FailureKind.NOT_OWN), work=FOREIGN).model_copy(update=missing)
    assert words in str(regrade(verdict, CODE, rules(Track.ANY)).again)


@pytest.mark.parametrize("times", [(), (1e-3,), (0.0,) * 30, (float("nan"),) * 30])
def test_times_that_are_damaged(times: tuple[float, ...]) -> None:
    verdict = recorded()
    assert verdict.candidate is not None
    broken = verdict.model_copy(update={"candidate": verdict.candidate.model_copy(update={"samples": times})})
    assert regrade(broken, CODE, rules()).again == "the recorded times are damaged"


def test_other_code_than_was_judged() -> None:
    assert "not the code that was judged" in str(regrade(recorded(), HIDDEN, rules()).again)
