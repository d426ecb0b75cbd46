"""Proton's sessions, as its documentation and examples have them, and damaged ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hkbench.device_kinds import Profiler
from hkbench.errors import InputMissing
from hkbench.profile import ProfileUnreadable, choose, plan, proton, read_profile
from hkbench.profile.choose import Choice
from hkbench.protocol.constants import PROTON_SESSION
from hkbench.records import DeviceKind, Owner

ROOT = Path(__file__).resolve().parents[3]


def kernel(name: str, launches: object, nanoseconds: object, **more: object) -> dict[str, Any]:
    metrics = {"count": launches, "time (ns)": nanoseconds, "device_id": "0", "device_type": "HIP"} | more
    return {"children": [], "frame": {"name": name, "type": "function"}, "metrics": metrics}


def session(*kernels: dict[str, Any]) -> list[Any]:
    scope = {"children": list(kernels), "frame": {"name": "scope", "type": "function"}, "metrics": {}}
    root = {"children": [scope, *kernels[:1]], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0}}
    return [root, {"HIP": {"0": {"arch": "gfx942", "num_sms": 304}}}]


def owner(name: str) -> Owner:
    return Owner.CANDIDATE if name == "mine" else Owner.PYTORCH


def test_a_session_is_the_profile_of_one_pass(tmp_path: Path) -> None:
    planned = plan(Choice(Profiler.PROTON, sys.executable), "gfx942", tmp_path, ("python", "passes"), 5)
    (step,) = planned.steps
    assert step.command == ("python", "passes")
    assert step.environment == {PROTON_SESSION: str(tmp_path / "proton")}
    told = session(kernel("mine", 10, 200_000, flops32=1e9), kernel("elementwise_kernel", 5, 100_000))
    (tmp_path / "proton.hatchet").write_text(json.dumps(told))
    profile = read_profile(planned, owner)
    assert profile.source.startswith("proton")
    mine, other = profile.kernels
    assert (mine.name, mine.calls, mine.owner) == ("mine", 4, Owner.CANDIDATE)  # called in two places
    assert mine.seconds == pytest.approx(2 * 200e-6 / 5) and other.seconds == pytest.approx(100e-6 / 5)
    assert profile.seconds == pytest.approx(mine.seconds + other.seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "{}",
        json.dumps(session()),
        json.dumps(session(kernel("mine", "many", 1))),
        json.dumps(session(kernel("mine", 1, -1))),
        json.dumps([{"metrics": {"device_id": "0"}}]),
        json.dumps([{"frame": {"name": "mine"}, "metrics": {"device_id": "0", "count": 1, "time (ns)": float("inf")}}]),
    ],
)
def test_what_is_no_session_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / proton.FILE).write_text(text)
    with pytest.raises(ProfileUnreadable):
        proton.read(tmp_path / proton.FILE)


def test_a_session_that_was_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputMissing):
        proton.read(tmp_path / proton.FILE)


def test_it_is_for_kernels_in_triton_on_a_gpu_without_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proton, "is_installed", lambda: True)

    def nothing(_name: str) -> None:
        return None

    def chosen(kind: DeviceKind, find: Any, further: Profiler | None) -> Profiler:
        return choose(kind, None, find, further).profiler

    assert chosen(DeviceKind.ROCM, nothing, Profiler.PROTON) is Profiler.PROTON
    assert chosen(DeviceKind.CUDA, nothing, Profiler.PROTON) is Profiler.PROTON
    assert chosen(DeviceKind.CUDA, lambda name: f"/bin/{name}", Profiler.PROTON) is Profiler.NCU
    assert chosen(DeviceKind.ROCM, nothing, None) is Profiler.TORCH
    assert chosen(DeviceKind.CPU, nothing, Profiler.PROTON) is Profiler.TORCH
    monkeypatch.setattr(proton, "is_installed", lambda: False)
    assert chosen(DeviceKind.ROCM, nothing, Profiler.PROTON) is Profiler.TORCH


def test_the_passes_that_count_are_its_session(tmp_path: Path) -> None:
    """In a process as it is profiled, with a stand-in that says when it begins and ends."""
    package = tmp_path / "lib" / "triton" / "profiler"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text("def start(path): print('start', path)\ndef finalize(): print('finalize')\n")
    (tmp_path / "problem.py").write_text(
        "import torch\ndef get_inputs(): return [1]\ndef get_init_inputs(): return []\n"
    )
    (tmp_path / "candidate.py").write_text(
        "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): print('pass')\n"
    )
    asked = {
        "code": str(tmp_path / "candidate.py"), "problem": str(tmp_path / "problem.py"), "overrides": {},
        "device": "cpu", "seed": 0, "warmups": 1, "forwards": 2,
    }  # fmt: skip
    (tmp_path / "passes.json").write_text(json.dumps(asked))
    command = [sys.executable, str(ROOT / "hkbench/runner/profiled.py"), str(tmp_path / "passes.json")]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "lib"), PROTON_SESSION: "/somewhere/proton"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == ["pass", "start /somewhere/proton", "pass", "pass", "finalize"]
