"""Outputs that are read from the memory of a runner: this process stands in for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

import pytest
import torch

from hkbench.evaluation.arena import Layout
from hkbench.evaluation.failures import CandidateFailed
from hkbench.evaluation.form import Leaf
from hkbench.evaluation.link import Unreadable
from hkbench.evaluation.side import BaselineClient, RunnerClient
from hkbench.evaluation.taking import taken, why_unreadable
from hkbench.protocol.messages import Here, TextPlaced
from hkbench.records import FailureKind, Stage
from hkbench.runner.main import Runner
from hkbench.sandbox.linux import read_memory

WHOLE = torch.arange(24.0).reshape(4, 6)
TENSORS = {
    "plain": WHOLE,
    "transposed": WHOLE.t(),
    "a part": WHOLE[1:, 2:4],
    "repeated": WHOLE[0].expand(3, 6),
    "bfloat16": WHOLE.to(torch.bfloat16),
    "float8": WHOLE.to(torch.float8_e4m3fn),
    "bool": WHOLE > 3,
    "complex": torch.complex(WHOLE, -WHOLE),
    "one number": torch.tensor(3),
    "empty": torch.empty(0, 3),
}


class Frozen:
    """A side whose runner is this process."""

    process = os.getpid()

    def read(self, process: int, address: int, size: int) -> bytearray:
        try:
            return read_memory(process, address, size)
        except OSError as error:
            raise Unreadable(str(error)) from error


def take(tensor: torch.Tensor, address: object) -> torch.Tensor:
    side = cast(RunnerClient, Frozen())
    place = Layout().place(tensor.detach().contiguous())
    leaf = Leaf("output", list(tensor.shape), list(tensor.stride()), address)
    return taken(side, [leaf], {"output": place}, Stage.RUN)["output"]


@pytest.mark.parametrize("name", TENSORS)
def test_an_output_is_taken_in_any_layout(name: str) -> None:
    tensor = TENSORS[name]
    got = take(tensor, tensor.data_ptr())
    wide = torch.complex64 if tensor.is_complex() else torch.float32  # float8 cannot be compared
    assert got.dtype == tensor.dtype and torch.equal(got.to(wide), tensor.to(wide))
    assert got.data_ptr() != tensor.data_ptr() or not tensor.numel()


@pytest.mark.parametrize("address", [None, "0", -1, 8, 1 << 63, True])
def test_an_output_that_does_not_lie_there_is_the_candidate_s_failure(address: object) -> None:
    with pytest.raises(CandidateFailed) as caught:
        take(WHOLE, address)
    assert caught.value.failure.kind is FailureKind.PROTOCOL


class Baseline(Frozen):
    """A baseline's runner whose memory `read` reads."""

    def __init__(self, read: Callable[[int, int, int], bytearray]) -> None:
        self.runner = Runner.__new__(Runner)
        self.read = read  # type: ignore[method-assign, assignment]

    def request(self, request: Here) -> TextPlaced:
        return self.runner.here(request)


def test_whether_memory_can_be_read_is_seen_by_the_baseline_s() -> None:
    def refused(*_: int) -> bytearray:
        raise Unreadable("Operation not permitted")

    def asked(read: Callable[[int, int, int], bytearray]) -> str | None:
        return why_unreadable(cast(BaselineClient, Baseline(read)))

    assert asked(read_memory) is None
    assert "Operation not permitted" in str(asked(refused))
    assert asked(lambda *_: bytearray(32)) is not None
