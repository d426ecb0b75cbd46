"""Fork server, guard and runner as real processes."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from support.guard_alone import NO_WALLS

from hkbench.sandbox.client import ForkServer, ForkServerLost
from hkbench.sandbox.environment import kept_environment, runner_environment
from hkbench.sandbox.guard import OUTPUT_HALF

TESTS = Path(__file__).resolve().parents[2]
ROOT = TESTS.parent


@dataclass
class Guarded:
    """One runner: the evaluator's ends of its two sockets."""

    channel: socket.socket
    control: socket.socket

    def ask(self, do: str, **fields: Any) -> None:
        self.channel.sendall(json.dumps({"do": do, **fields}).encode())

    def answer(self) -> dict[str, Any]:
        answer = _line(self.channel)
        assert isinstance(answer, dict)
        return answer

    def report(self, ask: bool = True) -> dict[str, Any]:
        if ask:
            self.control.sendall(b"K")
        report = _line(self.control)
        assert isinstance(report, dict)
        return report


def _line(sock: socket.socket) -> object:
    sock.settimeout(30)
    text = b""
    while not text.endswith(b"\n"):
        part = sock.recv(1 << 20)
        assert part, "the other end closed before it answered"
        text += part
    return json.loads(text)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    environment = kept_environment() | {"PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}"}
    with ForkServer("support.guarded", environment) as server:
        server.wait_ready()
        yield server


@contextlib.contextmanager
def guarded(server: ForkServer, folder: Path, **limits: int) -> Iterator[Guarded]:
    channel, theirs = socket.socketpair()
    control, guard = socket.socketpair()
    request = {
        "limits": {"memory_bytes": 1 << 40, **limits},
        "folder": str(folder),
        "environment": runner_environment(folder),
        "cage": asdict(NO_WALLS),
    }
    server.fork([guard.fileno(), theirs.fileno()], request)
    theirs.close()
    guard.close()
    with channel, control:
        yield Guarded(channel, control)


def gone(*pids: int) -> bool:
    """Whether all of these ended within some seconds (a zombie has ended)."""
    for _ in range(500):
        if not any(_alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_a_grandchild_that_escapes_is_killed(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path) as runner:
        runner.ask("escape")
        pids = runner.answer()
        assert _alive(pids["grandchild"]) and _alive(pids["runner"])
        report = runner.report()
        assert (report["reason"], report["survivors"]) == ("asked", 0)
        assert not _alive(pids["grandchild"]) and not _alive(pids["runner"])
        assert gone(pids["guard"])


def test_the_death_of_the_evaluator_ends_everybody(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path) as runner:
        runner.ask("escape")
        pids = runner.answer()
    assert gone(*pids.values())


def test_the_death_of_the_fork_server_leaves_running_children_alone(tmp_path: Path) -> None:
    environment = kept_environment() | {"PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}"}
    with ForkServer("support.guarded", environment) as server:
        server.wait_ready()
        with guarded(server, tmp_path) as runner:
            server.close()
            runner.ask("look")
            assert runner.answer()["folder"] == str(tmp_path)
            assert runner.report()["survivors"] == 0


def test_memory_beyond_the_limit(server: ForkServer, tmp_path: Path) -> None:
    limit = 300 << 20
    with guarded(server, tmp_path, memory_bytes=limit) as runner:
        runner.ask("eat", step=16 << 20)
        report = runner.report(ask=False)
    assert report["reason"] == "memory"
    assert report["peak_bytes"] > limit
    assert report["survivors"] == 0


def test_too_many_processes(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path, processes=20) as runner:
        runner.ask("multiply", count=40)
        report = runner.report(ask=False)
    assert (report["reason"], report["survivors"]) == ("processes", 0)


def test_output_is_capped(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path) as runner:
        runner.ask("print", mebibytes=50)
        assert runner.answer() == {"printed": True}
        report = runner.report()
    assert report["output_bytes"] > 50 << 20
    assert len(report["output"]) < 2 * OUTPUT_HALF + 100
    assert report["output"].startswith("first words\n")
    assert report["output"].endswith("last words\nfrom a child\nand its errors\n")


def test_what_a_runner_sees(server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLM_GATEWAY_KEY", "OPENAI_API_KEY", "HF_TOKEN", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "do-not-tell")
    with guarded(server, tmp_path, open_files=99, file_bytes=1 << 20) as runner:
        runner.ask("look")
        seen = runner.answer()
    assert "do-not-tell" not in json.dumps(seen)
    for name in ("HOME", "TMPDIR", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME"):
        assert seen["environment"][name].startswith(f"{tmp_path}/")
        assert Path(seen["environment"][name]).is_dir()
    assert seen["folder"] == str(tmp_path)
    assert seen["core"] == [0, 0]
    assert seen["files"] == 99
    assert seen["file_bytes"] == 1 << 20
    assert seen["stdin"] == ""


def test_later_children_share_what_is_imported_for_them(server: ForkServer, tmp_path: Path) -> None:
    shared = {"colorsys", "wave"}
    for expected in (set(), shared):
        with guarded(server, tmp_path) as runner:
            runner.ask("look")
            assert shared & set(runner.answer()["modules"]) == expected
        server.share([*shared, "no_such_module"])


def test_a_fork_server_s_own_environment_holds_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "do-not-tell")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{TESTS}")
    with ForkServer("support.guarded") as server:
        server.wait_ready()
        with guarded(server, tmp_path) as runner:
            runner.ask("look")
            assert "do-not-tell" not in runner.answer()["initial"]


def test_a_runner_has_only_its_own_sockets(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path / "a") as first, guarded(server, tmp_path / "b") as second:
        second.ask("look")
        fds = second.answer()["fds"]
        assert len([fd for fd in fds if fd.startswith("socket:")]) == 1
        assert first.report()["survivors"] == second.report()["survivors"] == 0


def test_a_runner_that_ends_is_reported_though_a_child_holds_its_sockets(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path) as runner:
        runner.ask("leave", code=3)
        report = runner.report(ask=False)
    assert (report["reason"], report["survivors"]) == ("ended", 0)
    assert os.waitstatus_to_exitcode(report["status"]) == 3


def test_a_crash_leaves_its_signal_and_no_core(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path) as runner:
        runner.ask("segfault")
        assert runner.channel.recv(1) == b""
        report = runner.report(ask=False)
    assert os.waitstatus_to_exitcode(report["status"]) == -11
    assert not os.WCOREDUMP(report["status"])


def test_an_exception_that_reaches_the_top_is_printed(server: ForkServer, tmp_path: Path) -> None:
    with guarded(server, tmp_path) as runner:
        runner.ask("raise")
        report = runner.report(ask=False)
    assert "LookupError: nobody catches this" in report["output"]
    assert os.waitstatus_to_exitcode(report["status"]) == 70


def test_a_module_that_cannot_be_imported() -> None:
    with ForkServer("support.no_such_module") as server, pytest.raises(ForkServerLost, match="exit code 1"):
        server.wait_ready()


def test_a_fork_server_that_died(tmp_path: Path) -> None:
    environment = kept_environment() | {"PYTHONPATH": f"{ROOT}{os.pathsep}{TESTS}"}
    with ForkServer("support.guarded", environment) as server:
        server.wait_ready()
        assert server._process is not None
        server._process.kill()
        server._process.wait()
        with pytest.raises(ForkServerLost, match="died"):
            server.fork([])
