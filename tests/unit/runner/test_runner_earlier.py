"""Results that a caller still holds when the next one comes, and calls that follow one another at once."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator

import pytest
import torch

from hkbench.evaluation.arena import Layout, SharedBuffer, fill
from hkbench.protocol import memory, messages
from hkbench.runner.earlier import Earlier
from hkbench.runner.main import Runner
from hkbench.sandbox.client import memory_file

KEEPS = """
import torch
class Model(torch.nn.Module):
    kept = torch.empty(2, 3)
    keeps = False
    def forward(self, x):
        return torch.mul(x, 2.0, out=self.kept) if self.keeps else 2.0 * x
"""
X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(params=[False, True], ids=["fresh", "kept"])
def keeps(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def ready(keeps: bool) -> Iterator[tuple[Runner, SharedBuffer, SharedBuffer, Layout, Layout]]:
    """A runner whose model takes inputs twice, into one buffer or each time into memory of their own."""
    ours, theirs = socket.socketpair()
    inputs, outputs = Layout(), Layout()
    given, wanted = inputs.argument(X), outputs.place(X)
    files = [memory_file(name) for name in ("inbox", "outbox")]
    inbox, outbox = (SharedBuffer.on_host(fd, layout.size) for fd, layout in zip(files, (inputs, outputs), strict=True))
    runner = Runner(theirs, *files)
    text = KEEPS.replace("keeps = False", f"keeps = {keeps}")
    runner.load(messages.Load(path="/nowhere.py", text=text, class_="Model", capture=False, overrides={}))
    runner.regions(
        messages.Regions(
            inbox=inputs.size, outbox=outputs.size, shared=False, sent=False, flush_bytes=0, left=False, gate=None
        )
    )
    runner.construct(messages.Construct(seed=0, init_inputs=[]))
    runner.bind(messages.Bind(inputs=[given], outputs={"output": wanted}))
    runner.given, runner.wanted = given, wanted  # type: ignore[attr-defined]
    yield runner, inbox, outbox, inputs, outputs
    for sock in (ours, theirs):
        sock.close()
    for fd in files:
        os.close(fd)


def test_successive_calls_have_inputs_and_results_of_their_own(
    ready: tuple[Runner, SharedBuffer, SharedBuffer, Layout, Layout], keeps: bool
) -> None:
    runner, inbox, outbox, *_ = ready
    given, wanted = runner.given, runner.wanted  # type: ignore[attr-defined]
    for factor in (2.0, 3.0, 1.0):  # the last ones stay in the inbox
        fill(inbox, given, factor * X)
        if factor > 1.0:
            runner.ahead(messages.Ahead())
    runner.successive(messages.Successive())
    shared = []
    for number, factor in enumerate((1.0, 2.0, 3.0)):
        answer = runner.result(messages.Result(number=number))
        shared.append(answer.leaves[0]["shares"])
        assert torch.equal(outbox.get(wanted), (6.0 if keeps else 2.0 * factor) * X)
    assert shared == [None, "earlier", "earlier"] if keeps else shared == [None] * 3


@pytest.mark.parametrize("strict", [True, False])
def test_a_large_result_is_remembered_without_being_held(monkeypatch: pytest.MonkeyPatch, strict: bool) -> None:
    monkeypatch.setattr("hkbench.runner.earlier.MAX_HELD", 100)
    large = torch.zeros(1000)
    earlier = Earlier([large[10:]], strict)
    assert earlier.overlaps(large[20:30]) and not earlier.overlaps(large[:10]) and not earlier.overlaps(torch.zeros(9))
    place, freed = large.data_ptr(), torch.zeros(1000)
    del large
    again = torch.frombuffer((ctypes.c_char * 4000).from_address(place), dtype=torch.float32)
    assert earlier.overlaps(again) is strict
    del again, freed


def test_a_copy_has_the_same_strides_in_memory_of_its_own() -> None:
    for tensor in (X.t(), X[:, 1:], X[0].expand(4, 3), torch.empty(0, 3), X[1, 1]):
        copy = memory.copy_of(tensor)
        assert torch.equal(copy, tensor) and copy.stride() == tensor.stride()
        assert not memory.overlap(copy, tensor)


@pytest.mark.parametrize("keeps", [False], indirect=True)
def test_where_outputs_are_left_the_runner_says_where(
    ready: tuple[Runner, SharedBuffer, SharedBuffer, Layout, Layout],
) -> None:
    runner, inbox, outbox, *_ = ready
    runner._results.left = True
    fill(inbox, runner.given, X)  # type: ignore[attr-defined]
    outbox.poison()
    given, wanted = runner.given, runner.wanted  # type: ignore[attr-defined]
    runner.bind(messages.Bind(inputs=[given], outputs={"output": wanted}))
    (leaf,) = runner.call(messages.Call()).leaves
    assert isinstance(leaf["address"], int) and leaf["shape"] == list(X.shape) and leaf["strides"] == list(X.stride())
    held = torch.frombuffer((ctypes.c_char * (4 * X.numel())).from_address(leaf["address"]), dtype=torch.float32)
    assert torch.equal(held.reshape(X.shape), 2.0 * X)
    assert torch.isnan(outbox.get(runner.wanted)).all()  # type: ignore[attr-defined]
    number = runner._results.hand_over(torch.tensor(3.0).expand(X.shape)[0, 0])[0]
    assert number["strides"] == [] and type(number["address"]) is int


class TakenBack(torch.Tensor):
    """What a tensor does that a CUDA graph of `torch.compile`'s has overwritten."""

    def data_ptr(self) -> int:
        raise RuntimeError("accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run")


def test_a_result_that_a_graph_has_overwritten_shares_its_memory() -> None:
    earlier = Earlier([torch.ones(3).as_subclass(TakenBack)], strict=True)
    assert earlier.overlaps(torch.ones(3))
