"""A judge process: forked from a server that has imported torch, does one job, says what came of it.

To the engine it sends frames: {"stage": ...} as stages begin, {"ready": true} when the candidate is loaded and the
device is wanted (the engine answers {"device": INDEX}), {"profiler": true} when a runner is to be forked for one, and
last {"result": ...} or {"error": ..., "message": ...}.
"""

from __future__ import annotations

import os
import signal
import socket
import traceback
from typing import Any

import torch  # forks share it

from hkbench import errors
from hkbench.devices.probe import available_kind, probe
from hkbench.judge.audit import audit_problem
from hkbench.judge.evaluate import Evaluation
from hkbench.judge.facts import problem_facts
from hkbench.judge.job import AuditJob, DescribeJob, EvaluateJob, FactsJob
from hkbench.judge.link import RunnerLink
from hkbench.judge.profiling import Spare
from hkbench.records import DeviceKind, Stage
from hkbench.runner import wire


def serve(engine_fd: int, *fds: int) -> None:
    """Does the one job that comes over the engine's socket."""
    engine = socket.socket(fileno=engine_fd)
    try:
        result = _dispatch(engine, wire.receive(engine), fds)
        wire.send(engine, {"result": result})
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
    finally:
        engine.close()
    os._exit(0)


def _dispatch(engine: socket.socket, message: wire.Message, fds: tuple[int, ...]) -> Any:
    match message["job"]:
        case "describe":
            kind = DescribeJob.model_validate(message).kind or available_kind()
            return [facts.model_dump(mode="json") for facts in probe(kind)]
        case "facts":
            job = FactsJob.model_validate(message)
            return problem_facts(job.problem, job.sizes).model_dump(mode="json")
        case "audit":
            return _audit(AuditJob.model_validate(message))
        case _:
            return _evaluate(engine, message, fds)


def _audit(job: AuditJob) -> Any:
    signal.setitimer(signal.ITIMER_REAL, job.seconds)  # whose default is to end the process: nobody waits any more
    cpu = job.device is DeviceKind.CPU
    if cpu:
        torch.set_num_threads(1)  # other problems are audited beside it
    device = torch.device("cpu" if cpu else f"cuda:{job.index}")
    if not cpu:
        torch.cuda.set_device(device)  # a problem's code may name a GPU without its number
    return audit_problem(job.problem, job.sizes, device, job.trials).model_dump(mode="json")


def _evaluate(engine: socket.socket, message: wire.Message, fds: tuple[int, ...]) -> Any:
    memory_bytes = message.pop("memory_bytes")
    job = EvaluateJob.model_validate(message)
    *sockets, inbox, outbox = fds
    channel, control, baseline_channel, baseline_control, *spare = (socket.socket(fileno=fd) for fd in sockets)
    link, baseline = RunnerLink(channel, control), RunnerLink(baseline_channel, baseline_control)
    profiler = Spare(RunnerLink(*spare), lambda: wire.send(engine, {"profiler": True}))

    def enter(stage: Stage) -> None:
        wire.send(engine, {"stage": stage.value})

    evaluation = Evaluation(job, link, baseline, profiler, (inbox, outbox), enter, memory_bytes)
    failure = evaluation.load()
    if failure is not None:
        return {"verdict": evaluation.verdict(failure).model_dump(mode="json")}
    if job.build_only is not None:
        end = link.end()
        baseline.end()
        return {"extensions": evaluation.extensions, "launched": evaluation.launched, "output": end.output}
    wire.send(engine, {"ready": True})
    index = wire.receive(engine)["device"]
    return {"verdict": evaluation.run(index).model_dump(mode="json")}
