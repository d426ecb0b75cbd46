"""The clock keeps time whatever a candidate does to the names that it is known by."""

from __future__ import annotations

import time

import pytest
import torch

from hkbench.protocol.device_stream import Flusher
from hkbench.runner.clock import timed_call

CPU = torch.device("cpu")
NAP = 0.05


def patch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every timer and every operation of the flush, as an attack would replace them."""

    def nothing(*_args: object, **_kwargs: object) -> float:
        return 0.0

    for name in ("perf_counter", "perf_counter_ns", "time", "time_ns", "monotonic", "process_time"):
        monkeypatch.setattr(time, name, nothing)
    for name in ("synchronize", "Event", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, nothing)
    for name in ("fill_", "max"):
        monkeypatch.setattr(torch.Tensor, name, nothing, raising=False)


def nap() -> str:
    started = PERF_COUNTER()
    while PERF_COUNTER() - started < NAP:
        pass
    return "slept"


PERF_COUNTER = time.perf_counter


def test_patched_timers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patches:
        patch(patches)
        timed = timed_call(nap, CPU, None)
    assert timed.result == "slept"
    assert NAP <= timed.seconds < 100 * NAP
    assert timed.idle_seconds == timed.seconds
    assert timed.device_error is None


def test_a_patched_fill_does_not_stop_the_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = Flusher(CPU, 4096)
    with monkeypatch.context() as patches:
        patch(patches)
        flush()
        flush()
    assert flush._buffer.tolist() == [2] * 1024


def test_a_mode_left_behind_does_not_stop_the_flush() -> None:
    class Nothing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: object, _types: object, args: object = (), kwargs: object = None) -> object:
            return None

    flush = Flusher(CPU, 4096)
    with Nothing():
        flush()
    assert flush._buffer.tolist() == [1] * 1024


def test_the_flush_comes_before_the_clock_starts() -> None:
    class Slow(Flusher):
        def __call__(self) -> None:
            nap()

    assert timed_call(lambda: None, CPU, Slow(CPU, 4)).seconds < NAP


def test_what_forward_raises_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        timed_call(lambda: 1 // 0, CPU, None)
