"""Whether three witnesses of the same calls agree: the runner's clock, the evaluator's, and the kernel trace.

The runner's figures come from a process in which a candidate runs, so each can be a lie. The evaluator's wall clock is
not: it holds the call and, on top, what both sides have alike (message, flush, copies). That overhead, wall - reported,
is compared with the baseline's, whose runner runs no candidate. A time that was left out shows up there.

How much is allowed is taken from the samples: some standard errors of the medians' difference. The standard error of a
median is 1.2533 sigma / sqrt(n) for normal noise; sigma is taken as 1.4826 MAD (Rousseeuw and Croux 1993), which single
disturbed calls do not widen. Pairs measured in turn share drift, so the scatter of their differences is used where it
is the smaller one. The candidate's own scatter counts up to three times the baseline's: lies that vary from call to
call would otherwise pay for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from hkbench.device_kinds import DeviceModel
from hkbench.evaluation.measure import QUICK, Samples
from hkbench.records import Clocks
from hkbench.stats import quantile

SIGMAS = 5.0  #: standard errors of the median that noise may make
FEW = 10.0  #: a MAD of few calls is itself uncertain: the noise is taken as 1 + FEW / n times as large
MAX_SCATTER = 3.0  #: of the candidate's overhead, in terms of the baseline's
MAD_TO_SIGMA = 1.4826
MEDIAN_ERROR = 1.2533
PROMPT = 0.75  #: the quantile of the baseline's `rest` that is that of a call of whose end the evaluator heard at once
OVERHEAD_SHARE = 0.05  #: of the baseline's overhead: two runners' buffers need not lie alike
MIN_MEDIAN_SAMPLES = 10
QUICK_SHARE = 0.1  #: of the baseline's overhead
QUICK_SCATTER = 1.0  #: in terms of the distance from the baseline's 10 % quantile to its median
MIN_CALLS = 3  #: calls below which nothing can be said of scatter

OFF_STREAM_SHARE = 0.1
OFF_STREAM_SLACK = 2e-5  #: seconds
TRACE_RATIO = 3.0
#: Seconds that sampling may cost a CPU's call: the guard has a processor meanwhile, and a thread that has lost its own
#: holds up the others for some turns. A library's work in a call of 0.5 ms can so be made out to be less than it was.
SAMPLED_SLACK = 8e-3
#: Of a call whose work was on other streams too, what the events have to hold of it: a stream that was not made to wait
#: for the current one works while that is flushed and held up, before the first event.
STREAMS_SHARE = 0.8
STREAMS_SLACK = 5e-6
#: Seconds that work on another stream may go on after the marker at the end of the current one has begun: the clock of
#: a trace counts in steps of up to 1 us.
UNJOINED_SLACK = 2e-6
OUTSIDE_SLACK = 2e-5  #: seconds of device work before or after the call

_LONGER_THAN_WAITED = "the candidate reported a call that took"
_MORE_THAN_REPORTED = "the evaluator's clock saw"
_MORE_THAN_REPORTED_IN_OLD_RUNS = "the judge's clock saw"


def compare(left: Samples, right: Samples, trace: Mapping[str, object] | None, model: DeviceModel) -> Clocks:
    """Compare the witnesses of the baseline's calls (`left`) and the candidate's (`right`, made in pairs with them).

    `wall` of both holds the forward pass, its messages and a GPU's flush, `rest` what came until the answer.
    `trace` is the answer of the runner's traced call, with `seconds` (what the runner's clock said of that very call)
    beside the keys of runner/trace.py, and `outputs` False where no output is computed (views only); None leaves this
    witness out.

    Returns the figures; `reasons` is empty where they agree. Raises ValueError without samples.
    """
    if not left.seconds or not right.seconds:
        raise ValueError("clocks need samples of both sides")
    candidate, baseline = median(right.seconds), median(left.seconds)
    own, other = _overheads(right), _overheads(left)
    reasons = [
        *by_wall(left, right, model),
        *_check_deferred_work(right, left, model),
        *_check_other_streams(right, left, model),
        *_check_trace(trace or {"error": "not traced"}, right, model),
    ]
    return Clocks(
        candidate=candidate,
        baseline=baseline,
        candidate_overhead=median(own),
        baseline_overhead=median(other),
        trace=_figure(trace.get("busy_seconds")) if trace is not None else None,
        agree=not reasons,
        reasons=tuple(reasons),
    )


def by_wall(left: Samples, right: Samples, model: DeviceModel) -> list[str]:
    """Return what the evaluator's clock of the forward pass objects to: the part of `agree` that needs no trace."""
    told = left.rest and right.rest
    usual = min(model.limits.after_call, quantile(left.rest, PROMPT)) if told else 0.0
    own, other = _correct_late_wakeups(right, usual), _correct_late_wakeups(left, usual)
    return [*_impossible(right), *_check_hidden_time(own, other, median(right.seconds), model)]


