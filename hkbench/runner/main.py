"""The runner: loads one candidate and does what the judge asks of it, one message at a time."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import torch

from hkbench.runner import capture, memory, profile, wire
from hkbench.runner.clock import Flusher, timed_call

TRACEBACK_LIMIT = 64 * 1024


class _Source(importlib.machinery.SourceFileLoader):
    """Compiles the file as it is now: bytecode beside it may be old, or a candidate's work, and none is left there."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class Runner:
    """State between messages. Every handler returns the body of its answer."""

    def __init__(self, sock: socket.socket, inbox: int, outbox: int) -> None:
        self._sock = sock
        self._fds = {"inbox": inbox, "outbox": outbox}
        self._class: Any = None
        self._model: Any = None
        self._device = torch.device("cpu")
        self._flush: Flusher | None = None
        self._regions: dict[str, torch.Tensor] = {}
        self._staged: list[tuple[torch.Tensor, torch.Tensor]] = []  # (inbox, device) pairs, without IPC only
        self._inputs: list[Any] = []
        self._outputs: dict[str, torch.Tensor] = {}

    def load(self, message: wire.Message) -> wire.Message:
        """Imports the candidate, or for the baseline the problem (class `Model`, with its sizes in force).

        `capture` records extension calls instead of building them.
        """
        calls: list[dict[str, Any]] = []
        if message["capture"]:
            capture.record_extension_calls(calls)
        else:
            capture.announce_builds(lambda event: wire.send(self._sock, {"event": event}))
        path = message["path"]
        spec = importlib.util.spec_from_file_location("candidate", path, loader=_Source("candidate", path))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        spec.loader.exec_module(module)
        vars(module).update(message["overrides"])
        self._class = getattr(module, message["class"], None)
        return {"has_class": isinstance(self._class, type), "extensions": calls}

    def device(self, message: wire.Message) -> wire.Message:
        """Takes the device and maps the two regions; `staged` means host regions for a GPU."""
        self._device = torch.device(message["device"])
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        else:
            torch.set_num_threads(message["threads"])
        for name in ("inbox", "outbox"):
            place = message[name]
            if place["kind"] == "device":
                self._regions[name] = memory.open_device(place)
            else:
                self._regions[name] = memory.map_host(self._fds[name], place["size"])
        if message["flush_bytes"]:
            self._flush = Flusher(self._device, message["flush_bytes"])
        return {}

    def construct(self, message: wire.Message) -> wire.Message:
        """Makes the model under the seed and loads the reference's parameters where names and shapes agree."""
        torch.manual_seed(message["seed"])
        arguments = [self._argument(item) for item in message["init_inputs"]]
        self._model = self._class(*arguments).to(self._device)
        wanted = {name: memory.view(self._regions["inbox"], place) for name, place in message["state"].items()}
        own = self._model.state_dict()
        if not wanted:
            return {"weights": "none"}
        if {name: tuple(t.shape) for name, t in own.items()} != {n: tuple(t.shape) for n, t in wanted.items()}:
            return {"weights": "seed"}
        self._model.load_state_dict({name: tensor.to(self._device) for name, tensor in wanted.items()})
        return {"weights": "state_dict"}

    def bind(self, message: wire.Message) -> wire.Message:
        """Fixes where inputs lie in the inbox and where outputs go in the outbox."""
        self._staged = []
        self._inputs = [self._argument(item, stage=True) for item in message["inputs"]]
        self._outputs = {
            path: memory.view(self._regions["outbox"], place) for path, place in message["outputs"].items()
        }
        return {}

    def call(self, _message: wire.Message) -> wire.Message:
        """One forward pass: fresh contents are already in the inbox, the outputs go to the outbox.

        Correctness trials and timed runs are this same message, so a candidate cannot tell them apart.
        """
        for source, tensor in self._staged:
            tensor.copy_(source)
        with torch.no_grad():
            result, seconds, idle = timed_call(lambda: self._model(*self._inputs), self._device, self._flush)
        answer = {"seconds": seconds, "idle_seconds": idle, "leaves": self._hand_over(result)}
        for source, tensor in self._staged:
            source.copy_(tensor)  # so that the judge sees a change of the inputs
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return answer

    def profile(self, _message: wire.Message) -> wire.Message:
        """Kernels of one forward pass as torch's profiler sees them."""
        with torch.no_grad():
            return profile.profile_forward(lambda: self._model(*self._inputs), self._device)

    def _argument(self, item: dict[str, Any], stage: bool = False) -> Any:
        if "list" in item:
            values = [self._argument(part, stage) for part in item["list"]]
            return tuple(values) if item.get("tuple") else values
        if "dict" in item:
            return {key: self._argument(part, stage) for key, part in item["dict"].items()}
        if "tensor" not in item:
            return item["value"]
        place = item["tensor"]
        source = memory.view(self._regions["inbox"], place)
        if source.device.type == self._device.type:
            return source if stage else source.clone()
        target = torch.empty_strided(place["shape"], place["strides"], dtype=source.dtype, device=self._device)
        target.copy_(source)
        if stage:
            self._staged.append((source, target))
        return target

    def _hand_over(self, result: object) -> list[dict[str, Any]]:
        """Describes each leaf and copies those that have the place's shape and dtype to the outbox."""
        described = []
        for path, leaf in wire.leaves(result, "output"):
            if not isinstance(leaf, torch.Tensor):
                plain = leaf if isinstance(leaf, (bool, int, float, str, type(None))) else None
                described.append({"path": path, "type": type(leaf).__name__, "value": plain})
                continue
            # A subclass could compute only when it is read: its exact type is part of the answer.
            entry: dict[str, Any] = {
                "path": path,
                "type": "Tensor" if type(leaf) is torch.Tensor else type(leaf).__name__,
                "dtype": memory.dtype_name(leaf.dtype),
                "shape": list(leaf.shape),
                "strides": list(leaf.stride()) if leaf.layout == torch.strided else [],
                "device": leaf.device.type,
            }
            described.append(entry)
            place = self._outputs.get(path)
            if place is not None and place.shape == leaf.shape and place.dtype == leaf.dtype:
                place.copy_(leaf)
        return described


