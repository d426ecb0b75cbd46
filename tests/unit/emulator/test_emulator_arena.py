"""The device's memory: one address in every process, a size that nobody changes."""

from __future__ import annotations

import ctypes
import os

import pytest

from hkbench.emulator import arena

ELSEWHERE = arena.HEAP + (5 << 40)


def test_two_mappings_of_one_file_are_the_same_memory_at_the_address_asked_for() -> None:
    heap = arena.make_heap(1 << 20)
    try:
        first = arena.map_at(heap, ELSEWHERE, 1 << 20)
        assert first == arena.Range(ELSEWHERE, 1 << 20)
        ctypes.memmove(ELSEWHERE + 4096, b"written", 7)
        assert os.pread(heap, 7, 4096) == b"written"
        with pytest.raises(OSError, match="cannot be mapped"):
            arena.map_at(heap, ELSEWHERE, 4096)
        with pytest.raises(OSError, match="is to be mapped as"):
            arena.map_at(heap, ELSEWHERE + (1 << 30), 1 << 21)
    finally:
        os.close(heap)


def test_the_heap_is_sealed() -> None:
    heap = arena.make_heap(1 << 20)
    try:
        for size in (0, 1 << 21):
            with pytest.raises(PermissionError):
                os.ftruncate(heap, size)
    finally:
        os.close(heap)


def test_a_range_holds_what_lies_within_it() -> None:
    room = arena.Range(100, 50)
    assert room.holds(arena.Range(100, 50)) and room.holds(arena.Range(120, 0))
    assert not room.holds(arena.Range(99, 2)) and not room.holds(arena.Range(149, 2))
