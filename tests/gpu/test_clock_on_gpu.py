"""The runner's clock on a GPU: `pytest -m gpu`."""

from __future__ import annotations

import statistics
import time

import pytest
import torch

from hkbench.protocol.constants import HOLD_SECONDS
from hkbench.protocol.device_stream import Flusher
from hkbench.runner.clock import timed_call

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]
HOST_SECONDS = HOLD_SECONDS / 2


def test_what_the_host_takes_to_queue_a_call_is_not_in_its_time() -> None:
    device = torch.device("cuda", 0)
    flush = Flusher(device, 1 << 20)
    x = torch.zeros(1024, device=device)

    def forward() -> torch.Tensor:
        end = time.perf_counter() + HOST_SECONDS
        while time.perf_counter() < end:
            pass
        return x.add_(1)

    def seconds(flusher: Flusher | None) -> float:
        return statistics.median(timed_call(forward, device, flusher).seconds for _ in range(20))

    assert seconds(None) > HOST_SECONDS, "without a flush the device waits for the host"
    assert seconds(flush) < 0.5 * HOST_SECONDS
