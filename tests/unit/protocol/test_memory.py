"""Views of the shared regions, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from hkbench.evaluation.arena import Layout
from hkbench.protocol import memory
from hkbench.protocol.device_stream import Flusher
from hkbench.protocol.memory import DTYPES, dtype_name, map_host, view
from hkbench.runner.clock import timed_call
from hkbench.sandbox.client import memory_file, seal_memory


def region(size: int) -> torch.Tensor:
    fd = memory_file("test")
    seal_memory(fd, size)
    return map_host(fd, size)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_crosses(name: str) -> None:
    values = torch.arange(1, 7).to(DTYPES[name]).reshape(2, 3)
    layout = Layout(size=256)
    place = layout.place(values)
    memory = region(layout.size)
    view(memory, place).copy_(values)
    again = view(memory, place)
    assert again.dtype is DTYPES[name] and dtype_name(again.dtype) == name
    assert again.shape == (2, 3)
    assert torch.equal(again.to(torch.complex128), values.to(torch.complex128))
    assert not memory[:256].any() and memory[256:].any()


def test_two_mappings_share_their_bytes() -> None:
    fd = memory_file("test")
    seal_memory(fd, 4096)
    left, right = map_host(fd, 4096), map_host(fd, 4096)
    left[17] = 5
    assert int(right[17]) == 5


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(24.0).reshape(4, 6).T,
        torch.arange(48.0).reshape(4, 12)[:, ::2],
        torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
        torch.arange(120.0).reshape(1, 5, 4, 6).contiguous(memory_format=torch.channels_last),
        torch.tensor(7.0),
        torch.empty(0, 3),
        torch.arange(4.0)[2:],
    ],
    ids=["transposed", "step", "permuted", "channels last", "scalar", "empty", "offset"],
)
def test_strides_are_kept(tensor: torch.Tensor) -> None:
    layout = Layout(size=512)
    place = layout.place(tensor)
    placed = view(region(layout.size + 1), place)
    placed.copy_(tensor)
    assert placed.stride() == tensor.stride()
    assert torch.equal(placed, tensor)
    assert placed.data_ptr() % 256 == 0 or tensor.numel() == 0


def test_a_timed_call_returns_result_and_time() -> None:
    def forward() -> str:
        time.sleep(0.01)
        return "done"

    timed = timed_call(forward, torch.device("cpu"), None)
    assert timed.result == "done"
    assert timed.seconds == timed.idle_seconds >= 0.01


def test_the_cache_is_flushed_before_each_call() -> None:
    flush = Flusher(torch.device("cpu"), 1 << 20)
    seen: list[int] = []

    def forward() -> None:
        values = flush._buffer.unique()
        assert values.numel() == 1  # every byte was written anew
        seen.append(int(values[0]))

    for _ in range(3):
        timed_call(forward, torch.device("cpu"), flush)
    assert flush._buffer.numel() * 4 == flush.size == 1 << 20
    assert len(set(seen)) == 3


def test_a_block_for_the_next_output_holds_no_old_answer() -> None:
    answer = torch.full((1 << 16,), 7.0)
    place = answer.clone()
    del answer
    memory.poison_free([place], torch.device("cpu"))
    stale = torch.empty(1 << 16)
    assert not bool((stale == 7.0).any())


def test_a_perturbed_heap_hands_out_junk() -> None:
    memory.perturb_heap(True)
    try:
        fresh = torch.empty(1 << 12, dtype=torch.uint8)
        assert int(fresh.float().mean()) == 0xFE
    finally:
        memory.perturb_heap(False)


@pytest.mark.parametrize(
    ("make", "shared"),
    [
        (lambda base: base[:4], True),
        (lambda base: base[4:8], True),
        (lambda base: base[8:], False),
        (lambda base: base[2:6].clone(), False),
        (lambda base: base[:0], False),
    ],
)
def test_overlap_is_of_the_elements_not_of_the_storage(
    make: Callable[[torch.Tensor], torch.Tensor], shared: bool
) -> None:
    base = torch.arange(16.0)
    assert memory.overlap(make(base), base[:8]) is shared


@pytest.mark.parametrize("made", [torch.randn(5, 7), torch.randn(7, 5).t(), torch.randn(5, 14)[:, ::2]])
def test_results_of_any_layout_are_copied_out(made: torch.Tensor) -> None:
    place = torch.zeros(5, 7)
    memory.copy_out(place, made)
    assert torch.equal(place, made)


def test_on_a_gpu_the_allocators_free_blocks_are_filled_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    def segment(address: int, device: int, pool: tuple[int, int], *blocks: tuple[str, int]) -> dict[str, Any]:
        listed = [{"state": state, "size": size} for state, size in blocks]
        return {"address": address, "device": device, "segment_pool_id": pool, "blocks": listed}

    snapshot = [
        segment(1000, 0, (0, 0), ("inactive", 512), ("active_allocated", 1024), ("inactive", 64)),
        segment(9000, 1, (0, 0), ("inactive", 512)),
        segment(7000, 0, (0, 1), ("inactive", 512)),
        segment(5000, 0, (0, 0), ("active_pending_free", 512), ("inactive", 2048)),
    ]
    filled: list[tuple[int, int, int]] = []
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: snapshot)

    def fill(address: int, value: int, size: int) -> int:
        filled.append((address, value, size))
        return 0

    monkeypatch.setattr(memory, "_device_memset", fill)
    memory.poison_free([], torch.device("cuda", 0))
    assert filled == [(1000, 0xFF, 512), (2536, 0xFF, 64), (5512, 0xFF, 2048)]


def test_device_memory_that_cannot_be_filled_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [{"state": "inactive", "size": 512}]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [{"address": 1, "device": 0, "blocks": blocks}])
    monkeypatch.setattr(memory, "_device_memset", lambda *_: 700)
    with pytest.raises(RuntimeError, match="error 700"):
        memory.poison_free([], torch.device("cuda", 0))
