"""The block of a kernel's arguments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hkbench.emulator.kernels import Argument, Kernel, kernarg_block

KERNEL = Kernel(
    name="kernel",
    entry=0,
    kernarg_size=36,
    lds_bytes=0,
    scratch_bytes=0,
    vgprs=8,
    max_workgroup_size=256,
    arguments=(Argument(0, 32, "by_value", "a"), Argument(32, 4, "hidden_block_count_x", "")),
    mode=0,
    user_sgprs=2,
    properties=0,
    ids=0,
)


@pytest.mark.parametrize(("size", "whole"), [(0, 16), (16, 16), (36, 48), (44, 48), (60, 64)])
def test_the_block_has_whole_pieces_of_16_bytes(size: int, whole: int) -> None:
    kernel = replace(KERNEL, kernarg_size=size, arguments=())
    assert kernarg_block(kernel, bytes(size), {}) == bytes(whole)


def test_hidden_arguments_follow_those_given() -> None:
    block = kernarg_block(KERNEL, bytes(range(32)), {"block_count_x": 7})
    assert block == bytes(range(32)) + (7).to_bytes(4, "little") + bytes(12)


def test_too_few_arguments_are_refused() -> None:
    with pytest.raises(ValueError):
        kernarg_block(KERNEL, bytes(31), {})
