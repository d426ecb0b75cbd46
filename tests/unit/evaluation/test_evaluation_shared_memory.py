"""What the evaluator keeps of a GPU's memory while the runners need it."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
import torch

from hkbench.evaluation.shared_memory import CLEARED, MAX_IDLE_SHARE, MIN_FREE_SHARE, SharedMemory

MEMORY = 80 << 30


@pytest.mark.parametrize(
    ("device", "known", "idle_share", "free_share", "gives_back"),
    [
        ("cuda", MEMORY, 2 * MAX_IDLE_SHARE, 0.5 * MIN_FREE_SHARE, True),
        ("cuda", MEMORY, 2 * MAX_IDLE_SHARE, 2 * MIN_FREE_SHARE, False),
        ("cuda", MEMORY, 0.5 * MAX_IDLE_SHARE, 0.5 * MIN_FREE_SHARE, False),
        ("cuda", None, 2 * MAX_IDLE_SHARE, 0.5 * MIN_FREE_SHARE, False),
        ("cpu", MEMORY, 2 * MAX_IDLE_SHARE, 0.5 * MIN_FREE_SHARE, False),
    ],
)
def test_much_idle_memory_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    known: int | None,
    idle_share: float,
    free_share: float,
    gives_back: bool,
) -> None:
    in_use = 5 << 30
    emptied = []
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: in_use)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: in_use + int(idle_share * MEMORY))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (int(free_share * MEMORY), MEMORY))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    shared = SharedMemory.__new__(SharedMemory)
    cast(Any, shared).__dict__.update(_device=torch.device(device), _memory_bytes=known)
    begun = time.monotonic()
    shared.make_room()
    assert bool(emptied) is gives_back
    assert not gives_back or time.monotonic() - begun > idle_share * MEMORY / CLEARED, "for the driver to clear it"
