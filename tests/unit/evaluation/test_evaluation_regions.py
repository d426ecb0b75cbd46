"""What lies in the shared regions, and when it is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch

from hkbench.analysis.reference import Reference
from hkbench.evaluation.link import RunnerLink, Stamps, TreeState
from hkbench.evaluation.regions import Regions
from hkbench.evaluation.side import RunnerClient
from hkbench.problems import load_problem
from hkbench.protocol.messages import Call, Request, State
from hkbench.protocol.places import TensorArgument
from hkbench.records import EvaluationSettings, SizeSet, Stage
from hkbench.sandbox.client import memory_file

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.gain


def get_inputs():
    return [torch.randn(3, 8)]


def get_init_inputs():
    return [8]
"""


class Shared:
    """Regions with inputs and their answer in them, as a call of the baseline leaves them."""

    def __init__(self, folder: Path) -> None:
        path = folder / "1_written.py"
        path.write_text(SOURCE)
        self.reference = Reference(load_problem(path), SizeSet.FULL, torch.device("cpu"), 1)
        self.inputs = self.reference.inputs(1)
        self.answer = self.reference.native(self.inputs)["output"]
        files = (memory_file("inbox"), memory_file("outbox"))
        self.regions = Regions(self.reference, self.inputs, {"output": self.answer}, files)
        self.regions.allocate(by_host=True)
        self.call(self.inputs)
        self.regions.leave()

    def call(self, inputs: list[Any]) -> None:
        self.regions.put_inputs(inputs)
        self.regions._outbox.put(self.regions.output_places["output"], cast("torch.Tensor", self.answer))

    @property
    def input_is_gone(self) -> bool:
        first = self.regions.input_places[0]
        assert isinstance(first, TensorArgument)
        return bool(torch.isnan(self.regions._inbox.get(first.tensor)).all())

    @property
    def answer_is_gone(self) -> bool:
        return bool(torch.isnan(self.regions.outputs()["output"]).all())


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(tmp_path)


def test_what_the_baseline_left_is_gone_before_the_candidate_runs(shared: Shared) -> None:
    assert not shared.input_is_gone and not shared.answer_is_gone
    shared.regions.scrub_if_dirty()
    assert shared.input_is_gone and shared.answer_is_gone
    assert torch.equal(shared.regions.get_state("gain"), torch.ones(8))


def test_new_inputs_are_not_concealed(shared: Shared) -> None:
    shared.regions.put_inputs(shared.inputs)
    shared.regions.scrub_if_dirty()
    assert not shared.input_is_gone and shared.answer_is_gone


def test_what_a_candidate_left_is_not_cleared_for_it(shared: Shared) -> None:
    shared.regions.scrub_if_dirty()
    shared.call(shared.inputs)
    shared.regions.scrub_if_dirty()
    assert not shared.input_is_gone and not shared.answer_is_gone


@pytest.mark.parametrize("concealed", [True, False])
def test_the_outbox_is_full_of_nan_before_every_call(shared: Shared, concealed: bool) -> None:
    for _ in range(2):
        if concealed:
            shared.regions.scrub_if_dirty()
        shared.regions.put_inputs(shared.inputs)
        assert shared.answer_is_gone and shared.regions.changed_input(shared.inputs) is None
        shared.call(shared.inputs)
        shared.regions.leave()


class Recording:
    """A link that notes what a runner finds when it goes on: none of the inputs, nothing of their answer."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.seen: list[tuple[bool, bool]] = []
        self.builds = 0
        self.cpu_seconds = 0.0

    def resume(self) -> TreeState:
        self.seen.append((self.shared.input_is_gone, self.shared.answer_is_gone))
        return self.freeze()

    def freeze(self) -> TreeState:
        return TreeState(1, 1, 0, self.cpu_seconds, 0.0)

    def post(self, *_args: Any, **_fields: Any) -> None:
        pass

    def request(
        self,
        request: Request[object],
        _seconds: float,
        _build_seconds: float = 0.0,
        _on_build: object = None,
        stamps: Stamps | None = None,
        *_: Any,
    ) -> dict[str, Any]:
        if stamps is not None:
            self.resume()
        return {"ok": True, "device_error": None, "leaves": []} if isinstance(request, Call) else {"ok": True}


@pytest.mark.parametrize("how", ["ask", "begin"])
def test_to_thaw_the_candidate_conceals_first(shared: Shared, how: str) -> None:
    link = Recording(shared)
    side = RunnerClient(cast("RunnerLink", link), EvaluationSettings())
    side.before = shared.regions.scrub_if_dirty
    if how == "ask":
        side.ask(Stage.RUN, State())
    else:
        side.begin(State())
    assert link.seen == [(True, True)]


def test_a_call_finds_its_inputs_and_no_answer(shared: Shared) -> None:
    link = Recording(shared)
    side = RunnerClient(cast("RunnerLink", link), EvaluationSettings())
    side.before = shared.regions.scrub_if_dirty
    side.call(Stage.TIME, Call(), lambda: shared.regions.put_inputs(shared.inputs))
    assert link.seen == [(False, True)]
    assert side.ran_while_frozen == 0


def test_who_runs_while_somebody_elses_call_is_timed_is_counted(shared: Shared) -> None:
    """Between its own calls, where only the baseline's are made: woken by a timer of the kernel's, for example."""
    link = Recording(shared)
    side = RunnerClient(cast("RunnerLink", link), EvaluationSettings())
    for used, counted in ((0.5, 0), (0.5, 0), (0.501, 1), (0.501, 1), (0.5011, 1)):
        link.cpu_seconds = used
        side.call(Stage.TIME, Call(), lambda: shared.regions.put_inputs(shared.inputs))
        assert side.ran_while_frozen == counted
