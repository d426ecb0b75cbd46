"""The runner: loads one candidate and does what the judge asks of it, one message at a time."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import torch

from hkbench.runner import builds, capture, device_memory, memory, profile, wire
from hkbench.runner.clock import Flusher, Timed, runtime, timed_call
from hkbench.runner.command import run_command
from hkbench.runner.earlier import Earlier
from hkbench.runner.gate import Gate
from hkbench.runner.launches import Launches
from hkbench.runner.load import load_file
from hkbench.runner.pool import SharedPool, leave_graphs_their_pools
from hkbench.runner.trace import traced_call

TRACEBACK_LIMIT = 64 * 1024
MODULE = "candidate"
OPERATIONS = (
    "load", "device", "regions", "construct", "parameters", "state", "bind", "watch", "prepare", "call", "null",
    "trace", "ahead", "successive", "result", "profile", "command", "launch", "part", "here", "reset",
)  # fmt: skip


class Runner:
    """State between messages. Every handler returns the body of its answer."""

    def __init__(self, sock: socket.socket, inbox: int, outbox: int) -> None:
        self._sock = sock
        self._fds = {"inbox": inbox, "outbox": outbox}
        self._device = torch.device("cpu")
        self._announces = False  # builds, and makes them quick: for good
        self._pool: SharedPool | None = None
        self._forget()

    def _forget(self) -> None:
        """As it is before a candidate is loaded; the device stays."""
        if self._pool is not None:
            self._pool.close()
        self._class: Any = None
        self._model: Any = None
        self._flush: Flusher | None = None
        self._gate: Gate | None = None
        self._pool = None
        self._leaves_outputs = False  # where they lie, for the judge to read (on a CPU)
        self._delivered: list[torch.Tensor] = []  # outputs of the last call, which the judge reads where they lie
        self._regions: dict[str, torch.Tensor] = {}
        self._shared = False  # whether these lie on the device
        self._staged: list[tuple[torch.Tensor, torch.Tensor]] = []  # (inbox, device) pairs, of regions on the host
        self._inputs: list[Any] = []
        self._outputs: dict[str, torch.Tensor] = {}
        self._state: dict[str, torch.Tensor] = {}  # in the inbox, by the model's own names
        self._watched: list[torch.Tensor] = []  # tensors that a result may not share memory with
        self._keeps = False
        self._earlier = Earlier([], strict=True)
        self._ahead: list[list[Any]] = []  # inputs of the calls that are to follow the next one at once
        self._results: list[object] = []  # of such calls
        self._launches: Launches | None = None  # when Triton's launches are recorded

    def load(self, message: wire.Message) -> wire.Message:
        """Imports the candidate, or for the baseline the problem (class `Model`, with its sizes in force).

        `capture` records extension calls instead of building them; `gpu` has Triton's launches recorded, for that GPU.
        """
        calls: list[dict[str, Any]] = []
        if message.get("gpu") is not None:
            self._launches = Launches(message["gpu"], lambda event: wire.send(self._sock, {"event": event}))
        if message["capture"]:
            capture.record_extension_calls(calls)
        elif not self._announces:
            self._announces = True
            capture.announce_builds(lambda event: wire.send(self._sock, {"event": event}))
            builds.quicken_if_offered(capture.cpp_extension)
        module = load_file(MODULE, message["path"], message["overrides"], message.get("text"))
        self._class = getattr(module, message["class"], None)
        return {"has_class": isinstance(self._class, type), "extensions": calls}

    def launch(self, message: wire.Message) -> wire.Message:
        """Makes ModelNew and calls it once on tensors without contents; says which kernels Triton compiled for it."""
        assert self._launches is not None
        self._device = torch.device("meta")
        init_inputs, inputs = ([self._argument(item) for item in message[key]] for key in ("init_inputs", "inputs"))
        answer = self._launches.forward(self._class, init_inputs, inputs, message["seed"])
        raised = answer.pop("raised")
        return answer | {"raised": None if raised is None else _error(raised)}

    def part(self, message: wire.Message) -> wire.Message:
        """A part of a code object that `launch` compiled."""
        assert self._launches is not None
        return {"part": self._launches.part(message["number"], message["offset"])}

    def device(self, message: wire.Message) -> wire.Message:
        """Takes the device."""
        self._device = torch.device(message["device"])
        if self._device.type == "cuda":
            self._device = _alone(message["only"]) or self._device
            torch.cuda.set_device(self._device)
            torch.zeros(1, device=self._device)  # makes the context, and loads torch's first kernel
            leave_graphs_their_pools()
        else:
            torch.set_num_threads(message["threads"])
        return {}

    def regions(self, message: wire.Message) -> wire.Message:
        """Maps the two regions, on the device if they are `shared`. Their files follow if they are `sent`.

        With a `gate`, whose file follows them, calls wait on the device until the judge releases their inputs.
        """
        self._shared, self._leaves_outputs = message["shared"], message["left"]
        gate = message.get("gate")
        files = list(self._fds.values())
        if message["sent"]:
            files = wire.receive_descriptors(self._sock, len(files) + (gate is not None))
        page = None if gate is None else files.pop()
        for name, fd in zip(self._fds, files, strict=True):
            if self._shared:
                self._regions[name] = device_memory.open_shared(message[name], fd, self._device)
            else:
                self._regions[name] = memory.map_host(fd, message[name]["size"])
                if message["sent"]:
                    os.close(fd)
        if message["flush_bytes"]:
            self._flush = Flusher(self._device, message["flush_bytes"])
        if page is None or gate is None:
            return {"process": os.getpid()}
        self._gate = Gate(device_memory.open_shared(gate, page, self._device))
        self._pool = SharedPool(self._device, self._tell_segment)
        return {"outbox": self._regions["outbox"].data_ptr()}

    def here(self, message: wire.Message) -> wire.Message:
        """Keeps a text in memory and says where, so that the judge sees whether it can read it there."""
        self._text = ctypes.create_string_buffer(message["text"].encode())
        return {"process": os.getpid(), "address": ctypes.addressof(self._text)}

    def construct(self, message: wire.Message) -> wire.Message:
        """Makes the model under the seed and says what parameters and buffers it has."""
        torch.manual_seed(message["seed"])
        arguments = [self._argument(item) for item in message["init_inputs"]]
        self._model = self._class(*arguments).to(self._device)
        own = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        return {"state": [_form_of(name, value, name in own) for name, value in self._model.state_dict().items()]}

    def parameters(self, message: wire.Message) -> wire.Message:
        """Loads the values that lie in the inbox, by the model's own `load_state_dict`: its hooks may notice."""
        self._state = {name: self._view(place) for name, place in message["state"].items()}
        values = {name: tensor.to(self._device, copy=True) for name, tensor in self._state.items()}
        self._model.load_state_dict(values, strict=False)  # buffers of its own stay as they are
        values.clear()  # free memory too
        self._poison()
        return {}

    def state(self, _message: wire.Message) -> wire.Message:
        """Writes the parameters and buffers, as they are now, back to where they came from."""
        now = self._model.state_dict()
        for name, place in self._state.items():
            place.copy_(now[name])
        self._finish()
        return {}

    def bind(self, message: wire.Message) -> wire.Message:
        """Fixes where inputs lie in the inbox and where outputs go in the outbox."""
        self._staged = []
        self._inputs = [self._argument(item, stage=True) for item in message["inputs"]]
        self._outputs = {
            path: memory.view(self._regions["outbox"], place) for path, place in message["outputs"].items()
        }
        self._watched = _tensors_in(self._inputs)
        self._poison()
        return {}

    def watch(self, message: wire.Message) -> wire.Message:
        """Strict mode for the trials: the allocator hands out junk, and results of any size are kept for a call."""
        self._keeps = message["on"]
        memory.perturb_heap(message["on"])
        return {}

    def prepare(self, _message: wire.Message) -> wire.Message:
        """For the next call: memory that it may get holds no old answer."""
        self._poison()
        return {}

    def call(self, message: wire.Message) -> wire.Message:
        """One forward pass: fresh contents are already in the inbox, the outputs go to the outbox or are left.

        Correctness trials and timed runs are this same message, so a candidate cannot tell them apart. The judge starts
        its clock when it sends the message, and stops it at the "end", or at the answer where outputs are left for it
        to read; with a `gate`, the number of the call, its clock is the device's, from the release of the inputs until
        the outputs are ready.
        """
        if message.get("gate") is not None:
            return self._gated(message["gate"], lambda: self._model(*self._inputs))
        with torch.no_grad():
            self._fetch()
            timed = timed_call(lambda: self._model(*self._inputs), self._device, self._flush)
            self._tell_end()
        return self._answer(timed)

    def _tell_end(self) -> None:
        if not self._leaves_outputs:
            wire.send(self._sock, {"event": "end"})

    def null(self, message: wire.Message) -> wire.Message:
        """A gated call without a forward pass, that comes to what the call before did: what a call costs by itself."""
        last = self._delivered
        tick = torch.zeros(1, device=self._device)

        def forward() -> None:
            tick.add_(1)

        return self._gated(message["gate"], forward, last)

    def _gated(
        self, number: int, forward: Callable[[], object], delivered: list[torch.Tensor] | None = None
    ) -> wire.Message:
        assert self._gate is not None and self._pool is not None
        self._finish()
        runtime.unpin_cache()
        runtime.forget()
        with torch.no_grad(), self._pool.use():
            self._gate.hold(number)
            wire.send(self._sock, {"event": "begun"})
            result = forward()
            error = runtime.read()  # before anything else of ours: see clock.py
            self._delivered = self._deliver(result) if delivered is None else delivered
        self._gate.done(number, self._delivered)
        self._finish()
        return {"device_error": error, "leaves": [] if delivered is not None else self._described(result)}

    def _deliver(self, result: object) -> list[torch.Tensor]:
        """The outputs as the judge reads them, in memory that it can map; on a CPU it reads any.

        One in other memory is copied to its place, which its call pays for; a leaf that is no such output is
        represented by the place that it should have filled.
        """
        found = dict(wire.leaves(result, "output"))
        delivered = []
        for path, place in self._outputs.items():
            leaf = found.get(path)
            if _fits(leaf, place) and leaf.device == place.device and leaf.layout == torch.strided:
                plain = leaf.resolve_conj().resolve_neg()
                reached = not plain.numel() or self._pool is None or self._pool.holds(plain)
                delivered.append(plain if reached else place.copy_(plain))
            else:
                delivered.append(place)
        return delivered

    def _tell_segment(self, address: int, size: int, descriptor: int | None) -> None:
        """Has the judge map a new segment of the pool, or forget one."""
        wire.send(self._sock, {"event": "segment", "address": address, "size": size})
        if descriptor is not None:
            wire.send_descriptors(self._sock, [descriptor])
            os.close(descriptor)
        wire.receive(self._sock)

    def trace(self, _message: wire.Message) -> wire.Message:
        """The same call while the kernel trace records."""
        with torch.no_grad():
            self._fetch()
            if self._flush is not None:
                self._flush()
            timed, rows = traced_call(lambda: self._model(*self._inputs), self._device)
            self._tell_end()
        return {**self._answer(timed), "trace": rows}

    def ahead(self, _message: wire.Message) -> wire.Message:
        """Copies the inputs that lie in the inbox: a call of `successive` gets the copy."""
        self._fetch()
        self._ahead.append([memory.mapped(value, memory.copy_of) for value in self._inputs])
        self._finish()
        return {}

    def successive(self, _message: wire.Message) -> wire.Message:
        """One forward pass on the inputs in the inbox and one on each copy that was made `ahead`, without a pause.

        All results are held, as a caller in production holds them; `result` hands them over.
        """
        self._fetch()
        calls = [self._inputs, *self._ahead]
        with torch.no_grad():
            self._results = [self._model(*inputs) for inputs in calls]
        for source, tensor in self._staged:
            source.copy_(tensor)
        self._finish()
        return {}

    def result(self, message: wire.Message) -> wire.Message:
        """Hands over the result of one of the successive calls."""
        described = self._hand_over(self._results[message["number"]])
        if message["number"] == len(self._results) - 1:
            self._results, self._ahead = [], []
        self._finish()
        return {"leaves": described}

    def _fetch(self) -> None:
        """Takes inputs that come by the host to the device."""
        for source, tensor in self._staged:
            tensor.copy_(source)

    def _poison(self) -> None:
        self._delivered = []
        if self._pool is None:
            memory.poison_free(self._outputs.values(), self._device)
        else:
            with self._pool.use():
                memory.poison_free(self._outputs.values(), self._device, self._pool.id)
        self._finish()

    def _answer(self, timed: Timed) -> wire.Message:
        answer = {
            "seconds": timed.seconds,
            "idle_seconds": timed.idle_seconds,
            "device_error": timed.device_error,
            "leaves": self._hand_over(timed.result),
        }
        for source, tensor in self._staged:
            source.copy_(tensor)  # so that the judge sees a change of the inputs
        self._finish()
        return answer

    def _finish(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def reset(self, _message: wire.Message) -> wire.Message:
        """Forgets the model, and gives back what it had: the baseline's runner stays for the next problem.

        Says what it has then, in bytes: of the device by torch's allocator, and of the host.
        """
        regions = list(self._regions.values()) if self._shared else []
        if self._gate is not None:
            regions.append(self._gate.page)
        self._forget()
        sys.modules.pop(MODULE, None)
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
        for region in regions:
            device_memory.release(region)
        held = torch.cuda.memory_reserved(self._device) if self._device.type == "cuda" else 0
        return {"device_bytes": held, "host_bytes": memory.resident_bytes()}

    def profile(self, _message: wire.Message) -> wire.Message:
        """Kernels of one forward pass as torch's profiler sees them."""
        self._fetch()
        with torch.no_grad():
            return profile.profile_forward(lambda: self._model(*self._inputs), self._device)

    def command(self, message: wire.Message) -> wire.Message:
        """Starts a profiler around a process of its own; a runner that is asked this is asked nothing else."""
        return run_command(message)

    def _argument(self, item: dict[str, Any], stage: bool = False) -> Any:
        if "list" in item:
            values = [self._argument(part, stage) for part in item["list"]]
            return tuple(values) if item.get("tuple") else values
        if "dict" in item:
            return {key: self._argument(part, stage) for key, part in item["dict"].items()}
        if "tensor" not in item:
            return item["value"]
        place = item["tensor"]
        if self._device.type == "meta":
            dtype = memory.DTYPES[place["dtype"]]
            return torch.empty_strided(place["shape"], place["strides"], dtype=dtype, device=self._device)
        source = self._view(place)
        if source.device.type == self._device.type:
            return source if stage else source.clone()
        target = torch.empty_strided(place["shape"], place["strides"], dtype=source.dtype, device=self._device)
        target.copy_(source)
        if stage:
            self._staged.append((source, target))
        return target

    def _view(self, place: dict[str, Any]) -> torch.Tensor:
        return memory.view(self._regions["inbox"], place)

    def _hand_over(self, result: object) -> list[dict[str, Any]]:
        """Describes each leaf and copies those that have the place's shape and dtype to the outbox.

        Where outputs are left for the judge to read, says where they lie instead.
        """
        if self._leaves_outputs:
            return self._left(result)
        for path, leaf in wire.leaves(result, "output"):
            place = self._outputs.get(path)
            if place is not None and _fits(leaf, place):
                memory.copy_out(place, leaf)
        return self._described(result)

    def _left(self, result: object) -> list[dict[str, Any]]:
        described = self._described(result)
        self._delivered = self._deliver(result)
        lies = dict(zip(self._outputs, self._delivered, strict=True))
        for item in described:
            output = lies.get(item["path"])
            if output is not None and "strides" in item:
                item["address"] = output.data_ptr()
                item["strides"] = item["strides"] and list(output.stride())  # none: of another kind than strided
        return described

    def _described(self, result: object) -> list[dict[str, Any]]:
        described = []
        kept = []
        for path, leaf in wire.leaves(result, "output"):
            if not isinstance(leaf, torch.Tensor):
                plain = leaf if isinstance(leaf, (bool, int, float, str, type(None))) else None
                described.append({"path": path, "type": type(leaf).__name__, "value": plain})
                continue
            # A subclass could compute only when it is read: its exact type is part of the answer.
            entry: dict[str, Any] = {
                "path": path,
                "type": "Tensor" if type(leaf) is torch.Tensor else f"a subclass of Tensor ({type(leaf).__name__})",
                "dtype": memory.dtype_name(leaf.dtype),
                "shape": list(leaf.shape),
                "strides": list(leaf.stride()) if leaf.layout == torch.strided else [],
                "device": leaf.device.type,
                "shares": self._shared_with(leaf) if type(leaf) is torch.Tensor else None,
            }
            described.append(entry)
            kept.append(leaf)
        self._earlier = Earlier(kept, self._keeps)
        return described

    def _shared_with(self, leaf: torch.Tensor) -> str | None:
        """Whether a result lies in memory of an input or of the result before."""
        if any(memory.overlap(leaf, tensor) for tensor in (*self._watched, *_tensors_in(self._ahead))):
            return "input"
        return "earlier" if self._earlier.overlaps(leaf) else None


def _alone(only: dict[str, str] | None) -> torch.device | None:
    """Hides all GPUs but one from a process that has not used any; None where that came too late.

    "visible" is its place in the user's CUDA_VISIBLE_DEVICES, or its number, "uuid" says whether it is the right one.
    """
    if only is None or torch.cuda.is_initialized():
        return None
    os.environ["CUDA_VISIBLE_DEVICES"] = only["visible"]
    found = torch.cuda.get_device_properties(0)  # code of the candidate's may have asked the driver behind torch's back
    return torch.device("cuda:0") if f"GPU-{found.uuid}" == only["uuid"] else None


def _tensors_in(values: object) -> list[torch.Tensor]:
    return [leaf for _, leaf in wire.leaves(values, "") if isinstance(leaf, torch.Tensor)]


def _fits(leaf: object, place: torch.Tensor) -> TypeGuard[torch.Tensor]:
    return isinstance(leaf, torch.Tensor) and leaf.shape == place.shape and leaf.dtype == place.dtype


def _form_of(name: str, value: torch.Tensor, is_parameter: bool) -> dict[str, Any]:
    dtype = memory.dtype_name(value.dtype)
    return {"name": name, "shape": list(value.shape), "dtype": dtype, "parameter": is_parameter}


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


def serve(sock: socket.socket, inbox: int = -1, outbox: int = -1) -> None:
    """Answers messages until the judge closes the channel. An exception of the candidate is an answer."""
    runner = Runner(sock, inbox, outbox)
    handlers: dict[str, Callable[[wire.Message], wire.Message]] = {name: getattr(runner, name) for name in OPERATIONS}
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
