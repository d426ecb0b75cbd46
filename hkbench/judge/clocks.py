"""Whether three witnesses of the same calls agree: the runner's clock, the judge's, and the kernel trace.

The runner's figures come from a process in which a candidate runs, so each can be a lie. The judge's wall clock is not:
it holds the call and, on top, what both sides have alike (message, flush, copies). That overhead, wall - reported, is
compared with the baseline's, whose runner runs no candidate. A time that was left out shows up there.

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
from typing import Any

from hkbench.judge.measure import Samples
from hkbench.records import Clocks, DeviceKind
from hkbench.runner.hold import HOLD_SECONDS

SIGMAS = 5.0  #: standard errors of the median that noise may make
FEW = 10.0  #: a MAD of few calls is itself uncertain: the noise is taken as 1 + FEW / n times as large
MOST_SCATTER = 3.0  #: of the candidate's overhead, in terms of the baseline's
MAD_TO_SIGMA = 1.4826
MEDIAN_ERROR = 1.2533
ABSOLUTE = {DeviceKind.CPU: 2e-4, DeviceKind.CUDA: 8e-5, DeviceKind.ROCM: 8e-5}  #: seconds
#: Seconds more after the end of forward: threads of a CPU candidate that still spin hold up the runner and the judge.
REST = {DeviceKind.CPU: 8e-4, DeviceKind.CUDA: 0.0, DeviceKind.ROCM: 0.0}
PROMPT = 0.75  #: the quantile of the baseline's `rest` that is that of a call of whose end the judge heard at once
OVERHEAD_SHARE = 0.05  #: of the baseline's overhead: two runners' buffers need not lie alike
#: Seconds of the overhead that are the same on both sides by the device's own count.
HELD = {DeviceKind.CPU: 0.0, DeviceKind.CUDA: HOLD_SECONDS, DeviceKind.ROCM: HOLD_SECONDS}
#: Of the candidate's own time. Who waits long for a GPU goes on later: 0.28 ms after 52 ms on an H200.
REPORTED_SHARE = {DeviceKind.CPU: 0.05, DeviceKind.CUDA: 0.01, DeviceKind.ROCM: 0.01}
FEWEST_FOR_MEDIAN = 10
QUICK = 0.2  #: the quantile of calls that count as quick
QUICK_SHARE = 0.1  #: of the baseline's overhead
QUICK_SCATTER = 1.0  #: in terms of the distance from the baseline's 10 % quantile to its median
FEWEST = 3  #: calls below which nothing can be said of scatter

OFF_STREAM_SHARE = 0.1
OFF_STREAM_SLACK = 2e-5  #: seconds
TRACE_RATIO = 3.0
TRACE_SLACK = {DeviceKind.CPU: 5e-3, DeviceKind.CUDA: 1e-3, DeviceKind.ROCM: 1e-3}  #: what a profiler may cost a call
BUSY_RATIO = 1.5
BUSY_SLACK = 1e-4
#: Of a call whose work was on other streams too, what the events have to hold of it: a stream that was not made to wait
#: for the current one works while that is flushed and held up, before the first event.
STREAMS_SHARE = 0.8
STREAMS_SLACK = 5e-6
OUTSIDE_SLACK = 2e-5  #: seconds of device work before or after the call

_LONGER_THAN_WAITED = "the candidate reported a call that took"
_MORE_THAN_REPORTED = "the judge's clock saw"


def agree(left: Samples, right: Samples, trace: Mapping[str, Any] | None, kind: DeviceKind) -> Clocks:
    """Compares the witnesses of the baseline's calls (`left`) and the candidate's (`right`, made in pairs with them).

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
        *by_wall(left, right, kind),
        *_put_off(right.rest, left.rest, kind),
        *_off_stream(right, left, kind),
        *_traced(trace or {"error": "not traced"}, right, kind),
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


def by_wall(left: Samples, right: Samples, kind: DeviceKind) -> list[str]:
    """What the judge's clock of the forward pass objects to: the part of `agree` that needs no trace."""
    usual = min(REST[kind], quantile(left.rest, PROMPT)) if left.rest and right.rest else 0.0
    own, other = _heard_at_once(right, usual), _heard_at_once(left, usual)
    return [*_impossible(right), *_hidden(own, other, median(right.seconds), kind)]


