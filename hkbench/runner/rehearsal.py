"""The candidate's constructor and one forward pass before it has its device: what they have compiled is compiled then.

A fork of the runner makes them. On a CPU its tensors are of zeros, on a GPU they have no contents and say that they lie
on it: on PyTorch's meta device (absent_gpu.py), or PyTorch's fake tensors, for which torch.compile compiles what it
will for real ones. The fork ends when something asks for contents; by then the compilers have run, and what they made
lies in the private folder, where the candidate's own calls find it. Nothing else comes of a rehearsal: the process that
is measured has constructed no model, and whatever ends the fork is nobody's failure.

The fork has no GPU: it is hidden, torch.cuda's questions are answered here, and Triton has a driver that launches
nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace

import torch

from hkbench.protocol import messages
from hkbench.protocol.drawing import no_draws
from hkbench.runner import absent_inductor, capture
from hkbench.runner.absent_gpu import AbsentGpuMode, answer_by
from hkbench.runner.autotuned import Forks
from hkbench.runner.inbox import Inbox
from hkbench.runner.triton_driver import IdleDriver

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
#: Candidates are compiled side by side; Inductor would start a pool of processes for each.
_ONE_THREAD = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
DYNAMO = "torch._dynamo"
_LEAST_SECONDS = 0.1  #: that are left after a build, in which a timer of 0 would be none


def rehearse(
    request: messages.Rehearse, model_class: Callable[..., torch.nn.Module], failed: capture.FailedBuilds
) -> None:
    """Rehearse in a fork, which may take `request.seconds` beside its builds; put what it failed to build in `failed`.

    Modules that the first call would import are imported here.
    """
    for name, value in _ONE_THREAD.items():
        os.environ.setdefault(name, value)
    take = capture.import_module if torch.device(request.device).type == "cuda" else importlib.import_module
    for module in request.modules:
        with contextlib.suppress(ImportError):
            take(module)
    capture.announce_compilers()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.getpid()
    with os.fdopen(os.memfd_create("rehearsal"), "r+b", buffering=0) as told:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, none of which it waits for
            child = os.fork()
        if not child:
            failed.told = lambda text: os.pwrite(told.fileno(), text, 0)
            _pose_as(process)
            try:
                _forward(request, model_class)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # whom it has started
        failed.read(told.read())


def _pose_as(process: int) -> None:
    """Have `os` say that this is the process it was forked from: extensions are built under names with that number."""
    own, kill = os.getpid(), os.kill
    vars(os).update(getpid=lambda: process, kill=lambda to, sign: kill(own if to == process else to, sign))


def _forward(request: messages.Rehearse, model_class: Callable[..., torch.nn.Module]) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    capture.listeners.append(_Watchdog(request.seconds))
    device = torch.device(request.device)
    nowhere, forks = Inbox(device), Forks()
    fake = device.type == "cuda" and DYNAMO in sys.modules
    with contextlib.ExitStack() as view:
        view.callback(forks.finish)
        view.enter_context(no_draws())
        if device.type == "cuda":
            _hide_gpus(SimpleNamespace(**request.gpu), forks)
            if fake:
                view.enter_context(absent_inductor.fake_tensors())
            else:
                nowhere = Inbox(torch.device("meta"))
                view.enter_context(AbsentGpuMode())
        torch.set_num_threads(request.threads)  # Inductor compiles for that number
        model = model_class(*nowhere.arguments(request.init_inputs))
        if fake:
            _put(model, device)
        else:
            model = model.to(device)
        with torch.no_grad():
            model(*nowhere.arguments(request.inputs))


def _put(model: torch.nn.Module, device: torch.device) -> None:
    """Put a model on a device as `to` does, which cannot exchange the data of a fake parameter."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = torch.nn.Parameter(parameter.detach().to(device), parameter.requires_grad)
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else buffer.to(device)


class _Watchdog:
    """Ends this process when it has taken too long beside its builds."""

    def __init__(self, seconds: float) -> None:
        self._lock = threading.Lock()
        self._builds = 0
        self._left = seconds
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def __call__(self, event: str) -> None:
        with self._lock:
            began = event == "build_begin"
            self._builds += 1 if began else -1
            if began and self._builds == 1:
                self._left = max(_LEAST_SECONDS, signal.setitimer(signal.ITIMER_REAL, 0)[0])
            elif not self._builds:
                signal.setitimer(signal.ITIMER_REAL, self._left)


def _hide_gpus(gpu: SimpleNamespace, forks: Forks) -> None:
    """Leave this process without a GPU, but with answers of the one that there is."""
    os.environ.update(dict.fromkeys(_VISIBLE, ""))
    answer_by(lambda: gpu)
    vars(torch.cuda).update(is_initialized=lambda: True, _lazy_init=lambda: None)
    if "triton" in sys.modules:
        importlib.import_module("triton.runtime").driver.set_active(IdleDriver(gpu, forks))
    if DYNAMO in sys.modules:
        absent_inductor.answer_questions()
