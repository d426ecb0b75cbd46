"""A judge process: forked from a server that has imported torch, does one job, says what came of it.

To the engine it sends frames: {"stage": ...} as stages begin, {"profiler": true} when a runner is to be forked for one,
and last {"result": ...} or {"error": ..., "message": ...}.

A candidate has two judges. One has it built and loaded; its last frame is {"ready": true} when there is something to
measure, and what it knows then lies in a memory file (`job.Loaded`). The other one stays with a device: by its first
socket, the door, it is given the sockets and files of one evaluation after another, of which the first is the channel
on which it is told the job and answers. Its result says whether it `stays`; otherwise the process ends.
"""

from __future__ import annotations

import os
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any

import torch  # forks share it

from hkbench import errors
from hkbench.devices.probe import available_kind, probe
from hkbench.judge.audit import audit_problem
from hkbench.judge.evaluate import Evaluation, torch_device
from hkbench.judge.facts import problem_facts
from hkbench.judge.footprint import Footprint
from hkbench.judge.job import (
    ENDS,
    FILES,
    AuditJob,
    DescribeJob,
    EvaluateJob,
    FactsJob,
    Loaded,
    StayJob,
)
from hkbench.judge.link import RunnerLink
from hkbench.judge.profiling import Spare
from hkbench.judge.session import device_request
from hkbench.judge.warm import warm
from hkbench.records import DeviceFacts, DeviceKind, Stage, Verdict
from hkbench.runner import wire

TAKING_SECONDS = 300.0  #: a device, by the baseline's runner


def serve(engine_fd: int, *fds: int) -> None:
    """Does the one job that comes over the engine's socket."""
    engine = socket.socket(fileno=engine_fd)
    _reported(engine, lambda: _dispatch(engine, wire.receive(engine), fds))
    engine.close()
    os._exit(0)


def _reported(engine: socket.socket, work: Callable[[], dict[str, Any]]) -> None:
    """Tells the engine what came of `work`, or how it failed."""
    try:
        wire.send(engine, work())
    except wire.PeerClosed:
        pass  # the engine is gone: nobody wants the result
    except errors.HkbenchError as error:
        wire.send(engine, {"error": type(error).__name__, "message": str(error)})
    except Exception as error:  # noqa: BLE001 - the end of a process; the engine is told everything
        detail = "".join(traceback.format_exception(error))[-8000:]
        name = (
            "DeviceUnavailable"
            if isinstance(error, torch.AcceleratorError | torch.OutOfMemoryError)
            else "InternalError"
        )
        wire.send(engine, {"error": name, "message": f"{error!r}\n{detail}"})


def _dispatch(engine: socket.socket, message: wire.Message, fds: tuple[int, ...]) -> dict[str, Any]:
    match message["job"]:
        case "describe":
            kind = DescribeJob.model_validate(message).kind or available_kind()
            return {"result": [facts.model_dump(mode="json") for facts in probe(kind)]}
        case "facts":
            job = FactsJob.model_validate(message)
            return {"result": problem_facts(job.problem, job.sizes).model_dump(mode="json")}
        case "audit":
            return {"result": _audit(AuditJob.model_validate(message))}
        case "stay":
            channel, control = (socket.socket(fileno=fd) for fd in fds)
            baseline = RunnerLink(channel, control)
            try:
                _stay(engine, StayJob.model_validate(message).facts, baseline)
            finally:
                baseline.end()
            os._exit(0)  # the door is closed, and nobody behind it
        case _:
            return _load(engine, message, fds)


def _audit(job: AuditJob) -> Any:
    signal.setitimer(signal.ITIMER_REAL, job.seconds)  # whose default is to end the process: nobody waits any more
    cpu = job.device is DeviceKind.CPU
    if cpu:
        torch.set_num_threads(1)  # other problems are audited beside it
    device = torch.device("cpu" if cpu else f"cuda:{job.index}")
    if not cpu:
        torch.cuda.set_device(device)  # a problem's code may name a GPU without its number
    return audit_problem(job.problem, job.sizes, device, job.trials).model_dump(mode="json")


def _load(engine: socket.socket, message: wire.Message, fds: tuple[int, ...]) -> dict[str, Any]:
    """Builds and loads. Its ends of the sockets close with the process; the engine keeps the measuring judge's."""
    *sockets, inbox, outbox, loaded = fds
    evaluation = _evaluation(engine, message, [socket.socket(fileno=fd) for fd in sockets], (inbox, outbox))
    failure = evaluation.load()
    if failure is not None:
        return _result(evaluation.verdict(failure))
    if message["build_only"] is not None:
        return {"result": evaluation.built()}
    with os.fdopen(loaded, "w") as file:
        file.write(evaluation.loaded.model_dump_json())
    return {"ready": True}