def unreported(left: Samples, right: Samples, kind: DeviceKind) -> float:
    """Seconds of a candidate's call that its runner did not report, beyond what differs between two quiet runners.

    Part of its time: `agree` allows for noise, so that on a loud machine more could be hidden; hiding it gains nothing.
    """
    own, other = _overheads(right), _overheads(left)
    in_call = _more(own, other) - _never_alike(other, median(right.seconds), kind)
    behind = _more(right.rest, left.rest) - _never_alike(left.rest, 0.0, kind) - REST[kind]
    return max(0.0, in_call) + max(0.0, behind)


def _heard_at_once(samples: Samples, usual: float) -> list[float]:
    """The overheads, had the judge heard of the end of each call at once; `usual` is the `rest` of such a call.

    Where all processors are taken it may hear only when the runner has handed its outputs over, 0.4 ms later on two
    cores: in some calls, in most of one runner's and in few of another's for as long as they live. What `wall` has too
    much then, `rest` has too little. A candidate that hands nothing over could gain as much.
    """
    overheads = _overheads(samples)
    if not usual:
        return overheads
    return [over - max(0.0, usual - rest) for over, rest in zip(overheads, samples.rest, strict=True)]


def is_by_wall(reason: str) -> bool:
    """Whether a reason is one that `by_wall` gives, in this version or an older one."""
    return reason.startswith((_LONGER_THAN_WAITED, _MORE_THAN_REPORTED))


def allowance(own: Sequence[float], other: Sequence[float], reported: float, kind: DeviceKind) -> float:
    """Seconds by which the candidate's overhead may exceed the baseline's: noise of both, and what is never alike."""
    calm = _median_error(other)
    apart = math.hypot(calm, min(_median_error(own), MOST_SCATTER * calm))
    noise = SIGMAS * min(apart, _median_error(_differences(own, other)))
    return noise + _never_alike(other, reported, kind)


def _never_alike(other: Sequence[float], reported: float, kind: DeviceKind) -> float:
    """Seconds by which the overheads of two quiet runners may differ; `other` are the baseline's."""
    return ABSOLUTE[kind] + OVERHEAD_SHARE * _unlike(other, kind) + REPORTED_SHARE[kind] * reported


def _unlike(overheads: Sequence[float], kind: DeviceKind) -> float:
    """The part of the median overhead that two sides need not have alike."""
    return max(0.0, median(overheads) - HELD[kind])


def _overheads(samples: Samples) -> list[float]:
    return [wall - seconds for wall, seconds in zip(samples.wall, samples.seconds, strict=True)]


def _differences(own: Sequence[float], other: Sequence[float]) -> list[float]:
    """Of pairs measured in turn, so that drift cancels; without pairs around the baseline's median."""
    if len(own) == len(other):
        return [a - b for a, b in zip(own, other, strict=True)]
    middle = median(other)
    return [a - middle for a in own]


def _median_error(values: Sequence[float]) -> float:
    """Standard error of the median."""
    if len(values) < FEWEST:
        return math.inf
    middle = median(values)
    sigma = MAD_TO_SIGMA * median(abs(value - middle) for value in values)
    return MEDIAN_ERROR * sigma / math.sqrt(len(values)) * (1.0 + FEW / len(values))


def _impossible(samples: Samples) -> list[str]:
    """A call cannot take longer than the judge waited for it."""
    worst = max(samples.seconds[n] - samples.wall[n] for n in range(len(samples.seconds)))
    if worst <= 0.0:
        return []
    return [f"{_LONGER_THAN_WAITED} {_text(worst)} longer than the judge waited for its answer"]


def _hidden(own: Sequence[float], other: Sequence[float], reported: float, kind: DeviceKind) -> list[str]:
    for more, allowed in _excesses(own, other, reported, kind):
        if more > allowed:
            return [
                f"{_MORE_THAN_REPORTED} {_text(more)} more per call than the candidate reported ({_text(reported)}); "
                f"messages and flush explain {_text(allowed)} of difference to the baseline at most"
            ]
    return []


def _put_off(own: Sequence[float], other: Sequence[float], kind: DeviceKind) -> list[str]:
    """Work that was left for after the end of the forward pass, before its outputs were handed over."""
    for more, explained in _excesses(own, other, 0.0, kind):
        allowed = explained + REST[kind]
        if more > allowed:
            return [
                f"after the end of forward the outputs took {_text(more)} longer to come than the baseline's; copying "
                f"them explains {_text(allowed)} at most: work was put off"
            ]
    return []