def unreported(left: Samples, right: Samples, model: DeviceModel) -> float:
    """Return the seconds of a candidate's call that its runner did not report.

    What differs between two quiet runners is taken off.

    Part of its time: `agree` allows for noise, so that on a loud machine more could be hidden; hiding it gains nothing.
    Where half of the baseline's calls were disturbed, its median says little, and the quick calls of both sides say
    more: the larger excess counts.
    """
    own, other = _overheads(right), _overheads(left)
    excess = _median_excess(own, other)
    if min(len(own), len(other)) >= MIN_MEDIAN_SAMPLES:
        excess = max(excess, quantile(own, QUICK) - quantile(other, QUICK))
    in_call = excess - _never_alike(other, median(right.seconds), model)
    behind = _median_excess(right.rest, left.rest) - _never_alike(left.rest, 0.0, model) - model.limits.after_call
    return max(0.0, in_call) + max(0.0, behind)


def _correct_late_wakeups(samples: Samples, usual: float) -> list[float]:
    """Return the overheads as if the evaluator had heard of the end of each call at once.

    `usual` is the `rest` of such a call.

    Where all processors are taken it may hear only when the runner has handed its outputs over, 0.4 ms later on two
    cores: in some calls, in most of one runner's and in few of another's for as long as they live. What `wall` has too
    much then, `rest` has too little. A candidate that hands nothing over could gain as much.
    """
    overheads = _overheads(samples)
    if not usual:
        return overheads
    return [over - max(0.0, usual - rest) for over, rest in zip(overheads, samples.rest, strict=True)]


def is_by_wall(reason: str) -> bool:
    """Return whether a reason is one that `by_wall` gives, in this version or an older one."""
    return reason.startswith((_LONGER_THAN_WAITED, _MORE_THAN_REPORTED, _MORE_THAN_REPORTED_IN_OLD_RUNS))


def allowance(own: Sequence[float], other: Sequence[float], reported: float, model: DeviceModel) -> float:
    """Return the seconds by which the candidate's overhead may exceed the baseline's.

    They are the noise of both sides and what two runners never have alike.
    """
    calm = _median_error(other)
    apart = math.hypot(calm, min(_median_error(own), MAX_SCATTER * calm))
    noise = SIGMAS * min(apart, _median_error(_differences(own, other)))
    return noise + _never_alike(other, reported, model)


def _never_alike(other: Sequence[float], reported: float, model: DeviceModel) -> float:
    """Return the seconds by which the overheads of two quiet runners may differ; `other` are the baseline's."""
    return (
        model.limits.absolute
        + OVERHEAD_SHARE * _variable_overhead(other, model)
        + model.limits.reported_share * reported
    )


def _variable_overhead(overheads: Sequence[float], model: DeviceModel) -> float:
    """Return the part of the median overhead that two sides need not have alike."""
    return max(0.0, median(overheads) - model.limits.held)


def _overheads(samples: Samples) -> list[float]:
    return [wall - seconds for wall, seconds in zip(samples.wall, samples.seconds, strict=True)]


