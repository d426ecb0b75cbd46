"""What the evaluator keeps of a GPU's memory while the runners need it."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from hkbench.evaluation.shared_memory import MAX_IDLE_SHARE, SharedMemory

MEMORY = 80 << 30


@pytest.mark.parametrize(
    ("device", "known", "idle_share", "gives_back"),
    [
        ("cuda", MEMORY, 2 * MAX_IDLE_SHARE, True),
        ("cuda", MEMORY, 0.5 * MAX_IDLE_SHARE, False),
        ("cuda", None, 2 * MAX_IDLE_SHARE, False),
        ("cpu", MEMORY, 2 * MAX_IDLE_SHARE, False),
    ],
)
def test_much_idle_memory_is_given_back(
    monkeypatch: pytest.MonkeyPatch, device: str, known: int | None, idle_share: float, gives_back: bool
) -> None:
    in_use = 5 << 30
    emptied = []
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: in_use)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: in_use + int(idle_share * MEMORY))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    shared = SharedMemory.__new__(SharedMemory)
    cast(Any, shared).__dict__.update(_device=torch.device(device), _memory_bytes=known)
    shared.make_room()
    assert bool(emptied) is gives_back
