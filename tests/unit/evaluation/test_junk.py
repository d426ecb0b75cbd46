"""Whatever a runner answers ends as a failure of the candidate: nothing else is raised for it."""

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

from hkbench.analysis.parameters import Form, fit
from hkbench.backends.language import language_of_kernels
from hkbench.compile_only.hip import _calls
from hkbench.device_kinds import model_of
from hkbench.errors import WorkerLost
from hkbench.evaluation import clocks, failures, launches
from hkbench.evaluation.form import form_mismatch
from hkbench.evaluation.link import ProtocolError, RunnerExited, RunnerLink, RunnerTimeout, Stamps, read_answer
from hkbench.evaluation.measure import Samples
from hkbench.evaluation.parameters import forms_of
from hkbench.evaluation.side import times_of
from hkbench.profile import kernel_profile
from hkbench.profile.names import Built
from hkbench.profile.ownership import operator_share, owner_of_operator, traced_rows
from hkbench.protocol import messages, wire
from hkbench.records import DeviceKind, Stage

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
FORM = {"name": "weight", "shape": [2, 3], "dtype": "float32", "parameter": True, "same": "weight"}
STATE = {"ok": True, "state": [FORM]}
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


REGIONS = messages.Regions(inbox=256, outbox=256, shared=True, left=False, sent=False, flush_bytes=0, gate=None)


def _answer(request: Any, answer: Any) -> Any:
    """Read a result. Raises ProtocolError."""
    return read_answer(request, {**answer, "ok": True})


def _forms(made: Any) -> None:
    made = _answer(messages.Construct(seed=1, init_inputs=[]), made)
    fit({"weight": Form((2, 3), "float32", True)}, forms_of(made))


def _form(described: Any) -> None:
    found = form_mismatch(described, NATIVE, "cpu", may_share=False)
    if found is not None:
        failures.failed(Stage.COMPARE, *found).failure.model_dump_json()


def _times(answer: Any) -> None:
    seconds = times_of(_answer(messages.Call(), answer), Stage.TIME, None)
    assert all(math.isfinite(one) and one > 0 for one in seconds)


def _region(opened: Any) -> None:
    torch.tensor([_answer(REGIONS, opened).outbox or 0])


def _trace(trace: Any) -> None:
    rows = traced_rows(trace)
    assert rows is None or all(math.isfinite(seconds) for _, _, seconds in rows)
    operator_share(trace)
    language_of_kernels(trace, "", Built(), DeviceKind.CUDA, "cuda")
    usual = Samples([1e-3] * 20, [1e-3] * 20, [1.1e-3] * 20, [1e-4] * 20)
    for kind in (DeviceKind.CPU, DeviceKind.CUDA):
        clocks.compare(usual, usual, trace, model_of(kind)).model_dump_json()


def _profiled(answer: Any) -> None:
    profile = kernel_profile(answer, owner_of_operator)
    if profile is not None:
        profile.model_dump_json()


def _raised(answer: Any) -> None:
    for stage in (Stage.LOAD, Stage.RUN):
        failures.from_exception(stage, messages.raised_by(answer)).failure.model_dump_json()


def _launches(answer: Any) -> None:
    told = _answer(messages.Launch(seed=0, init_inputs=[], inputs=[]), answer)
    for note in launches._notes(told.kernels, told.refused, told.raised, told.stage):
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
                with contextlib.suppress(failures.CandidateFailed, ProtocolError):
                    read(value)


@pytest.mark.parametrize("shape", [[math.inf], [math.nan], [-1], [10**400], None, "x", [[2]], {"a": 2}])
def test_a_parameter_without_a_size(shape: Any) -> None:
    with contextlib.suppress(failures.CandidateFailed, ProtocolError):
        _forms({"state": [FORM | {"shape": shape}]})


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
            with contextlib.suppress(ProtocolError, RunnerTimeout, RunnerExited):
                answers += judge.answer(0.2, 0.2, stamps=Stamps())["ok"] is True
            judge._channel.close()  # who still sends is told that nobody listens
            sending.join(10.0)
            assert not sending.is_alive()
    assert answers


def test_junk_that_is_no_frame() -> None:
    for seed in range(ROUNDS // 5):
        with _ends() as (judge, runner, _):
            runner.sendall(Junk(seed).text(wire.HEADER.pack(wire.MAGIC, 12) + b'{"ok": true}'))
            with contextlib.suppress(ProtocolError, RunnerTimeout):
                judge.answer(0.01)


def test_a_guards_answers() -> None:
    good = json.dumps({"processes": 1, "threads": 1, "running": 0, "cpu_seconds": 0.5, "at": 0.0}).encode()
    for seed in range(ROUNDS):
        with _ends() as (judge, _, guard):
            guard.sendall(Junk(seed).text(good) + b"\n")
            with contextlib.suppress(WorkerLost, RunnerExited):
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