def _result(verdict: Verdict) -> dict[str, Any]:
    return {"result": {"verdict": verdict.model_dump(mode="json")}}


def _evaluation(
    engine: socket.socket,
    message: wire.Message,
    sockets: list[socket.socket],
    files: tuple[int, int],
    baseline: RunnerLink | None = None,
    loaded: Loaded | None = None,
) -> Evaluation:
    memory_bytes = message["memory_bytes"]
    job = EvaluateJob.model_validate({name: value for name, value in message.items() if name != "memory_bytes"})
    channel, control, profiler_channel, profiler_control = sockets
    link = RunnerLink(channel, control)
    if loaded is not None:
        link = RunnerLink(channel, control, loaded.said.encode(), loaded.build_seconds)
    profiler = Spare(RunnerLink(profiler_channel, profiler_control), lambda: wire.send(engine, {"profiler": True}))

    def enter(stage: Stage) -> None:
        wire.send(engine, {"stage": stage.value})

    return Evaluation(job, link, baseline, profiler, files, enter, memory_bytes, loaded)


def _stay(door: socket.socket, facts: DeviceFacts, baseline: RunnerLink) -> None:
    """Measures what comes by the door, until that is closed or an evaluation leaves more behind than it may."""
    first: Footprint | Exception | None
    try:
        first = _taken(facts, baseline)
    except Exception as error:  # noqa: BLE001 - of the device; whoever wants to measure on it is told
        first = error
    while True:
        try:
            wire.receive(door)
            descriptors = wire.receive_descriptors(door, 1 + ENDS)
        except wire.PeerClosed:
            return
        if not _measured(descriptors, facts, baseline, first):
            return


def _taken(facts: DeviceFacts, baseline: RunnerLink) -> Footprint | None:
    """Takes a GPU; what it is like then. A CPU's judge has one evaluation only, with a heap as after a fork."""
    device = torch_device(facts)
    first = None
    if facts.kind is DeviceKind.CPU:
        baseline.post("device", **device_request(device, facts))
    else:
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)  # the judge's context first: a driver gives one after the other
        baseline.post("device", **device_request(device, facts))
        warm(device, facts)
        first = Footprint.of(device)
    answer = baseline.answer(TAKING_SECONDS)
    if not answer["ok"]:
        raise errors.DeviceUnavailable(f"the baseline's process cannot use {facts.name}: {answer.get('message')}")
    baseline.freeze()
    return first


def _measured(
    descriptors: list[int], facts: DeviceFacts, baseline: RunnerLink, first: Footprint | Exception | None
) -> bool:
    """One evaluation; whether this process may have another one."""
    stays = False
    with ExitStack() as stack:
        engine, *sockets = (stack.enter_context(socket.socket(fileno=fd)) for fd in descriptors[:-FILES])
        inbox, outbox, loaded = (stack.enter_context(os.fdopen(fd, "rb")) for fd in descriptors[-FILES:])

        def work() -> dict[str, Any]:
            nonlocal stays
            if isinstance(first, Exception):
                raise first
            known = Loaded.model_validate_json(_whole(loaded))
            files = (inbox.fileno(), outbox.fileno())
            result, clean = _measure(engine, sockets, files, known, facts, baseline, first is not None)
            stays = first is not None and clean and first.allows(Footprint.of(torch_device(facts)))
            return {**result, "stays": stays}

        _reported(engine, work)
    return stays


def _measure(
    engine: socket.socket,
    sockets: list[socket.socket],
    files: tuple[int, int],
    loaded: Loaded,
    facts: DeviceFacts,
    baseline: RunnerLink,
    stays: bool,
) -> tuple[dict[str, Any], bool]:
    """The verdict, and whether everything was given back to a process that `stays`."""
    message = wire.receive(engine)
    if facts.kind is not DeviceKind.CPU:
        torch.cuda.set_device(torch_device(facts))  # what names no device, a problem's code too, means this one
    evaluation = _evaluation(engine, message, sockets, files, baseline, loaded)
    result = _result(evaluation.run(facts))
    if not stays:
        baseline.end()  # before anything else is measured
    return result, stays and _given_back(evaluation)


def _given_back(evaluation: Evaluation) -> bool:
    try:
        evaluation.release()
    except (errors.HkbenchError, RuntimeError):
        return False  # the verdict stands; the next one has another judge
    return True


def _whole(file: IO[bytes]) -> bytes:
    """What another process wrote, whose position in the file this one shares."""
    file.seek(0)
    return file.read()