def _differences(own: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the differences of pairs measured in turn, so that drift cancels.

    Without pairs they are differences to the baseline's median.
    """
    if len(own) == len(other):
        return [a - b for a, b in zip(own, other, strict=True)]
    middle = median(other)
    return [a - middle for a in own]


def _median_error(values: Sequence[float]) -> float:
    """Return the standard error of the median."""
    if len(values) < MIN_CALLS:
        return math.inf
    middle = median(values)
    sigma = MAD_TO_SIGMA * median(abs(value - middle) for value in values)
    return MEDIAN_ERROR * sigma / math.sqrt(len(values)) * (1.0 + FEW / len(values))


def _impossible(samples: Samples) -> list[str]:
    """Return the reason where a call is reported longer than the evaluator waited for its answer."""
    worst = max(samples.seconds[n] - samples.wall[n] for n in range(len(samples.seconds)))
    if worst <= 0.0:
        return []
    return [f"{_LONGER_THAN_WAITED} {_text(worst)} longer than the evaluator waited for its answer"]


def _check_hidden_time(own: Sequence[float], other: Sequence[float], reported: float, model: DeviceModel) -> list[str]:
    for more, allowed in _excesses(own, other, reported, model):
        if more > allowed:
            return [
                f"{_MORE_THAN_REPORTED} {_text(more)} more per call than the candidate reported ({_text(reported)}); "
                f"messages and flush explain {_text(allowed)} of difference to the baseline at most"
            ]
    return []


def _check_deferred_work(right: Samples, left: Samples, model: DeviceModel) -> list[str]:
    """Return the reason where work was put off until after the forward pass, before its outputs were taken."""
    for more, explained in _excesses(right.rest, left.rest, 0.0, model):
        allowed = explained + model.limits.after_call
        if more > allowed:
            return [
                f"after the end of forward the outputs took {_text(more)} longer to come than the baseline's; copying "
                f"them explains {_text(allowed)} at most: work was put off"
            ]
    return []


def _excesses(
    own: Sequence[float], other: Sequence[float], reported: float, model: DeviceModel
) -> Iterator[tuple[float, float]]:
    """Yield pairs (excess, what noise explains of it), by the medians and by the quick calls of both sides.

    Noise only ever adds time, so the quick calls scatter little even on a busy machine, and a lie is in them too.
    """
    yield _median_excess(own, other), allowance(own, other, reported, model)
    if min(len(own), len(other)) >= MIN_MEDIAN_SAMPLES:
        calm = quantile(other, 0.5) - quantile(other, 0.1)
        share = QUICK_SHARE * _variable_overhead(other, model) + model.limits.reported_share * reported
        allowed = model.limits.absolute + QUICK_SCATTER * calm + share
        yield quantile(own, QUICK) - quantile(other, QUICK), allowed


def _median_excess(own: Sequence[float], other: Sequence[float]) -> float:
    """Return the median excess over the baseline's; of few calls, the least excess."""
    differences = _differences(own, other)
    return median(differences) if len(differences) >= MIN_MEDIAN_SAMPLES else min(differences)


def _check_other_streams(right: Samples, left: Samples, model: DeviceModel) -> list[str]:
    """Return the reason where work ran that the current stream does not wait for.

    A device-wide synchronise after the call shows such work.

    The baseline's synchronise tells what that costs by itself.
    """
    if model.on_host:
        return []
    gap, usual = (median(i - s for i, s in zip(x.idle, x.seconds, strict=True)) for x in (right, left))
    events = median(right.seconds)
    if gap <= usual + OFF_STREAM_SHARE * events + OFF_STREAM_SLACK:
        return []
    return [
        f"work went on outside of the current stream: that was done after {_text(events)}, the device after "
        f"{_text(events + gap)}"
    ]


def _check_trace(trace: Mapping[str, object], samples: Samples, model: DeviceModel) -> list[str]:
    if trace.get("stopped") is True:
        return ["the kernel trace was stopped during the call that it recorded"]
    if "error" in trace:
        return []
    reasons = []
    reported = median(samples.seconds)
    # On a CPU that others use too, most calls may wait for a processor, and the traced one by luck not.
    quick = quantile(samples.seconds, 0.1) if model.on_host else reported
    seconds = _figure(trace.get("seconds")) or 0.0
    slack = model.limits.trace_slack
    # A profiler makes each launch of a GPU's kernel longer, and a timed call's were queued before its clock began:
    # there the time for which the device worked tells whether more was done.
    longer = model.on_host and seconds > TRACE_RATIO * reported + slack
    if seconds and (longer or quick > TRACE_RATIO * seconds + slack):
        reasons.append(
            f"a call took {_text(seconds)} while it was traced and {_text(reported)} when it was timed; "
            "both are the same call"
        )
    if not model.on_host:
        reasons += _check_device_trace(trace, reported, model)
    return reasons


def sampled_reasons(sampled: Sequence[float], reported: float) -> tuple[str, ...]:
    """Return the reason where calls sampled from outside differ from the timed ones.

    Sampling itself costs a call some time.
    """
    if len(sampled) < MIN_CALLS:
        return ()
    seconds = median(sampled)
    longer, shorter = max(seconds, reported), min(seconds, reported)
    if longer <= TRACE_RATIO * shorter + SAMPLED_SLACK:
        return ()
    return (f"a call took {_text(seconds)} while it was looked at and {_text(reported)} when it was timed",)


def _check_device_trace(trace: Mapping[str, object], reported: float, model: DeviceModel) -> list[str]:
    busy, outside = _figure(trace.get("busy_seconds")), _figure(trace.get("outside_seconds")) or 0.0
    reasons = []
    if busy is None or (busy == 0.0 and trace.get("outputs", True)):
        reasons.append("no kernel ran while the call was traced, though it has outputs")
    elif busy > model.limits.busy_ratio * reported + model.limits.busy_slack:
        reasons.append(
            f"the device worked for {_text(busy)} in a call while that was traced, and one took {_text(reported)} when "
            "it was timed; both are the same call"
        )
    elsewhere = _figure(trace.get("other_streams_seconds")) or 0.0
    if busy is not None and elsewhere > STREAMS_SLACK and reported < STREAMS_SHARE * busy - STREAMS_SLACK:
        reasons.append(
            f"the device worked for {_text(busy)}, {_text(elsewhere)} of it on streams that the current one does not "
            f"hold up, in a call that was reported to take {_text(reported)}"
        )
    unjoined = _figure(trace.get("unjoined_seconds")) or 0.0
    if unjoined > UNJOINED_SLACK:
        reasons.append(
            f"work on another stream went on for {_text(unjoined)} after the current stream had ended: "
            "have the current stream wait for it (`torch.cuda.current_stream().wait_stream(other)`)"
        )
    if outside > OUTSIDE_SLACK:
        reasons.append(f"the device worked for {_text(outside)} before the call or after it had ended")
    return reasons


def _figure(value: object) -> float | None:
    """Return a number of seconds from a runner; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
        return None
    return float(value)


def _text(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"
