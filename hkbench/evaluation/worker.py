"""An evaluator process: forked from a server that has imported torch, does one job, says what came of it (frames.py).

The worker that has a candidate built and loaded leaves what it knows then in a memory file (`job.Loaded`). The one that
stays with a device is given, by its first socket, the door, the sockets and files of one evaluation after another, of
which the first is the channel on which it is told the job and answers. Its verdict says whether it stays; otherwise the
process ends.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch  # forks share it

from hkbench import errors
from hkbench.analysis.facts import problem_facts
from hkbench.audit.audit import audit_problem
from hkbench.device_kinds import model_of
from hkbench.devices.probe import available_kind, probe, torch_device
from hkbench.evaluation import frames
from hkbench.evaluation.emulated_device import EmulatedDevice, emulate
from hkbench.evaluation.evaluate import CandidateEvaluation
from hkbench.evaluation.footprint import Footprint
from hkbench.evaluation.job import ENDS, FILES, OF_META_TENSORS, Loaded
from hkbench.evaluation.link import Answer, ProtocolError, RunnerExited, RunnerLink, RunnerTimeout, read_answer
from hkbench.evaluation.profiling import ProfilerHandle
from hkbench.evaluation.sharing import DeviceShare
from hkbench.evaluation.side import device_request
from hkbench.evaluation.warm import warm
from hkbench.protocol import messages, wire
from hkbench.records import DeviceFacts, Stage

RUNNER_SECONDS = 60.0  #: for the engine to fork one
TAKING_SECONDS = 300.0  #: a device, by the baseline's runner


def serve(engine_fd: int, *fds: int) -> None:
    """Do the one job that comes over the engine's socket."""
    engine = socket.socket(fileno=engine_fd)
    _reported(engine, lambda: _dispatch(engine, frames.receive(engine), fds))
    engine.close()
    os._exit(0)


def _reported(engine: socket.socket, work: Callable[[], frames.Frame]) -> frames.Frame | None:
    """Tell the engine what came of `work`, or how it failed; return what it was told, None where it is gone."""
    answer: frames.Frame
    try:
        answer = work()
    except wire.PeerClosed:
        return None  # nobody wants the result
    except errors.HkbenchError as error:
        answer = frames.Failed(error=type(error).__name__, message=str(error))
    except Exception as error:  # noqa: BLE001 - the end of a process; the engine is told everything
        failure = errors.unexpected("an evaluator process", error)
        of_device = isinstance(error, torch.AcceleratorError | torch.OutOfMemoryError)
        answer = frames.Failed(error="DeviceUnavailable" if of_device else "InternalError", message=str(failure))
    try:
        try:
            frames.send(engine, answer)
        except wire.PeerClosed:
            raise
        except wire.WireError as error:
            answer = frames.Failed(error="InternalError", message=f"the result of an evaluation: {error}")
            frames.send(engine, answer)
    except wire.PeerClosed:
        return None
    return answer


def _dispatch(engine: socket.socket, job: frames.Frame, fds: tuple[int, ...]) -> frames.Frame:
    match job:
        case frames.Describe():
            devices = list(probe(job.kind or available_kind()))
            return frames.DevicesFound(devices=devices, properties=_properties(devices[0]))
        case frames.FindFacts():
            _end_after(job.seconds)
            return frames.FactsFound(facts=problem_facts(job.problem, job.sizes))
        case frames.Audit():
            return _audit(job)
        case frames.Evaluate():
            return _load(engine, job, fds)
        case frames.Emulate():
            (control,) = (socket.socket(fileno=fd) for fd in fds)
            emulate(job, control)
            os._exit(0)
        case frames.ServeDevice():
            channel, control = (socket.socket(fileno=fd) for fd in fds)
            baseline = RunnerLink(channel, control)
            try:
                DeviceWorker(job.facts, baseline, job.shared).serve(engine)
            finally:
                baseline.end()
            os._exit(0)  # the door is closed, and nobody behind it
    raise frames.failure(job)


def _end_after(seconds: float) -> None:
    """End the process after so long, whatever it does then: nobody waits any more."""
    signal.setitimer(signal.ITIMER_REAL, seconds)  # the default of its signal