@contextlib.contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """A KeyboardInterrupt belongs to the judge; the runner only ever ends by being told or killed."""
    try:
        yield
    except KeyboardInterrupt:
        os._exit(130)


def _error(error: BaseException) -> wire.Message:
    text = "".join(traceback.format_exception(error))
    if len(text) > TRACEBACK_LIMIT:
        half = TRACEBACK_LIMIT // 2
        text = f"{text[:half]}\n[... {len(text) - TRACEBACK_LIMIT} characters left out ...]\n{text[-half:]}"
    kind = type(error)
    return {
        "error": f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error)[:TRACEBACK_LIMIT],
        "traceback": text,
        "syntax": isinstance(error, SyntaxError),
    }


def serve(sock: socket.socket, inbox: int, outbox: int) -> None:
    """Answers messages until the judge closes the channel. An exception of the candidate is an answer."""
    runner = Runner(sock, inbox, outbox)
    handlers: dict[str, Callable[[wire.Message], wire.Message]] = {
        name: getattr(runner, name) for name in ("load", "device", "construct", "bind", "call", "profile")
    }
    with _quiet_interrupt():
        while True:
            try:
                message = wire.receive(sock)
            except wire.PeerClosed:
                os._exit(0)
            try:
                answer = {"ok": True, **handlers[message["op"]](message)}
            except BaseException as error:  # noqa: BLE001 - the candidate may raise anything, SystemExit too
                answer = {"ok": False, **_error(error)}
            sys.stdout.flush()
            sys.stderr.flush()
            wire.send(sock, answer)
