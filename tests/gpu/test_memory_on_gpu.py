"""Poisoned device memory: `pytest -m gpu`."""

from __future__ import annotations

import pytest
import torch

from hkbench.protocol.memory import poison_free

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]
DEVICE = torch.device("cuda", 0)


def test_a_freed_answer_is_gone() -> None:
    answer = torch.ones(3_000_000, device=DEVICE)
    address = answer.data_ptr()
    del answer
    poison_free([], DEVICE)
    found = torch.empty(3_000_000, device=DEVICE)
    assert found.data_ptr() == address
    assert bool(torch.isnan(found).all())


def test_memory_in_use_is_left_alone() -> None:
    kept = torch.ones(5000, device=DEVICE)
    poison_free([kept], DEVICE)
    assert bool((kept == 1).all())


def test_it_takes_no_memory_of_its_own() -> None:
    """A rest of a large block that is too small for another large one used to cost 2 MB a call, and time with them."""
    large = torch.empty(19 << 20, dtype=torch.uint8, device=DEVICE)
    small = [torch.empty(n, device=DEVICE) for n in (1, 77, 3000)]
    del small[1]
    poison_free([small[0]], DEVICE)
    before = torch.cuda.memory_reserved(DEVICE)
    for _ in range(50):
        poison_free([small[0]], DEVICE)
    assert torch.cuda.memory_reserved(DEVICE) == before
    assert large.numel()
