"""Calls between two stops of a runner: this process stands in for it."""

from __future__ import annotations

import os
from typing import cast

import pytest
import torch

from hkbench.evaluation.arena import Layout
from hkbench.evaluation.halted import HaltedCall
from hkbench.evaluation.link import Unreadable
from hkbench.evaluation.side import RunnerClient
from hkbench.evaluation.stopwatch import NotTaken
from hkbench.protocol.places import Place
from hkbench.sandbox.linux import read_memory

WHOLE = torch.arange(24.0).reshape(4, 6)
TENSORS = {
    "plain": WHOLE,
    "transposed": WHOLE.t(),
    "a part": WHOLE[1:, 2:4],
    "columns of a large buffer": torch.arange(4.0 * (1 << 16)).reshape(4, 1 << 16)[:, :2],
    "repeated": WHOLE[0].expand(3, 6),
    "bool": WHOLE > 3,
    "complex": torch.complex(WHOLE, -WHOLE),
    "one number": torch.tensor(3),
    "empty": torch.empty(0, 3),
}


class Side:
    """A runner that goes on at 10 s and stands at 12.5 s."""

    process = os.getpid()

    def __init__(self) -> None:
        self.did: list[str] = []

    def place(self, reveal: object) -> None:
        self.did.append("place")

    def go(self) -> float:
        self.did.append("go")
        return 10.0

    def stand(self) -> float:
        self.did.append("stand")
        return 12.5

    def go_on(self) -> None:
        self.did.append("go on")

    def read(self, process: int, address: int, size: int) -> bytearray:
        self.did.append(f"read {size}")
        try:
            return read_memory(process, address, size)
        except OSError as error:
            raise Unreadable(str(error)) from error


def place_of(tensor: torch.Tensor) -> Place:
    return Layout().place(tensor.detach().contiguous())


def begun(side: Side, places: dict[str, Place]) -> HaltedCall:
    call = HaltedCall(cast(RunnerClient, side), lambda: None, places)
    call.release()
    return call


def told(*tensors: torch.Tensor) -> dict[str, object]:
    return {"event": "end", "places": [[tensor.data_ptr(), *tensor.stride()] for tensor in tensors]}


@pytest.mark.parametrize("name", TENSORS)
def test_outputs_are_read_between_the_stops_and_the_time_is_that_between_them(name: str) -> None:
    side, tensor = Side(), TENSORS[name]
    call = begun(side, {"output": place_of(tensor)})
    call.end(told(tensor))
    assert call.finish() == 2.5
    assert torch.equal(call.outputs["output"], tensor)
    assert (side.did[:3], side.did[-1]) == (["place", "go", "stand"], "go on")


def test_nothing_is_read_where_no_outputs_are_wanted() -> None:
    side = Side()
    call = begun(side, {})
    call.end(told(WHOLE))
    assert call.finish() == 2.5 and not call.outputs
    assert side.did == ["place", "go", "stand", "go on"]


ADDRESS = WHOLE.data_ptr()
NOWHERE: dict[str, object] = {
    "nothing": None,
    "no place": [],
    "no address": [[]],
    "not mapped": [[8, 6, 1]],
    "a text": [["0", 6, 1]],
    "too few strides": [[ADDRESS, 6]],
    "a negative stride": [[ADDRESS, -6, 1]],
    "beyond": [[1 << 63, 6, 1]],
}


@pytest.mark.parametrize("name", NOWHERE)
def test_outputs_that_do_not_lie_there_are_lost(name: str) -> None:
    call = begun(Side(), {"output": place_of(WHOLE)})
    call.end({"event": "end", "places": NOWHERE[name]})
    assert call.lost is not None and not call.outputs
    assert call.finish() == 2.5


def test_strides_that_reach_far_have_little_read() -> None:
    side = Side()
    call = begun(side, {"output": place_of(WHOLE)})
    call.end({"event": "end", "places": [[WHOLE.data_ptr(), 1 << 40, 1]]})
    assert side.did[3] == f"read {WHOLE.nbytes}"


def test_a_call_ends_once_and_only_after_it_has_begun() -> None:
    call = HaltedCall(cast(RunnerClient, Side()), lambda: None, {})
    with pytest.raises(NotTaken):
        call.end(told())
    with pytest.raises(NotTaken):
        call.finish()
    call.release()
    call.end(told())
    with pytest.raises(NotTaken):
        call.end(told())
