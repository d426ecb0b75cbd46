"""What the survey finds, where layers are missing too; and bubblewrap around a server."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hkbench.sandbox import command, environment, landlock, namespaces, seccomp
from hkbench.sandbox.survey import PROTECTIONS, survey

ROOT = Path(__file__).resolve().parents[3]


def refuse(*_: object, **__: object) -> int:
    raise OSError(errno.EPERM, "refused for the test")


def test_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "hkbench.sandbox.survey"], capture_output=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout)
    assert done.stderr == b""
    assert set(found) == {"level", "layers", "holds", "missing"}
    assert found["layers"][-1] == "guard" and "limits" in found["holds"]
    assert len(found["holds"]) + len(found["missing"]) == len(PROTECTIONS)


def test_no_layer_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "map_user", refuse)
    monkeypatch.setattr(landlock, "version", refuse)
    monkeypatch.setattr(seccomp, "install", refuse)
    monkeypatch.setattr(command, "bubblewrap", lambda: None)
    found = survey()
    assert (found["level"], found["layers"], found["holds"]) == ("limits", ["guard"], ["limits"])
    assert [line.partition(":")[0] for line in found["missing"]] == [name for name in PROTECTIONS if name != "limits"]
    assert all("refused for the test" in line for line in found["missing"])


def test_one_layer_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    if "seccomp" not in survey()["layers"]:
        pytest.skip("no seccomp here")
    monkeypatch.setattr(namespaces, "map_user", refuse)
    monkeypatch.setattr(landlock, "version", refuse)
    monkeypatch.setattr(command, "bubblewrap", lambda: None)
    found = survey()
    assert found["level"] == "partial"
    assert {"network", "syscalls"} <= set(found["holds"])
    assert not {"files", "signals", "processes"} & set(found["holds"])


def test_processes_shared_where_proc_cannot_be_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    if "namespaces" not in survey()["layers"]:
        pytest.skip("no namespaces here")
    mount = namespaces._mount

    def masked(kind: str, place: str, flags: int, options: str | None) -> None:
        refuse() if kind == "proc" else mount(kind, place, flags, options)

    monkeypatch.setattr(namespaces, "_mount", masked)
    found = survey()
    assert found["layers"][0] == "namespaces, processes shared"
    assert {"files", "network", "syscalls"} <= set(found["holds"])


def test_bubblewrap_where_namespaces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = command.bubblewrap()
    if prefix is None or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap is not installed, or may do nothing here")
    outer = subprocess.run([*prefix, "readlink", "/proc/self/ns/net"], capture_output=True, check=True).stdout
    assert outer.decode().strip() != str(Path("/proc/self/ns/net").readlink())
    monkeypatch.setattr(namespaces, "map_user", refuse)
    found = survey()
    assert found["layers"][0] == "bubblewrap"
    assert "network" in found["holds"]


def test_readable_paths_do_not_open_what_holds_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "toolchain"
    tool.mkdir()
    monkeypatch.setenv("ROCM_PATH", str(tool))
    monkeypatch.setenv("CUDA_HOME", str(Path.home()))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(tmp_path), "/tmp", "relative"]))
    paths = environment.readable_paths()
    assert {str(tool), str(tmp_path), sys.prefix, sys.base_prefix} <= set(paths)
    assert not {str(ROOT), str(Path.home()), "/", "/tmp", "/etc", "/root", "/home", "/run", "relative"} & set(paths)
    for hidden in (
        "/etc/shadow",
        "/etc/ssh",
        str(ROOT / "examples"),
        str(ROOT / "hkbench/evaluation"),
        str(ROOT / ".git"),
    ):
        assert not any(Path(hidden).is_relative_to(path) for path in paths), hidden


def test_a_project_inside_of_a_system_folder_stays_closed(tmp_path: Path) -> None:
    system, project = tmp_path / "opt", tmp_path / "opt/deep/project"
    (system / "other").mkdir(parents=True)
    project.mkdir(parents=True)
    (system / "deep/more").mkdir()
    parts = list(environment._without(str(system), project))
    assert parts == [str(system / "deep/more"), str(system / "other")]
