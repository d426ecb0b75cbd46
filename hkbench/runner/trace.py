"""One ordinary forward pass while kineto records it: the third witness of its time, and of whose kernels ran.

The profiler is driven by torch's C functions, bound at import before any code of a candidate runs (see clock.py). On a
GPU it records what the device did, whoever asked for it; on a CPU what PyTorch's dispatcher was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from inspect import signature
from typing import TypedDict

import torch
from torch._C._autograd import DeviceType, _disable_profiler, _enable_profiler, _KinetoEvent, _prepare_profiler
from torch._C._profiler import ProfilerConfig
from torch.autograd.profiler import profile
from torch.profiler import ProfilerActivity

from hkbench.protocol.device_stream import Hold, no_device
from hkbench.runner.clock import Timed, timed_call

MAX_NAMES = 128
MAX_ROWS = 1024
NAME_LIMIT = 400
LATE_SECONDS = 0.005  #: how long recording goes on after the device was idle: threads left behind show up in it
WINDOW_SLACK = 50e-6  #: the clocks of host and device are matched to some microseconds
ERROR_LIMIT = 500
DEVICE_WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})  #: annotations lie on the device's lanes too


class NamedWork(TypedDict):
    """What has one name in a trace."""

    name: str
    kind: str
    calls: int
    seconds: float


class Seen(TypedDict, total=False):
    """What kineto saw of a call; see `traced_call`."""

    error: str
    stopped: bool
    on_gpu: bool
    wall_seconds: float
    kernels: list[NamedWork]
    left_out_seconds: float
    busy_seconds: float
    other_streams_seconds: float
    unjoined_seconds: float
    outside_seconds: float
    rows: list[list[float]]


Row = tuple[str, str, float, float, int]  #: name, kind, start and duration in seconds, stream (CPU: thread)


def traced_call(forward: Callable[[], object], device: torch.device) -> tuple[Timed, Seen]:
    """Run `forward` once, timed as always, and say what kineto saw of it; the caller flushes before.

    It has either `error` (a text: kineto does not work here; with `stopped` True: it did, until something in the
    call stopped it) or, in seconds:

    - `on_gpu`, `wall_seconds`: from before the call until the device was idle, by the host's clock;
    - `kernels`: {name, kind, calls, seconds} per name, longest first. On a GPU of the device's work, on a CPU of the
      dispatcher's operators, whose seconds are their own without those of operators that they call;
    - `left_out_seconds`: of names that are not listed;
    - on a GPU `busy_seconds` (union of the intervals in which the device worked), `other_streams_seconds` (the same of
      work that was not on the stream current at the call), `unjoined_seconds` (how long that went on after the current
      stream had ended), `outside_seconds` (of work that ran before the call or after the device had been idle once),
      and `rows`: [number of the name, start from the beginning of the call, duration, stream], in order of time, at
      most MAX_ROWS.

    What `forward` raises comes through.
    """
    return _traced_call(forward, device)


def _bind() -> Callable[[Callable[[], object], torch.device], tuple[Timed, Seen]]:
    now, sleep, call = time.time_ns, time.sleep, timed_call
    prepare, enable, disable = _prepare_profiler, _enable_profiler, _disable_profiler
    maker: Callable[..., ProfilerConfig] = profile(use_kineto=True, use_cpu=True).config
    config = maker(create_trace_id=True) if "create_trace_id" in signature(maker).parameters else maker()
    synchronize: Callable[[], None] = getattr(torch._C, "_cuda_synchronize", no_device)
    fill = torch._C.TensorBase.fill_
    read = _reader()
    holds: dict[torch.device, Hold | None] = {}  # of the devices that were traced before

    def start(device: torch.device) -> None:
        activity = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
        prepare(config, {activity})
        enable(config, {activity})

    def warm_up(device: torch.device, marker: torch.Tensor) -> None:
        """Run a first session, which loads and attaches the tracer and takes up to seconds."""
        start(device)
        try:
            call(lambda: fill(marker, 0), device, None)
        finally:
            disable()
        holds[device] = Hold(device) if device.type == "cuda" else None

    def traced(forward: Callable[[], object], device: torch.device) -> tuple[Timed, Seen]:
        marker = torch.empty(1, device=device)
        on_gpu = device.type == "cuda"

        def marked() -> object:
            result = forward()
            fill(marker, 3)  # the end of the stream that is current: what it does not wait for may go on
            return result

        try:
            if device not in holds:
                warm_up(device, marker)
            start(device)
        except Exception as error:  # noqa: BLE001 - a profiler that fails must not cost the call
            return call(forward, device, None), _error(error)
        try:
            if on_gpu:
                synchronize()
            fill(marker, 1)  # the first row of the trace: names the stream that is current
            if on_gpu:
                synchronize()
            began = now()
            timed = call(marked if on_gpu else forward, device, holds.get(device))
            ended = now()
            if on_gpu:
                sleep(LATE_SECONDS)
                synchronize()
            fill(marker, 2)  # the last row: without it, or without the first, somebody stopped the recording
            if on_gpu:
                synchronize()
        except BaseException:
            disable()
            raise
        try:
            rows = read(disable().events(), on_gpu, began)
            window = (ended - began) / 1e9
            if not rows or rows[0][2] >= 0 or rows[-1][2] < window:
                return timed, {"error": "the recording was stopped during the call", "stopped": True}
            summary = _device(rows, window) if on_gpu else _operators(rows, window)
        except Exception as error:  # noqa: BLE001 - see above
            return timed, _error(error)
        return timed, {"on_gpu": on_gpu, "wall_seconds": window, **summary}

    return traced


def _error(error: Exception) -> Seen:
    return {"error": f"{type(error).__name__}: {error}"[:ERROR_LIMIT]}


def _reader() -> Callable[[Iterable[_KinetoEvent], bool, int], list[Row]]:
    """Read kineto's events by accessors that are bound now."""
    event = _KinetoEvent
    name, kind, place = event.name, _kind_of(event), event.device_type
    start, duration = event.start_ns, event.duration_ns
    stream, thread = event.device_resource_id, event.start_thread_id
    cpu = DeviceType.CPU

    def read(events: Iterable[_KinetoEvent], on_gpu: bool, began: int) -> list[Row]:
        """Read the events in order of time; `start` counts from `began` (ns since the epoch, kineto's clock)."""
        rows = []
        for item in events:
            what = kind(item)
            if (place(item) != cpu) is not on_gpu or (on_gpu and what not in DEVICE_WORK):
                continue
            lane = stream(item) if on_gpu else thread(item)
            rows.append((name(item)[:NAME_LIMIT], what, (start(item) - began) / 1e9, duration(item) / 1e9, lane))
        return sorted(rows, key=lambda row: (row[2], -row[3]))

    return read


