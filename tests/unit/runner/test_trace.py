"""One forward pass as kineto sees it."""

from __future__ import annotations

import json
import time

import pytest
import torch

from hkbench.runner import trace
from hkbench.runner.trace import MAX_NAMES, NAME_LIMIT, Row, busy, self_seconds, traced_call

CPU = torch.device("cpu")


def row(name: str, start: float, duration: float, lane: int = 7, kind: str = "kernel") -> Row:
    return name, kind, start, duration, lane


def test_operators_of_a_pass() -> None:
    values = torch.randn(200, 200)

    def forward() -> torch.Tensor:
        time.sleep(0.02)
        return torch.relu(values @ values)

    timed, seen = traced_call(forward, CPU)
    assert isinstance(timed.result, torch.Tensor)
    names = {kernel["name"]: kernel for kernel in seen["kernels"]}
    assert names["aten::mm"]["calls"] == names["aten::relu"]["calls"] == 1
    assert sum(kernel["seconds"] for kernel in seen["kernels"]) <= seen["wall_seconds"]
    assert 0.02 <= timed.seconds <= seen["wall_seconds"]
    json.dumps(seen)


def test_a_patched_profiler_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_args: object, **_kwargs: object) -> list[object]:
        return []

    monkeypatch.setattr(torch.profiler, "profile", nothing)
    monkeypatch.setattr(torch.autograd.profiler, "_disable_profiler", nothing)
    monkeypatch.setattr(torch._C._autograd, "_disable_profiler", nothing)
    monkeypatch.setattr(torch._C._autograd._KinetoEvent, "name", nothing)
    monkeypatch.setattr(torch._C._autograd._KinetoEvent, "duration_ns", nothing)
    _, seen = traced_call(lambda: torch.ones(10) + 1, CPU)
    assert "aten::add" in {kernel["name"] for kernel in seen["kernels"]}


def test_what_forward_raises_comes_through_and_the_next_call_is_traced() -> None:
    with pytest.raises(ZeroDivisionError):
        traced_call(lambda: 1 // 0, CPU)
    assert "error" not in traced_call(lambda: torch.ones(3), CPU)[1]


def test_a_profiler_that_was_stopped_costs_only_the_trace() -> None:
    def forward() -> int:
        torch._C._autograd._disable_profiler()
        return 3

    timed, seen = traced_call(forward, CPU)
    assert timed.result == 3
    assert seen["stopped"] is True


def test_a_trace_has_a_size() -> None:
    def forward() -> None:
        for number in range(3 * MAX_NAMES):
            with torch.profiler.record_function(f"{number}" * 500):
                pass

    seen = traced_call(forward, CPU)[1]
    assert len(seen["kernels"]) == MAX_NAMES
    assert max(len(kernel["name"]) for kernel in seen["kernels"]) == NAME_LIMIT
    assert seen["left_out_seconds"] > 0


def test_own_seconds_of_nested_operators() -> None:
    rows = [row("linear", 0.0, 10.0), row("mm", 1.0, 4.0), row("bias", 6.0, 1.0), row("other thread", 1.0, 5.0, lane=8)]
    rows.sort(key=lambda item: (item[2], -item[3]))
    own = dict(zip((item[0] for item in rows), self_seconds(rows), strict=True))
    assert own == {"linear": 5.0, "mm": 4.0, "bias": 1.0, "other thread": 5.0}


def test_overlapping_kernels_are_busy_once() -> None:
    assert busy([row("a", 0.0, 2.0), row("b", 1.0, 3.0), row("c", 1.5, 0.5), row("d", 6.0, 1.0)]) == 5.0


def test_work_on_other_streams_and_outside_of_the_call() -> None:
    marker = row("fill", -1e-3, 1e-6)
    rows = [
        marker,
        row("hold", 1e-4, 5e-4),
        row("a", 1e-3, 2e-3),
        row("b", 2e-3, 2e-3, lane=9),
        row("fill", 3e-3, 1e-6),
        row("late", 0.02, 1e-3, lane=9),
        row("fill", 0.05, 1e-6),
    ]
    seen = trace._device(rows, window=5e-3)
    assert seen["busy_seconds"] == pytest.approx(3e-3)
    assert seen["other_streams_seconds"] == pytest.approx(2e-3)
    assert seen["unjoined_seconds"] == pytest.approx(1e-3)
    assert seen["outside_seconds"] == pytest.approx(1e-3)
    assert [kernel["name"] for kernel in seen["kernels"]] == ["a", "b"]
    assert seen["rows"] == [[0, 1e-3, 2e-3, 7], [1, 2e-3, 2e-3, 9]]


def test_a_joined_stream_ends_before_the_marker() -> None:
    rows = [
        row("fill", -1e-3, 1e-6),
        row("hold", 0.0, 5e-4),
        row("a", 1e-3, 1e-3, lane=9),
        row("fill", 2e-3, 1e-6),
        row("fill", 0.05, 1e-6),
    ]
    assert trace._device(rows, window=5e-3)["unjoined_seconds"] == 0.0


def test_a_marker_that_is_missing_is_an_error() -> None:
    with pytest.raises(ValueError, match="marker"):
        trace._device(
            [row("fill", -1e-3, 1e-6), row("hold", 0.0, 5e-4), row("a", 1e-3, 1e-3), row("fill", 0.05, 1e-6)],
            window=5e-3,
        )
