"""Whatever a runner answers ends as a failure of the candidate: nothing that the judge reads of it raises otherwise."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from support.junk import Junk, arrived

from hkbench.engine.build_captured import _calls
from hkbench.errors import WorkerLost
from hkbench.judge import clocks, failures, launches
from hkbench.judge.form import form_mismatch
from hkbench.judge.link import RunnerBabble, RunnerGone, RunnerLink, RunnerTimeout, Stamps
from hkbench.judge.measure import Samples
from hkbench.judge.parameters import Form, fit
from hkbench.judge.session import _forms_of
from hkbench.judge.shared_memory import _number
from hkbench.judge.side import times_of
from hkbench.profile import kernel_profile
from hkbench.profile.language import language_of_kernels
from hkbench.profile.names import Built
from hkbench.profile.ownership import operator_shares, owner_of_operator, traced_rows
from hkbench.records import DeviceKind, Stage
from hkbench.runner import wire

ROUNDS = 1000

NATIVE: dict[str, object] = {"output[0]": torch.zeros(2, 3), "output[1]": 7, "output[2]": "text"}
LEAVES = [
    {
        "path": "output[0]", "type": "Tensor", "dtype": "float32", "shape": [2, 3], "strides": [3, 1], "device": "cpu",
        "shares": None,
    },
    {"path": "output[1]", "type": "int", "value": 7},
    {"path": "output[2]", "type": "str", "value": "text"},
]  # fmt: skip
STATE = {"ok": True, "state": [{"name": "weight", "shape": [2, 3], "dtype": "float32", "parameter": True}]}
TIMES = {"ok": True, "seconds": 1e-3, "idle_seconds": 1e-3, "device_error": None, "leaves": LEAVES}
TRACE = {
    "on_gpu": True, "wall_seconds": 1e-3, "left_out_seconds": 0.0, "busy_seconds": 1e-3, "other_streams_seconds": 0.0,
    "outside_seconds": 0.0, "kernels": [{"name": "k", "kind": "kernel", "calls": 1, "seconds": 1e-3}],
    "rows": [[0, 0.0, 1e-3, 7]], "seconds": 1e-3,
}  # fmt: skip
RAISED = {"ok": False, "error": "builtins.ValueError", "message": "no", "traceback": "Traceback", "syntax": False}
LAUNCHED = {
    "kernels": [{"name": "k", "bytes": 5, "signature": {}, "constants": {}, "options": {}, "lds_bytes": 0}],
    "refused": [{"name": "k", "error": "E", "message": "m", "line": 3}], "idle": ["k"],
    "raised": {"error": "builtins.E", "message": "m"}, "stage": "run",
}  # fmt: skip
EXTENSION = [{"name": "k", "cpp_sources": ["int x;"], "functions": ["f"], "extra_cflags": ["-O2"], "bound": None}]


def _forms(made: Any) -> None:
    fit({"weight": Form((2, 3), "float32", True)}, _forms_of(made))


def _form(described: Any) -> None:
    found = form_mismatch(described, NATIVE, "cpu", may_share=False)
    if found is not None:
        failures.failed(Stage.COMPARE, *found).failure.model_dump_json()


def _times(answer: Any) -> None:
    seconds = times_of(answer, Stage.TIME, None)
    assert all(math.isfinite(one) and one > 0 for one in seconds)


def _region(opened: Any) -> None:
    torch.tensor([_number(opened, "outbox")])


def _trace(trace: Any) -> None:
    rows = traced_rows(trace)
    assert rows is None or all(math.isfinite(seconds) for _, _, seconds in rows)
    operator_shares(trace)
    language_of_kernels(trace, "", Built(), DeviceKind.CUDA)
    usual = Samples([1e-3] * 20, [1e-3] * 20, [1.1e-3] * 20, [1e-4] * 20)
    for kind in (DeviceKind.CPU, DeviceKind.CUDA):
        clocks.agree(usual, usual, trace, kind).model_dump_json()


def _profiled(answer: Any) -> None:
    profile = kernel_profile(answer, owner_of_operator)
    if profile is not None:
        profile.model_dump_json()


def _raised(answer: Any) -> None:
    for stage in (Stage.LOAD, Stage.RUN):
        failures.from_exception(stage, answer).failure.model_dump_json()


def _launches(answer: Any) -> None:
    kernels, refused, _ = (launches._listed(answer, name) for name in ("kernels", "refused", "idle"))
    for note in launches._notes(kernels, refused, answer.get("raised"), answer.get("stage")):
        note.encode()


def _extensions(recorded: Any) -> None:
    _, failure = _calls(recorded)
    if failure is not None:
        failure.model_dump_json()


READERS: dict[str, tuple[Callable[[Any], None], Any, type]] = {
    "parameters": (_forms, STATE, dict),
    "outputs": (_form, LEAVES, object),
    "times": (_times, TIMES, dict),
    "regions": (_region, {"ok": True, "outbox": 140737488355328}, dict),
    "trace": (_trace, TRACE, dict),
    "profile": (_profiled, TRACE, dict),
    "exception": (_raised, RAISED, dict),
    "launches": (_launches, LAUNCHED, dict),
    "extensions": (_extensions, EXTENSION, list),
}


@pytest.mark.parametrize(("read", "good", "kind"), READERS.values(), ids=READERS.keys())
def test_a_reader_of_answers_refuses_what_is_none(read: Callable[[Any], None], good: Any, kind: type) -> None:
    for seed in range(ROUNDS):
        junk = Junk(seed)
        for value in arrived(junk.like(good) if seed % 4 else junk.value()):
            if isinstance(value, kind):
                with contextlib.suppress(failures.CandidateFailed, RunnerBabble):
                    read(value)


@pytest.mark.parametrize("shape", [[math.inf], [math.nan], [-1], [10**400], None, "x", [[2]], {"a": 2}])
def test_a_parameter_without_a_size(shape: Any) -> None:
    with contextlib.suppress(failures.CandidateFailed):
        _forms({"state": [{"name": "weight", "shape": shape, "dtype": "float32", "parameter": True}]})


def test_a_good_answer_is_read() -> None:
    for read, good, _ in READERS.values():
        for value in arrived(good):
            with contextlib.suppress(failures.CandidateFailed):
                read(value)


def test_bytes_that_nobody_expects_are_no_message() -> None:
    good = json.dumps({"ok": True, "leaves": LEAVES, "text": "größer"}).encode()
    for seed in range(2 * ROUNDS):
        with contextlib.suppress(wire.WireError):
            found = wire.parse(Junk(seed).text(good))
            json.dumps(found).encode()
            repr(found).encode()


def test_a_channel_full_of_junk() -> None:
    good: list[Any] = [{"event": "build_begin"}, {"event": "build_end"}, {"event": "end"}, TIMES]
    answers = 0
    for seed in range(ROUNDS // 5):
        junk = Junk(seed)
        bodies = [json.dumps(junk.like(one) if junk.odd() else one).encode() for one in good]
        data = b"".join(wire.HEADER.pack(wire.MAGIC, len(body)) + body for body in bodies)
        with _ends() as (judge, runner, _):
            sending = threading.Thread(target=_sent, args=(runner, data))
            sending.start()
            with contextlib.suppress(RunnerBabble, RunnerTimeout, RunnerGone):
                answers += judge.answer(0.2, 0.2, stamps=Stamps())["ok"] is True
            judge._channel.close()  # who still sends is told that nobody listens
            sending.join(10.0)
            assert not sending.is_alive()
    assert answers


def test_junk_that_is_no_frame() -> None:
    for seed in range(ROUNDS // 5):
        with _ends() as (judge, runner, _):
            runner.sendall(Junk(seed).text(wire.HEADER.pack(wire.MAGIC, 12) + b'{"ok": true}'))
            with contextlib.suppress(RunnerBabble, RunnerTimeout):
                judge.answer(0.01)


def test_a_guards_answers() -> None:
    good = json.dumps({"processes": 1, "threads": 1, "running": 0, "cpu_seconds": 0.5, "at": 0.0}).encode()
    for seed in range(ROUNDS):
        with _ends() as (judge, _, guard):
            guard.sendall(Junk(seed).text(good) + b"\n")
            with contextlib.suppress(WorkerLost, RunnerGone):
                judge.freeze()


def _sent(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        sock.sendall(data)


@contextlib.contextmanager
def _ends() -> Iterator[tuple[RunnerLink, socket.socket, socket.socket]]:
    """A link, and the runner's and the guard's ends of its sockets."""
    (channel, runner), (control, guard) = socket.socketpair(), socket.socketpair()
    with channel, runner, control, guard:
        yield RunnerLink(channel, control), runner, guard