def _kind_of(event: type[_KinetoEvent]) -> Callable[[_KinetoEvent], str]:
    """Return how to tell what a row is: torch 2.12 and later say it, before it shows in the name."""
    if hasattr(event, "activity_type"):
        return event.activity_type
    name, annotates = event.name, getattr(event, "is_user_annotation", lambda _: False)
    begins = (("Memcpy", "gpu_memcpy"), ("Memset", "gpu_memset"), ("CopyHostToDevice", "gpu_memcpy"))

    def kind(item: _KinetoEvent) -> str:
        if annotates(item):
            return "gpu_user_annotation"
        text = name(item)
        return next((what for start, what in begins if text.startswith(start)), "kernel")

    return kind


def _device(rows: list[Row], window: float) -> Seen:
    """Sum up what the device did between the first and the last marker.

    Raises ValueError where the marker of the current stream's end is missing.
    """
    marker, own_stream, rows = rows[0], rows[0][4], rows[1:-1]
    holds = [row for row in rows if row[4] == own_stream]
    if not holds:
        raise ValueError("the kernel that holds the stream until the call is queued was not recorded")
    rows.remove(holds[0])
    fills = [row for row in rows if row[:2] == marker[:2]]
    if not fills:
        raise ValueError("the marker of the stream's end was not recorded")
    # On another stream where `forward` made that one current.
    end = next((row for row in reversed(fills) if row[4] == own_stream), fills[-1])
    rows.remove(end)
    inside = [row for row in rows if -WINDOW_SLACK <= row[2] <= window + WINDOW_SLACK]
    outside = [row for row in rows if not -WINDOW_SLACK <= row[2] <= window + WINDOW_SLACK]
    others = [row for row in inside if row[4] != own_stream]
    kernels, left_out, numbers = _by_name(inside, [row[3] for row in inside])
    listed: list[list[float]] = [
        [numbers[row[0], row[1]], row[2], row[3], row[4]] for row in inside if (row[0], row[1]) in numbers
    ]
    return {
        "kernels": kernels,
        "left_out_seconds": left_out,
        "busy_seconds": busy(inside),
        "other_streams_seconds": busy(others),
        "unjoined_seconds": max(0.0, *(row[2] + row[3] - end[2] for row in others)) if others else 0.0,
        "outside_seconds": busy(outside),
        "rows": listed[:MAX_ROWS],
    }


def _operators(rows: list[Row], window: float) -> Seen:
    rows = [row for row in rows if 0.0 <= row[2] < window]
    kernels, left_out, _ = _by_name(rows, self_seconds(rows))
    return {"kernels": kernels, "left_out_seconds": left_out}


def busy(rows: Iterable[Row]) -> float:
    """Return the length of the union of the rows' intervals, seconds. Rows are in order of their start."""
    total, until = 0.0, float("-inf")
    for _, _, start, duration, _ in rows:
        total += max(0.0, start + duration - max(start, until))
        until = max(until, start + duration)
    return total


def self_seconds(rows: list[Row]) -> list[float]:
    """Return each row's seconds without those of the rows that it holds on the same thread.

    Rows are in order of start.
    """
    own = [row[3] for row in rows]
    open_rows: dict[int, list[int]] = {}
    for number, (_, _, start, duration, thread) in enumerate(rows):
        stack = open_rows.setdefault(thread, [])
        while stack and rows[stack[-1]][2] + rows[stack[-1]][3] <= start:
            stack.pop()
        if stack:
            own[stack[-1]] -= duration
        stack.append(number)
    return [max(0.0, seconds) for seconds in own]


def _by_name(rows: list[Row], seconds: list[float]) -> tuple[list[NamedWork], float, dict[tuple[str, str], int]]:
    """Return the totals per name, longest first, the seconds left out, and each name's place in the list."""
    totals: dict[tuple[str, str], list[float]] = {}
    for row, own in zip(rows, seconds, strict=True):
        entry = totals.setdefault((row[0], row[1]), [0.0, 0.0])
        entry[0] += 1
        entry[1] += own
    ordered = sorted(totals.items(), key=lambda item: -item[1][1])
    kept = ordered[:MAX_NAMES]
    kernels: list[NamedWork] = [
        {"name": name, "kind": kind, "calls": int(calls), "seconds": total} for (name, kind), (calls, total) in kept
    ]
    left_out = sum(total for _, (_, total) in ordered[MAX_NAMES:])
    return kernels, left_out, {key: number for number, (key, _) in enumerate(kept)}


_traced_call = _bind()
