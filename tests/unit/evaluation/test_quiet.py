"""What kernels of the evaluator's own tell of other work on a GPU, with a GPU that takes as long as it is told."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import pytest
import torch

from hkbench.evaluation import quiet
from hkbench.evaluation.quiet import IdleProbe

USUAL = 2e-5
Probe = Callable[..., IdleProbe]


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Probe:
    def make(*seconds: float, looks: int = 40) -> IdleProbe:
        """Return a probe that has looked: `seconds` are those of its kernels, over and over."""
        took = cycle(seconds)
        learning = [True]
        monkeypatch.setattr(IdleProbe, "_once", lambda _self: USUAL if learning[0] else next(took))
        monkeypatch.setattr(quiet, "_LEAST", {})
        monkeypatch.setattr(torch, "zeros", lambda *_shape, device: None)
        made = IdleProbe(torch.device("cuda"))
        learning[0] = False
        for _ in range(looks):
            made.look()
        return made

    return make


def test_an_idle_device_is_no_reason(probe: Probe) -> None:
    assert probe(USUAL, 1.3 * USUAL, 2 * USUAL).reason is None


def test_a_device_that_wakes_up_for_the_first_kernel_is_no_reason(probe: Probe) -> None:
    assert probe(3e-4, USUAL, USUAL).reason is None


def test_a_kernel_that_never_ends_is_a_reason(probe: Probe) -> None:
    assert probe(2e-3).reason is not None


@pytest.mark.parametrize("short", [3e-4, 5e-4])
def test_bursts_with_pauses_are_a_reason(probe: Probe, short: float) -> None:
    found = probe(USUAL, USUAL, short, USUAL)
    assert found.busy == 0 and found.reason is not None


def test_a_neighbour_now_and_then_is_no_reason(probe: Probe) -> None:
    assert probe(*[USUAL] * 29, 4e-4).reason is None


def test_what_was_seen_can_be_forgotten(probe: Probe) -> None:
    found = probe(2e-3)
    found.forget()
    assert found.reason is None