def _properties(facts: DeviceFacts) -> dict[str, object]:
    """Return what PyTorch tells of a GPU, in numbers and words; nothing of another device."""
    device = torch_device(facts)
    if device.type != "cuda" or not torch.cuda.is_available():
        return {}
    found = torch.cuda.get_device_properties(device)
    values = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}
    return {name: value for name, value in values.items() if isinstance(value, int | float | str)}


def _audit(job: frames.Audit) -> frames.Audited:
    _end_after(job.seconds)
    model = model_of(job.device)
    if model.on_host:
        torch.set_num_threads(1)  # other problems are audited beside it
    device = torch.device(model.torch_device(job.index))
    if not model.on_host:
        torch.cuda.set_device(device)  # a problem's code may name a GPU without its number
    return frames.Audited(audit=audit_problem(job.problem, job.sizes, device, job.trials))


def _load(engine: socket.socket, asked: frames.Evaluate, fds: tuple[int, ...]) -> frames.Frame:
    """Build and load. Its ends of the sockets close with the process; the engine keeps the measuring worker's."""
    *sockets, inbox, outbox, loaded = fds
    evaluation = _evaluation(engine, asked, [socket.socket(fileno=fd) for fd in sockets], (inbox, outbox))
    failure = evaluation.load()
    if failure is not None:
        return frames.Judged(verdict=evaluation.verdict(failure))
    if asked.job.build_only is not None:
        return evaluation.built()
    with os.fdopen(loaded, "w") as file:
        file.write(evaluation.loaded.model_dump_json())
    return frames.Ready()


def _evaluation(
    engine: socket.socket,
    asked: frames.Evaluate,
    sockets: list[socket.socket],
    files: tuple[int, int],
    baseline: RunnerLink | None = None,
    loaded: Loaded | None = None,
    share: DeviceShare | None = None,
) -> CandidateEvaluation:
    channel, control, profiler_channel, profiler_control, device, further = sockets
    link = RunnerLink(channel, control)
    if loaded is not None:
        link = RunnerLink(channel, control, loaded.said.encode(), loaded.build_seconds)
        link.lowered += loaded.lowered
    profiler = ProfilerHandle(
        RunnerLink(profiler_channel, profiler_control), lambda: frames.send(engine, frames.ProfilerWanted())
    )

    def enter(stage: Stage) -> None:
        frames.send(engine, frames.Entered(stage=stage))

    def tell(step: str) -> None:
        frames.send(engine, frames.Stepped(step=step))

    def another() -> RunnerLink:
        frames.send(engine, frames.RunnerWanted())
        ours, guards = (socket.socket(fileno=fd) for fd in wire.receive_descriptors(further, 2, RUNNER_SECONDS))
        return RunnerLink(ours, guards)

    job, memory_bytes = asked.job, asked.memory_bytes
    emulated = None if job.emulation is None else EmulatedDevice(device, job.emulation)
    return CandidateEvaluation(
        job, link, baseline, profiler, files, enter, memory_bytes, loaded, tell, emulated, another, share
    )


