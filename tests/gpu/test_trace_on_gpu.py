"""Clock and trace on a real GPU: `pytest -m gpu`."""

from __future__ import annotations

import time

import pytest
import torch

from hkbench.profile.names import Built
from hkbench.profile.ownership import device_work, judgement
from hkbench.protocol.device_stream import Flusher
from hkbench.records import Track
from hkbench.runner.clock import reads_device_errors, timed_call
from hkbench.runner.trace import traced_call

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]
GPU = torch.device("cuda:0")


@pytest.fixture
def values() -> torch.Tensor:
    values = torch.randn(4096, 4096, device=GPU)
    values @ values  # the library's own start is not what is looked at
    torch.cuda.synchronize()
    return values


def test_patched_events_change_nothing(values: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = timed_call(lambda: values @ values, GPU, Flusher(GPU, 1 << 26)).seconds
    with monkeypatch.context() as patches:
        for name in ("elapsed_time", "record", "synchronize"):
            patches.setattr(torch.cuda.Event, name, lambda *_: 1e-6)
        for name in ("synchronize", "current_stream"):
            patches.setattr(torch.cuda, name, lambda *_: None)
        patches.setattr(time, "perf_counter", lambda: 0.0)
        timed = timed_call(lambda: values @ values, GPU, Flusher(GPU, 1 << 26))
    assert honest / 3 < timed.seconds < honest * 3
    assert timed.device_error is None


def test_an_unjoined_stream_shows_in_the_idle_time(values: torch.Tensor) -> None:
    side = torch.cuda.Stream()

    def forward() -> None:
        with torch.cuda.stream(side):
            for _ in range(20):
                values @ values

    timed = timed_call(forward, GPU, None)
    assert timed.idle_seconds > 3 * timed.seconds + 1e-3
    _, seen = traced_call(forward, GPU)
    assert seen["other_streams_seconds"] == pytest.approx(seen["busy_seconds"])
    assert seen["unjoined_seconds"] > 1e-3
    assert seen["outside_seconds"] == 0.0


def test_a_joined_stream_is_no_unjoined_one(values: torch.Tensor) -> None:
    side = torch.cuda.Stream()

    def forward() -> torch.Tensor:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            product = values @ values
        torch.cuda.current_stream().wait_stream(side)
        return product

    _, seen = traced_call(forward, GPU)
    assert seen["other_streams_seconds"] > 0.0
    assert seen["unjoined_seconds"] == 0.0


def test_a_launch_that_fails_unseen_is_read_and_stays_as_it_is() -> None:
    from torch.utils.cpp_extension import load_inline

    source = """
    __global__ void big(float* x) { extern __shared__ float s[]; x[0] = s[0]; }
    void wrong(torch::Tensor x) { big<<<1, 4096>>>(x.data_ptr<float>()); }
    """
    module = load_inline("wrong_launch", "void wrong(torch::Tensor x);", source, functions=["wrong"])
    x = torch.zeros(4, device=GPU)
    assert reads_device_errors
    timed = timed_call(lambda: module.wrong(x), GPU, None)
    assert timed.device_error is not None
    # Drivers differ in what they call it.
    assert "invalid configuration" in timed.device_error or "invalid argument" in timed.device_error
    assert timed_call(lambda: x, GPU, None).device_error is None, "an earlier call's error is not this one's"


def test_kernels_of_a_traced_call(values: torch.Tensor) -> None:
    def forward() -> torch.Tensor:
        return torch.relu(values @ values).clone()

    forward()  # loads its kernels
    timed, seen = traced_call(forward, GPU)
    assert "error" not in seen
    assert isinstance(timed.result, torch.Tensor)
    assert seen["busy_seconds"] == pytest.approx(timed.seconds, rel=0.3)
    assert seen["other_streams_seconds"] == 0.0
    assert seen["outside_seconds"] == 0.0
    assert seen["busy_seconds"] <= seen["wall_seconds"]
    assert not any("FillFunctor" in kernel["name"] for kernel in seen["kernels"]), "the marker is not the candidate's"
    work = device_work(seen, frozenset(), Built())
    assert work is not None
    assert work.library > work.pytorch > 0.0
    assert work.other > 0.0
    assert judgement(work, Track.OWN) is not None


def test_work_after_the_call_is_seen(values: torch.Tensor) -> None:
    import threading

    def later() -> None:
        torch.cuda.set_device(GPU)
        time.sleep(0.003)
        torch.mul(values, values)

    thread = threading.Thread(target=later)
    _, seen = traced_call(thread.start, GPU)
    thread.join()
    assert seen["outside_seconds"] > 0.0
    assert seen["busy_seconds"] == 0.0
