"""A runner that stays, as a baseline's does, for one problem after another."""

from __future__ import annotations

import os
import socket
import sys
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch

from hkbench.evaluation.arena import Layout, SharedBuffer, fill
from hkbench.protocol import messages, wire
from hkbench.runner import capture
from hkbench.runner.main import MODULE, Runner
from hkbench.sandbox.client import memory_file

TIMES = """
import torch
FACTOR = 1.0
class Model(torch.nn.Module):
    def forward(self, x):
        return FACTOR * x
"""
KEEPS = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.kept = torch.randn(3)
"""
X = torch.arange(6.0).reshape(2, 3)


class Judge:
    """In place of one: asks a runner in this process, with regions on the host."""

    def __init__(self) -> None:
        self._sock, self._theirs = socket.socketpair()
        self.runner = Runner(self._theirs, -1, -1)

    def close(self) -> None:
        self._sock.close()
        self._theirs.close()

    def answer(self, factor: float) -> torch.Tensor:
        """Of a problem that takes its input times `factor`, whose file the runner cannot read."""
        constants: dict[str, object] = {"FACTOR": factor}
        self.runner.load(
            messages.Load(path="/nowhere.py", text=TIMES, class_="Model", capture=False, overrides=constants)
        )
        return self.answer_again()

    def answer_again(self) -> torch.Tensor:
        """Of a new model of the class that is loaded, with regions of its own."""
        runner = self.runner
        inputs, outputs = Layout(), Layout()
        given, wanted = inputs.argument(X), outputs.place(X)
        files = [memory_file(name) for name in ("inbox", "outbox")]
        inbox, outbox = (
            SharedBuffer.on_host(fd, layout.size) for fd, layout in zip(files, (inputs, outputs), strict=True)
        )
        wire.send_descriptors(self._sock, files)
        runner.regions(
            messages.Regions(
                inbox=inbox.region.nbytes, outbox=outbox.region.nbytes, shared=False, sent=True, flush_bytes=0,
                left=False, gate=None,
            )
        )  # fmt: skip
        runner.construct(messages.Construct(seed=0, init_inputs=[]))
        runner.bind(messages.Bind(inputs=[given], outputs={"output": wanted}))
        fill(inbox, given, X)
        runner.call(messages.Call())
        assert wire.receive(self._sock) == {"event": "end"}
        for fd in files:
            os.close(fd)
        return outbox.get(wanted).clone()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[str], None]]:
    """Who wants to hear of builds; as it is, that would go on for the rest of this process."""
    found: list[Callable[[str], None]] = []
    monkeypatch.setattr(capture, "listeners", found)
    monkeypatch.setattr(capture, "announce_builds", lambda _failed: None)
    return found


@pytest.fixture
def judge(watched: object) -> Iterator[Judge]:
    judge = Judge()
    yield judge
    judge.close()
    sys.modules.pop(MODULE, None)


def test_one_problem_is_followed_by_another(judge: Judge, watched: list[object]) -> None:
    for factor in (2.0, 3.0):
        assert torch.equal(judge.answer(factor), factor * X)
        judge.runner.reset(messages.Reset())
    assert len(watched) == 1, "told twice of one build, the evaluator would take the second end for an answer"


def test_nothing_of_the_one_before_is_kept(judge: Judge) -> None:
    open_files = len(os.listdir("/proc/self/fd"))
    judge.answer(2.0)
    model = weakref.ref(judge.runner._model)
    region = weakref.ref(judge.runner._regions["inbox"])
    judge.runner.reset(messages.Reset())
    assert model() is None and region() is None
    assert MODULE not in sys.modules
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_it_says_what_it_has_then(judge: Judge) -> None:
    before = judge.runner.reset(messages.Reset())
    kept = torch.ones(1 << 25)
    after = judge.runner.reset(messages.Reset())
    assert before.device_bytes == after.device_bytes == 0
    assert after.host_bytes - before.host_bytes == pytest.approx(kept.nbytes, rel=0.1)


def test_one_that_was_asked_nothing_has_nothing_to_forget(judge: Judge) -> None:
    judge.runner.reset(messages.Reset())
    assert torch.equal(judge.answer(2.0), 2.0 * X)


def test_a_class_that_is_kept_makes_another_model(judge: Judge) -> None:
    assert torch.equal(judge.answer(3.0), 3.0 * X)
    model = weakref.ref(judge.runner._model)
    judge.runner.reset(messages.Reset(keep_class=True))
    assert model() is None and MODULE in sys.modules
    assert torch.equal(judge.answer_again(), 3.0 * X)


def test_a_tensor_that_is_no_parameter_is_made_under_the_seed(judge: Judge) -> None:
    """None that is loaded takes its place, and it follows what is drawn for the parameters before it."""
    judge.runner.load(messages.Load(path="/nowhere.py", text=KEEPS, class_="Model", capture=False, overrides={}))
    kept = []
    for draws in (True, False):
        judge.runner.construct(messages.Construct(seed=5, init_inputs=[], draws=draws))
        assert isinstance(judge.runner._model.kept, torch.Tensor)
        kept.append(judge.runner._model.kept)
    assert torch.equal(kept[0], kept[1])
