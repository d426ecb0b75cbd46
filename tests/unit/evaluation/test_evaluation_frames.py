"""What engine and workers say to each other: each frame has one class, and a job one class of answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.run_folder import correct

from hkbench.errors import InternalError, ProblemError, WorkerLost
from hkbench.evaluation import frames
from hkbench.protocol.codec import NotOfForm
from hkbench.records import DeviceFacts, DeviceKind, Problem, SizeSet, Stage

PROBLEM = Problem(number=1, name="1_A", level=1, path=Path("1_A"), source="", sha256="0" * 64)
FACTS = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU")
SAID: list[frames.Frame] = [
    frames.Entered(stage=Stage.TIME),
    frames.Stepped(step="trial 2 of 5"),
    frames.ProfilerWanted(),
    frames.Ready(),
    frames.Judged(verdict=correct("1_A", 1.5), stays=False, left_behind=["threads"]),
    frames.Built(extensions=[{"name": "k"}], launched=frames.LaunchesCompiled(kernels=[], notes=["x"]), output=""),
    frames.Built(extensions=[], launched=None, output="warned"),
    frames.DevicesFound(devices=[FACTS]),
    frames.Failed(error="WorkerLost", message="it ended"),
    frames.Describe(kind=None),
    frames.FindFacts(problem=PROBLEM, sizes=SizeSet.CPU, seconds=1.5),
    frames.Audit(problem=PROBLEM, sizes=SizeSet.CPU, device=DeviceKind.CPU, index=0, trials=3, seconds=1.5),
    frames.ServeDevice(facts=FACTS),
    frames.TakeEvaluation(),
]


@pytest.mark.parametrize("frame", SAID, ids=lambda frame: type(frame).__name__)
def test_what_is_written_is_read_back(frame: frames.Frame) -> None:
    assert frames.read(json.loads(json.dumps(frames.written(frame)))) == frame


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"frame": 3},
        {"frame": "job", "problem": {}},
        {"frame": "entered", "stage": "lunch"},
        {"frame": "judged", "verdict": {}},
        {"frame": "ready", "more": 1},
    ],
)
def test_what_is_no_frame(message: dict[str, object]) -> None:
    with pytest.raises(NotOfForm):
        frames.read(message)


def test_a_job_has_one_class_of_answer() -> None:
    found = frames.DevicesFound(devices=[FACTS])
    assert frames.answer_to(frames.Describe(kind=None), found) is found
    with pytest.raises(WorkerLost, match="Ready"):
        frames.answer_to(frames.Describe(kind=None), frames.Ready())


@pytest.mark.parametrize(
    ("name", "kind"), [("ProblemError", ProblemError), ("annotations", InternalError), ("Nobody", InternalError)]
)
def test_a_failure_is_raised_by_its_name(name: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="no Model") as caught:
        frames.answer_to(frames.Describe(kind=None), frames.Failed(error=name, message="no Model"))
    assert type(caught.value) is kind
