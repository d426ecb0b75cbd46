"""The evaluator's requests: limits for calls and builds, and what comes instead of an answer."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from hkbench.errors import WorkerLost
from hkbench.evaluation import link
from hkbench.evaluation.link import ProtocolError, RunnerExited, RunnerLink, RunnerTimeout, Stamps, read_answer
from hkbench.profile.sampled_code import Place
from hkbench.protocol import wire
from hkbench.protocol.messages import Call, Construct, Done, Load, ModelMade, Raised, State

REPORT: dict[str, Any] = {
    "reason": "asked", "status": None, "commands": ["cc1plus"], "survivors": 0, "peak_bytes": 5, "output": "hi",
    "output_bytes": 2,
}  # fmt: skip


@dataclass
class EvaluationSockets:
    """A link, and the runner's and guard's ends of its sockets."""

    link: RunnerLink
    runner: socket.socket
    guard: socket.socket

    def says(self, *messages: Mapping[str, object]) -> None:
        for message in messages:
            wire.send(self.runner, message)


@pytest.fixture
def ends() -> Iterator[EvaluationSockets]:
    (channel, runner), (control, guard) = socket.socketpair(), socket.socketpair()
    with channel, runner, control, guard:
        yield EvaluationSockets(RunnerLink(channel, control), runner, guard)


LOAD = Load(path="code.py", class_="ModelNew", capture=False, overrides={})
BEGIN, END, OK = {"event": "build_begin"}, {"event": "build_end"}, {"ok": True, "x": 1}


def test_a_request_and_its_answer(ends: EvaluationSockets) -> None:
    ends.says(OK)
    assert ends.link.request(Call(gate=3), 5.0) == OK
    assert wire.receive(ends.runner) == {"op": "call", "gate": 3, "variant": None}


def test_an_answer_is_read_as_its_request_s() -> None:
    assert read_answer(State(), {"ok": True}) == Done()
    assert read_answer(Construct(seed=1, init_inputs=[]), {"ok": True, "state": []}) == ModelMade(state=[])
    assert read_answer(State(), {"ok": False, "error": "E", "message": 3}) == Raised(error="E", message="3")
    with pytest.raises(ProtocolError, match="Done has 'state'"):
        read_answer(State(), {"ok": True, "state": []})


def test_builds_are_told_and_counted(ends: EvaluationSockets) -> None:
    told: list[str] = []
    ends.says(BEGIN, END, BEGIN, BEGIN, END, END, OK)
    assert ends.link.request(LOAD, 5.0, 5.0, lambda: told.append("build")) == OK
    assert told == ["build", "build"]
    assert ends.link.build_seconds > 0


@pytest.mark.parametrize(
    ("said", "seconds", "build_seconds", "building"),
    [
        ([], 0.05, 60.0, False),
        ([BEGIN], 60.0, 0.05, True),
        ([BEGIN, BEGIN, END], 60.0, 0.05, True),
        ([BEGIN, END], 0.05, 60.0, False),
        ([BEGIN, END] * 50, 0.05, 60.0, False),
    ],
    ids=["call", "build", "two builds", "after a build", "after many builds"],
)
def test_which_limit_passed(
    ends: EvaluationSockets, said: list[wire.Message], seconds: float, build_seconds: float, building: bool
) -> None:
    ends.says(*said)
    with pytest.raises(RunnerTimeout) as caught:
        ends.link.request(LOAD, seconds, build_seconds)
    assert caught.value.building is building


def test_all_requests_share_one_limit(ends: EvaluationSockets) -> None:
    ends.link.ends = time.monotonic() + 1.0
    ends.says(OK)
    assert ends.link.request(Call(), 60.0) == OK
    with pytest.raises(RunnerTimeout) as caught:
        ends.link.request(Call(), 60.0)
    assert not caught.value.building
    ends.says(OK)
    with pytest.raises(RunnerTimeout):  # its answer comes too late
        ends.link.request(Call(), 60.0)


def test_builds_put_off_the_common_limit(ends: EvaluationSockets) -> None:
    ends.link.ends = before = time.monotonic() + 1.0
    ends.says(BEGIN)

    def build() -> None:
        time.sleep(1.2)
        ends.says(END, OK)

    thread = threading.Thread(target=build)
    thread.start()
    assert ends.link.request(Call(), 60.0, 60.0) == OK
    thread.join()
    assert ends.link.ends - before >= 1.0


def test_a_long_build_leaves_the_device_and_goes_on_once_it_is_there_again(
    ends: EvaluationSockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(link, "LONG_BUILD_SECONDS", 0.1)
    monkeypatch.setattr(ends.link, "freeze", lambda: done.append("stopped"))
    monkeypatch.setattr(ends.link, "resume", lambda: done.append("goes on"))

    @contextmanager
    def away() -> Iterator[None]:
        done.append("left")
        yield
        time.sleep(0.5)  # others use it
        done.append("back")

    ends.link.away = away
    ends.says(BEGIN)
    thread = threading.Timer(0.5, ends.says, [END, OK])
    thread.start()
    assert ends.link.request(Call(), 60.0, 60.0) == OK
    thread.join()
    assert done == ["left", "stopped", "back", "goes on"]
    assert 0.4 < ends.link.build_seconds < 0.9, "without what it waited for others"
    done.clear()
    ends.says(BEGIN, END, OK)
    assert ends.link.request(Call(), 60.0, 60.0) == OK
    assert not done, "a short build leaves it not"


def test_the_outputs_of_a_call_are_watched_until_its_build_is_long(
    ends: EvaluationSockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "LONG_BUILD_SECONDS", 0.3)
    monkeypatch.setattr(ends.link, "freeze", lambda: None)
    monkeypatch.setattr(ends.link, "resume", lambda: None)
    gated, left = Watched(), threading.Event()

    @contextmanager
    def away() -> Iterator[None]:
        left.set()
        yield

    def build() -> None:
        left.wait(10.0)
        ends.says(END, OK)

    for leaves in (True, False):  # who is timed has the device alone, and is watched to the end
        left.clear()
        gated.looks = 0
        ends.link.away = away if leaves else lambda: None
        ends.says({"event": "begun"}, BEGIN)
        thread = threading.Thread(target=build) if leaves else threading.Timer(0.8, ends.says, [END, OK])
        thread.start()
        assert ends.link.request(Call(), 60.0, 60.0, gated=gated) == OK
        thread.join()
        assert left.is_set() == leaves
        assert 3 < gated.looks < 45 if leaves else gated.looks > 45


class Watched:
    """A call on a device, at which the evaluator looks each hundredth of a second."""

    number, hold_seconds = 7, 0.0
    looks = 0

    def release(self) -> None:
        return

    def look(self) -> float:
        self.looks += 1
        return 0.01

    def end(self, told: wire.Message) -> None:
        raise AssertionError(told)


@pytest.mark.parametrize("pairs", [[BEGIN], [BEGIN, END], [END]])
def test_events_without_end_do_not_hold_the_evaluator(ends: EvaluationSockets, pairs: list[wire.Message]) -> None:
    stop = threading.Event()

    def flood() -> None:
        while not stop.wait(0.01):
            for message in pairs:
                wire.send(ends.runner, message)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        with pytest.raises((RunnerTimeout, ProtocolError)):
            ends.link.request(LOAD, 0.3, 0.3)
    finally:
        stop.set()
        thread.join()


def test_all_builds_share_one_limit(ends: EvaluationSockets) -> None:
    ends.link.build_seconds = 10.0
    ends.says(BEGIN)
    with pytest.raises(RunnerTimeout) as caught:
        ends.link.request(Call(), 60.0, 10.0)
    assert caught.value.building


@pytest.mark.parametrize(
    "speak",
    [
        lambda sock: sock.sendall(b"PASS " * 10),
        lambda sock: wire.send(sock, {}),
        lambda sock: wire.send(sock, {"ok": "yes"}),
        lambda sock: wire.send(sock, {"ok": 1}),
        lambda sock: wire.send(sock, END),
        lambda sock: wire.send(sock, {"event": ["build_begin"]}),
    ],
)
def test_babble(ends: EvaluationSockets, speak: Callable[[socket.socket], None]) -> None:
    speak(ends.runner)
    with pytest.raises(ProtocolError):
        ends.link.request(Call(), 5.0, 5.0)


FROZEN = {"processes": 1, "threads": 1, "running": 0, "cpu_seconds": 0.5, "at": 0.0}


def goes_on(ends: EvaluationSockets) -> float:
    """The guard lets the runner go on, at this time."""
    at = time.perf_counter()
    ends.guard.sendall(json.dumps(FROZEN | {"at": at}).encode() + b"\n")
    return at


def test_a_call_is_clocked_from_when_it_goes_on(ends: EvaluationSockets) -> None:
    told: list[str] = []
    stamps = Stamps(lambda: told.append("ended"))
    at = goes_on(ends)
    ends.says({"event": "end"}, OK)
    assert ends.link.request(Call(), 5.0, stamps=stamps) == OK
    assert told == ["ended"] and ends.guard.recv(1) == b"C"
    assert stamps.begun == at and stamps.wall > 0.0 and stamps.rest > 0.0
    assert stamps.wall + stamps.rest <= time.perf_counter() - at


class Gate:
    """A call whose runner says itself that it has ended."""

    number = 3
    hold_seconds = 0.0

    def __init__(self) -> None:
        self.told: list[str] = []

    def release(self) -> None:
        self.told.append("release")

    def look(self) -> float | None:
        self.told.append("look")
        return 0.0 if self.told.count("look") < 3 else None

    def end(self, told: wire.Message) -> None:
        self.told.append(f"end {told['places']}")


def test_a_gated_call_is_released_once_it_has_begun_and_its_end_is_told(ends: EvaluationSockets) -> None:
    gate = Gate()
    goes_on(ends)
    ends.says({"event": "begun"})
    threading.Timer(0.1, lambda: ends.says({"event": "end", "places": []}, OK)).start()
    assert ends.link.request(Call(), 5.0, stamps=Stamps(), gated=gate) == OK
    assert [told for told in gate.told if told != "look"] == ["release", "end []"]
    assert gate.told[1:4] == ["look"] * 3


def test_a_call_that_fails_may_not_have_ended(ends: EvaluationSockets) -> None:
    goes_on(ends)
    ends.says({"ok": False, "error": "ValueError"})
    assert ends.link.request(Call(), 5.0, stamps=Stamps())["error"] == "ValueError"


@pytest.mark.parametrize("said", [(OK,), ({"event": "end"}, {"event": "end"}), ({"event": "begin"},)])
def test_a_call_out_of_order_is_babble(ends: EvaluationSockets, said: tuple[wire.Message, ...]) -> None:
    goes_on(ends)
    ends.says(*said)
    with pytest.raises(ProtocolError):
        ends.link.request(Call(), 5.0, stamps=Stamps())


def test_a_runner_that_is_gone(ends: EvaluationSockets) -> None:
    ends.runner.close()
    with pytest.raises(RunnerExited):
        ends.link.request(Call(), 5.0)


def report(ends: EvaluationSockets, **fields: Any) -> None:
    ends.guard.sendall(json.dumps(REPORT | fields).encode() + b"\n")


def test_the_end_is_reported_once(ends: EvaluationSockets) -> None:
    report(ends)
    end = ends.link.end()
    assert (end.reason, end.commands, end.output, end.peak_bytes) == ("asked", ("cc1plus",), "hi", 5)
    assert (end.signal, end.exit_code) == (None, None)
    assert ends.link.end() is end
    assert ends.guard.recv(8) == b"K"


def exited(code: int) -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(code)
    return os.waitpid(pid, 0)[1]


def killed(number: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), number)
    return os.waitpid(pid, 0)[1]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(
    ("status", "name", "code"),
    [
        (lambda: exited(3), None, 3),
        (lambda: exited(0), None, 0),
        (lambda: killed(signal.SIGTERM), "SIGTERM", None),
        (lambda: killed(signal.SIGKILL), None, None),
        (lambda: killed(signal.SIGRTMIN + 6), "SIGRTMIN+6", None),
    ],
)
def test_statuses(ends: EvaluationSockets, status: Callable[[], int], name: str | None, code: int | None) -> None:
    report(ends, reason="ended", status=status())
    end = ends.link.end()
    assert (end.signal, end.exit_code) == (name, code)


def test_a_guard_that_ended_first_is_still_read(ends: EvaluationSockets) -> None:
    report(ends, reason="memory")
    ends.guard.close()
    assert ends.link.end().reason == "memory"


@pytest.mark.parametrize("said", [b"", b'{"reason": "as'])
def test_a_guard_without_a_report(ends: EvaluationSockets, said: bytes) -> None:
    ends.guard.sendall(said)
    ends.guard.close()
    with pytest.raises(WorkerLost, match="did not report"):
        ends.link.end()


#: Answers of a guard that are none.
ODD = [b"[]", b"7", b'"reason"', b"{", b"\xff", b'{"n": ' + b"9" * 5000 + b"}", b"[" * 5000]


@pytest.mark.parametrize("line", ODD)
def test_a_line_that_is_not_a_guards(ends: EvaluationSockets, line: bytes) -> None:
    ends.guard.sendall(line + b"\n")
    with pytest.raises(RunnerExited):
        ends.link.freeze()
    ends.guard.sendall(line + b"\n")
    with pytest.raises(WorkerLost):
        ends.link.end()


@pytest.mark.parametrize("line", [{}, {"processes": 1}, {"samples": 3}])
def test_an_answer_that_lacks_a_part(ends: EvaluationSockets, line: dict[str, Any]) -> None:
    for ask in (ends.link.freeze, ends.link.resume, ends.link.sample_end):
        ends.guard.sendall(json.dumps(line).encode() + b"\n")
        with pytest.raises(WorkerLost):
            ask()
    report(ends, status="gone")
    with pytest.raises(WorkerLost):
        ends.link.end()


def test_a_line_without_an_end(ends: EvaluationSockets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_TRUSTED_BODY", 1 << 20)
    ends.guard.setblocking(False)
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            try:
                ends.guard.send(b"x" * (1 << 16))
            except BlockingIOError:
                stop.wait(0.001)
            except OSError:
                return

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        with pytest.raises(RunnerExited):
            ends.link.freeze()
    finally:
        stop.set()
        thread.join()


def test_names_of_files_and_words_of_a_guard_can_be_encoded(ends: EvaluationSockets) -> None:
    answer = {"samples": 1, "looks": [[0]], "places": [[0, 64, "90"]], "paths": ["/a/\udcff.so"]}
    ends.guard.sendall(json.dumps(answer).encode() + b"\n")
    assert ends.link.sample_end().looks == ((Place("/a/?.so", 64, b"\x90"),),)
    report(ends, output="\ud800", commands=["\udc80"])
    end = ends.link.end()
    assert (end.output, end.commands) == ("?", ("?",))


@pytest.mark.parametrize("size", [-1, 10**30, 1 << 48, True, None, "8", 2.0])
@pytest.mark.parametrize("address", [0, -(10**30), None, "x"])
def test_memory_without_a_size(ends: EvaluationSockets, size: object, address: object) -> None:
    told: list[object] = []
    ends.link.on_segment = lambda *segment: told.append(segment)
    ends.says({"event": "segment", "address": address, "size": size})
    with pytest.raises(ProtocolError):
        ends.link.request(Call(), 5.0)
    assert not told
