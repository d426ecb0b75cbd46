"""A judge process: forked from a server that has imported torch, does one job, says what came of it.

To the engine it sends frames: {"stage": ...} as stages begin, {"step": ...} within them, {"profiler": true} when a
runner is to be forked for one, and last {"result": ...} or {"error": ..., "message": ...}.

A candidate has two judges. One has it built and loaded; its last frame is {"ready": true} when there is something to
measure, and what it knows then lies in a memory file (`job.Loaded`). The other one stays with a device: by its first
socket, the door, it is given the sockets and files of one evaluation after another, of which the first is the channel
on which it is told the job and answers. Its result says whether it `stays`; otherwise the process ends.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
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
from hkbench.judge.link import RunnerBabble, RunnerGone, RunnerLink, RunnerTimeout
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
        answer = work()
    except wire.PeerClosed:
        return  # the engine is gone: nobody wants the result
    except errors.HkbenchError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    except Exception as error:  # noqa: BLE001 - the end of a process; the engine is told everything
        failure = errors.unexpected("a judge process", error)
        of_device = isinstance(error, torch.AcceleratorError | torch.OutOfMemoryError)
        answer = {"error": "DeviceUnavailable" if of_device else "InternalError", "message": str(failure)}
    with suppress(wire.PeerClosed):
        try:
            wire.send(engine, answer, wire.MAX_TRUSTED_BODY)
        except wire.WireError as error:
            wire.send(engine, {"error": "InternalError", "message": f"the result of an evaluation: {error}"})


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
                Staying(StayJob.model_validate(message).facts, baseline).serve(engine)
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

    def tell(step: str) -> None:
        wire.send(engine, {"step": step})

    return Evaluation(job, link, baseline, profiler, files, enter, memory_bytes, loaded, tell)


class Staying:
    """A judge that stays with a device, and with it the runner of its baselines."""

    def __init__(self, facts: DeviceFacts, baseline: RunnerLink) -> None:
        self._facts = facts
        self._baseline = baseline
        self._first: Footprint | None = None  # None: for one evaluation only
        self._held: wire.Message = {}  # by the runner, before its first baseline
        self._error: Exception | None = None  # of the device; whoever wants to measure on it is told

    def serve(self, door: socket.socket) -> None:
        """Measures what comes by the door, until that is closed or an evaluation leaves more behind than it may."""
        try:
            self._take()
        except (RunnerGone, RunnerTimeout, RunnerBabble) as error:
            why = f"the process that times baselines did not take {self._facts.name}: {error}"
            self._error = errors.WorkerLost(f"{why}; `hkbench doctor` shows whether candidates can be confined here")
        except Exception as error:  # noqa: BLE001 - as above
            self._error = error
        while True:
            try:
                wire.receive(door)
                descriptors = wire.receive_descriptors(door, 1 + ENDS)
            except wire.PeerClosed:
                return
            if not self._evaluated(descriptors):
                return

    def _take(self) -> None:
        device = torch_device(self._facts)
        gpu = self._facts.kind is not DeviceKind.CPU
        if gpu:
            torch.cuda.set_device(device)
            torch.zeros(1, device=device)  # the judge's context first: a driver gives one after the other
        self._baseline.post("device", **device_request(device, self._facts))
        if gpu:
            warm(device, self._facts)
        self._baselines_answer()
        if stays(self._facts):
            self._baseline.post("reset")
            self._held = self._baselines_answer()
            self._first = Footprint.of(device, self._held)
        self._baseline.freeze()

    def _baselines_answer(self) -> wire.Message:
        answer = self._baseline.answer(TAKING_SECONDS)
        if not answer["ok"]:
            name = self._facts.name
            raise errors.DeviceUnavailable(f"the baseline's process cannot use {name}: {answer.get('message')}")
        return answer

    def _evaluated(self, descriptors: list[int]) -> bool:
        """One evaluation; whether this process may have another one."""
        message: dict[str, Any] = {}
        with ExitStack() as stack:
            engine, *sockets = (stack.enter_context(socket.socket(fileno=fd)) for fd in descriptors[:-FILES])
            inbox, outbox, loaded = (stack.enter_context(os.fdopen(fd, "rb")) for fd in descriptors[-FILES:])

            def work() -> dict[str, Any]:
                if self._error is not None:
                    raise self._error
                known = Loaded.model_validate_json(_whole(loaded))
                message.update(self._measure(engine, sockets, (inbox.fileno(), outbox.fileno()), known))
                return message

            _reported(engine, work)
        return bool(message.get("stays"))

    def _measure(
        self, engine: socket.socket, sockets: list[socket.socket], files: tuple[int, int], loaded: Loaded
    ) -> dict[str, Any]:
        """The verdict, and whether this process `stays`."""
        message = wire.receive(engine)
        if self._facts.kind is not DeviceKind.CPU:
            torch.cuda.set_device(torch_device(self._facts))  # what names no device, a problem's code too, means this
        result, held = self._run(_evaluation(engine, message, sockets, files, self._baseline, loaded))
        if self._first is None or held is None:
            return {**result, "stays": False}
        # Nothing refers to the evaluation any more, nor to what it had of the device.
        return {**result, "stays": self._first.allows(Footprint.of(torch_device(self._facts), held))}

    def _run(self, evaluation: Evaluation) -> tuple[dict[str, Any], wire.Message | None]:
        """The verdict, and what the baseline's runner has then; `None`: another evaluation needs another process."""
        result = _result(evaluation.run(self._facts))
        if self._first is None:
            self._baseline.end()  # before anything else is measured
            return result, None
        try:
            return result, evaluation.release() or self._held
        except (errors.HkbenchError, RuntimeError):
            return result, None  # the verdict stands; the next one has another judge


def stays(facts: DeviceFacts) -> bool:
    """On a CPU there is nothing to keep, and each evaluation has processes with a heap as after a fork."""
    return facts.kind is not DeviceKind.CPU


def _whole(file: IO[bytes]) -> bytes:
    """What another process wrote, whose position in the file this one shares."""
    file.seek(0)
    return file.read()
