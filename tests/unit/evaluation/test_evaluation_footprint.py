"""What an evaluator may keep from one evaluation to the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from hkbench.devices.probe import probe
from hkbench.evaluation.footprint import MAX_DEVICE_BYTES, MAX_HOST_BYTES, Footprint
from hkbench.evaluation.warm import warm
from hkbench.protocol.messages import MemoryHeld
from hkbench.records import DeviceKind

CPU = torch.device("cpu")
RUNNER = MemoryHeld(device_bytes=1000, host_bytes=2000)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    tf32, threads = torch.backends.cuda.matmul.allow_tf32, torch.get_num_threads()
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_flush_denormal(False)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.set_num_threads(threads)
    os.environ.pop("HKBENCH_LEFT_BEHIND", None)


def test_who_measures_on_a_tiny_problem_leaves_nothing_behind() -> None:
    first = Footprint.of(CPU, RUNNER)
    (facts,) = probe(DeviceKind.CPU)
    warm(CPU, facts)
    assert first.exceeded_by(Footprint.of(CPU, RUNNER)) == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_default_device("meta"),
        lambda: torch.set_grad_enabled(False),
        lambda: torch.use_deterministic_algorithms(True),
        lambda: torch.set_flush_denormal(True),
        lambda: torch.set_num_threads(torch.get_num_threads() + 1),
        lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
        lambda: os.environ.update(HKBENCH_LEFT_BEHIND="1"),
    ],
)
def test_a_setting_that_is_another_one_now_ends_it(change: Callable[[], object]) -> None:
    first = Footprint.of(CPU, RUNNER)
    change()
    assert first.exceeded_by(Footprint.of(CPU, RUNNER))


@pytest.mark.parametrize(
    ("who", "most"),
    [
        ("device_bytes", 0),
        ("host_bytes", MAX_HOST_BYTES),
        ("runner_device_bytes", MAX_DEVICE_BYTES),
        ("runner_host_bytes", MAX_HOST_BYTES),
    ],
)
def test_so_does_memory_that_is_kept(who: str, most: int) -> None:
    first = Footprint.of(CPU, RUNNER)
    for more, allowed in ((most, True), (most + 1, False)):
        now = replace(first, **{who: getattr(first, who) + more})
        assert (not first.exceeded_by(now)) == allowed