def _excesses(
    own: Sequence[float], other: Sequence[float], reported: float, kind: DeviceKind
) -> Iterator[tuple[float, float]]:
    """(excess, what noise explains of it), by the medians and by the quick calls of both sides.

    Noise only ever adds time, so the quick calls scatter little even on a busy machine, and a lie is in them too.
    """
    yield _more(own, other), allowance(own, other, reported, kind)
    if min(len(own), len(other)) >= FEWEST_FOR_MEDIAN:
        calm = quantile(other, 0.5) - quantile(other, 0.1)
        share = QUICK_SHARE * _unlike(other, kind) + REPORTED_SHARE[kind] * reported
        allowed = ABSOLUTE[kind] + QUICK_SCATTER * calm + share
        yield quantile(own, QUICK) - quantile(other, QUICK), allowed


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the value that `share` of the others are at most as large as. Raises IndexError without values."""
    return sorted(values)[int(share * (len(values) - 1))]


def _more(own: Sequence[float], other: Sequence[float]) -> float:
    """By how much the candidate's exceed the baseline's; of few calls what even the least of them shows."""
    differences = _differences(own, other)
    return median(differences) if len(differences) >= FEWEST_FOR_MEDIAN else min(differences)


def _off_stream(right: Samples, left: Samples, kind: DeviceKind) -> list[str]:
    """Work that the current stream does not wait for, seen by a device-wide synchronise after the call.

    The baseline's synchronise tells what that costs by itself.
    """
    if kind is DeviceKind.CPU:
        return []
    gap, usual = (median(i - s for i, s in zip(x.idle, x.seconds, strict=True)) for x in (right, left))
    events = median(right.seconds)
    if gap <= usual + OFF_STREAM_SHARE * events + OFF_STREAM_SLACK:
        return []
    return [
        f"work went on outside of the current stream: that was done after {_text(events)}, the device after "
        f"{_text(events + gap)}"
    ]


def _traced(trace: Mapping[str, Any], samples: Samples, kind: DeviceKind) -> list[str]:
    if trace.get("stopped") is True:
        return ["the kernel trace was stopped during the call that it recorded"]
    if "error" in trace:
        return []
    reasons = []
    reported = median(samples.seconds)
    # On a CPU that others use too, most calls may wait for a processor, and the traced one by luck not.
    quick = quantile(samples.seconds, 0.1) if kind is DeviceKind.CPU else reported
    seconds = _figure(trace.get("seconds")) or 0.0
    slack = TRACE_SLACK[kind]
    if seconds and (seconds > TRACE_RATIO * reported + slack or quick > TRACE_RATIO * seconds + slack):
        reasons.append(
            f"a call took {_text(seconds)} while it was traced and {_text(reported)} when it was timed; "
            "both are the same call"
        )
    if kind is not DeviceKind.CPU:
        reasons += _device_trace(trace, reported)
    return reasons


def sampled_reasons(sampled: Sequence[float], reported: float) -> tuple[str, ...]:
    """Calls that were sampled from outside are the timed ones' like; being looked at costs them something."""
    if len(sampled) < FEWEST:
        return ()
    seconds = median(sampled)
    longer, shorter = max(seconds, reported), min(seconds, reported)
    if longer <= TRACE_RATIO * shorter + TRACE_SLACK[DeviceKind.CPU]:
        return ()
    return (f"a call took {_text(seconds)} while it was looked at and {_text(reported)} when it was timed",)


def _device_trace(trace: Mapping[str, Any], reported: float) -> list[str]:
    busy, outside = _figure(trace.get("busy_seconds")), _figure(trace.get("outside_seconds")) or 0.0
    reasons = []
    if busy is None or (busy == 0.0 and trace.get("outputs", True)):
        reasons.append("no kernel ran while the call was traced, though it has outputs")
    elif busy > BUSY_RATIO * reported + BUSY_SLACK:
        reasons.append(f"the device worked for {_text(busy)} in a call that was reported to take {_text(reported)}")
    elsewhere = _figure(trace.get("other_streams_seconds")) or 0.0
    if busy is not None and elsewhere > STREAMS_SLACK and reported < STREAMS_SHARE * busy - STREAMS_SLACK:
        reasons.append(
            f"the device worked for {_text(busy)}, {_text(elsewhere)} of it on streams that the current one does not "
            f"hold up, in a call that was reported to take {_text(reported)}"
        )
    if outside > OUTSIDE_SLACK:
        reasons.append(f"the device worked for {_text(outside)} before the call or after it had ended")
    return reasons


def _figure(value: object) -> float | None:
    """A number of seconds from a runner; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
        return None
    return float(value)


def _text(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"