class DeviceWorker:
    """An evaluator that stays with a device, and with it the runner of its baselines."""

    def __init__(self, facts: DeviceFacts, baseline: RunnerLink, shared: str | None = None) -> None:
        """Take the runner of baselines, and the folder of the locks by which the device is `shared`."""
        self._facts = facts
        self._baseline = baseline
        self._share = DeviceShare(torch_device(facts), None if shared is None else Path(shared))
        self._first: Footprint | None = None  # None: for one evaluation only
        self._held = messages.MemoryHeld(device_bytes=0, host_bytes=0)  # by the runner, before its first baseline
        self._error: Exception | None = None  # of the device; whoever wants to measure on it is told

    def serve(self, control: socket.socket) -> None:
        """Measure what comes by the door, until that is closed or an evaluation leaves more behind than it may."""
        try:
            with self._share.evaluation():  # to take it is work on the device
                self._take()
        except (RunnerExited, RunnerTimeout, ProtocolError) as error:
            why = f"the process that times baselines did not take {self._facts.name}: {error}"
            self._error = errors.WorkerLost(f"{why}; `hkbench doctor` shows whether candidates can be confined here")
        except Exception as error:  # noqa: BLE001 - as above
            self._error = error
        while True:
            try:
                frames.receive(control)
                descriptors = wire.receive_descriptors(control, 1 + ENDS)
            except wire.PeerClosed:
                return
            if not self._evaluated(descriptors):
                return

    def _take(self) -> None:
        device = torch_device(self._facts)
        gpu = not model_of(self._facts.kind).on_host
        if gpu:
            torch.cuda.set_device(device)
            torch.zeros(1, device=device)  # the evaluator's context first: a driver gives one after the other
        take = device_request(device, self._facts)
        self._baseline.post(take)
        if gpu:
            for module in OF_META_TENSORS:  # here, not in the fork server: they might look for a GPU
                importlib.import_module(module)
            warm(device, self._facts)
        self._baselines_answer(take)
        if is_reusable(self._facts):
            reset = messages.Reset()
            self._baseline.post(reset)
            self._held = self._baselines_answer(reset)
            self._first = Footprint.of(device, self._held)
            gc.freeze()  # what looks for garbage after each evaluation takes 60 ms for all that is imported
        self._baseline.freeze()

    def _baselines_answer(self, request: messages.Request[Answer]) -> Answer:
        answer = read_answer(request, self._baseline.answer(TAKING_SECONDS))
        if isinstance(answer, messages.Raised):
            name = self._facts.name
            raise errors.DeviceUnavailable(f"the baseline's process cannot use {name}: {answer.message}")
        return answer

    def _evaluated(self, descriptors: list[int]) -> bool:
        """Run one evaluation; return whether this process may run another."""
        with ExitStack() as stack:
            engine, *sockets = (stack.enter_context(socket.socket(fileno=fd)) for fd in descriptors[:-FILES])
            inbox, outbox, loaded = (stack.enter_context(os.fdopen(fd, "rb")) for fd in descriptors[-FILES:])

            def work() -> frames.Frame:
                if self._error is not None:
                    raise self._error
                loaded.seek(0)  # the process that wrote it shares the position
                known = Loaded.model_validate_json(loaded.read())
                return self._measure(engine, sockets, (inbox.fileno(), outbox.fileno()), known)

            said = _reported(engine, work)
        return isinstance(said, frames.Judged) and said.stays

    def _measure(
        self, engine: socket.socket, sockets: list[socket.socket], files: tuple[int, int], loaded: Loaded
    ) -> frames.Judged:
        """Return the verdict, and whether this process `is_reusable`."""
        asked = frames.receive(engine)
        if not isinstance(asked, frames.Evaluate):
            raise frames.failure(asked)
        if not model_of(self._facts.kind).on_host:
            torch.cuda.set_device(torch_device(self._facts))  # what names no device, a problem's code too, means this
        with self._share.evaluation(asked.job.settings.evaluations_per_gpu, asked.job.alone):
            judged, held = self._run(_evaluation(engine, asked, sockets, files, self._baseline, loaded, self._share))
            if self._first is None or held is None:
                return judged
            # Nothing refers to the evaluation any more, nor to what it had of the device.
            left = list(self._first.exceeded_by(Footprint.of(torch_device(self._facts), held)))
            return replace(judged, stays=not left, left_behind=left)

    def _run(self, evaluation: CandidateEvaluation) -> tuple[frames.Judged, messages.MemoryHeld | None]:
        """Return the verdict, and what the baseline's runner has then; `None`: the next one needs a new process."""
        judged = frames.Judged(verdict=evaluation.run(self._facts))
        self._share.forget()
        if self._first is None:
            self._baseline.end()  # before anything else is measured
            return judged, None
        try:
            return judged, evaluation.release() or self._held
        except (errors.HkbenchError, RuntimeError):
            return judged, None  # the verdict stands; the next one has another worker


def is_reusable(facts: DeviceFacts) -> bool:
    """Return whether a worker can serve again: on a CPU it keeps nothing, and each evaluation has fresh processes."""
    return not model_of(facts.kind).on_host
