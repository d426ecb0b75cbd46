"""What an emulated GPU saw of a call, as a failure of the candidate."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from hkbench.emulator.arena import Range
from hkbench.emulator.report import Report, Told
from hkbench.evaluation import emulated_device
from hkbench.evaluation.emulated_session import require_possible, warnings_of
from hkbench.evaluation.failures import CandidateFailed
from hkbench.evaluation.job import Emulation
from hkbench.records import FailureKind, Stage

CLEAN = Report(
    kernels={},
    launch_count=1,
    faults=[],
    fault_count=0,
    refusals=[],
    violation=None,
    written=[],
    waits=[],
    host_made=0,
)


def _faults(*kinds: str) -> Report:
    return replace(
        CLEAN, faults=[Told(kind=kind, message=f"k: {kind} at a.hip:7") for kind in kinds], fault_count=len(kinds)
    )


@pytest.mark.parametrize(
    ("report", "kind", "said"),
    [
        (_faults("race"), FailureKind.RACE, "k: race at a.hip:7; the architecture does not guarantee"),
        (_faults("wait", "wait"), FailureKind.RACE, "(2 reports in this call)"),
        (_faults("out_of_bounds"), FailureKind.OUT_OF_BOUNDS, "k: out_of_bounds at a.hip:7"),
        (_faults("uninitialized", "race"), FailureKind.RACE, "race"),
        (replace(CLEAN, refusals=[Told(kind="unsupported", message="v_new")]), FailureKind.UNSUPPORTED, "v_new"),
        (replace(CLEAN, refusals=[Told(kind="budget", message="endless")]), FailureKind.TIMEOUT, "endless"),
        (replace(_faults("race"), violation="junk"), FailureKind.PROTOCOL, "junk"),
    ],
)
def test_a_report_becomes_a_failure(report: Report, kind: FailureKind, said: str) -> None:
    with pytest.raises(CandidateFailed) as failed:
        require_possible(report, Stage.RUN, 2)
    assert failed.value.failure.kind is kind and failed.value.failure.trial == 2
    assert said in failed.value.failure.message


@pytest.mark.parametrize("report", [CLEAN, _faults("uninitialized")])
def test_what_is_no_fault_of_the_candidates_passes(report: Report) -> None:
    require_possible(report, Stage.RUN, None)


@pytest.mark.parametrize("kinds", [("race",), ("wait", "uninitialized"), ("race", "wait")])
def test_races_may_be_told_and_forgiven(kinds: tuple[str, ...]) -> None:
    report = _faults(*kinds)
    require_possible(report, Stage.RUN, 1, races_fail=False)
    warnings = warnings_of(report)
    assert len(warnings) == len(kinds)
    for kind, warning in zip(kinds, warnings, strict=True):
        assert f"{kind} at a.hip:7" in warning
        assert ("does not guarantee" in warning) is (kind != "uninitialized")


@pytest.mark.parametrize(
    ("report", "kind"),
    [
        (_faults("race", "out_of_bounds"), FailureKind.OUT_OF_BOUNDS),
        (replace(_faults("race"), refusals=[Told(kind="unsupported", message="v_new")]), FailureKind.UNSUPPORTED),
        (replace(_faults("wait"), refusals=[Told(kind="budget", message="endless")]), FailureKind.TIMEOUT),
        (replace(_faults("race"), violation="junk"), FailureKind.PROTOCOL),
    ],
)
def test_what_else_is_wrong_fails_where_races_are_forgiven(report: Report, kind: FailureKind) -> None:
    with pytest.raises(CandidateFailed) as failed:
        require_possible(report, Stage.RUN, 1, races_fail=False)
    assert failed.value.failure.kind is kind


def test_a_device_that_ends_or_hangs_is_lost_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    emulation = Emulation(arch="gfx942", libraries="/nowhere", hip="7.2.0")
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(emulated_device.DeviceLost, match="broke it"):
        emulated_device.EmulatedDevice(ours, emulation).report([])
    monkeypatch.setattr(emulated_device, "ANSWER_SECONDS", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(emulated_device.DeviceLost, match="busy"):
        emulated_device.EmulatedDevice(ours, emulation).report([])


def test_memory_is_read_from_its_file_and_only_where_there_is_some(tmp_path: Path) -> None:
    path = tmp_path / "heap"
    path.write_bytes(bytes(range(100)))
    with path.open("rb") as file:
        device = emulated_device.EmulatedDevice(socket.socket(), Emulation(arch="gfx942", libraries="", hip=""))
        device._files = {1 << 45: (file.fileno(), 100)}
        assert device.read(Range((1 << 45) + 10, 5)) == bytearray(range(10, 15))
        assert device.read(Range((1 << 45) + 99, 2)) is None
        assert device.read(Range(0, 1)) is None
        device._control.close()
