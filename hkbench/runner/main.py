"""The runner: loads one candidate and does what the evaluator asks of it, one message at a time."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NoReturn

import torch

from hkbench.fastbuild.inside import patch_torch
from hkbench.protocol import device_memory, memory, messages, wire
from hkbench.protocol.constants import BEST_CLASS, WITHOUT_LIBRARIES
from hkbench.protocol.device_stream import Flusher
from hkbench.protocol.drawing import quick_draws
from hkbench.protocol.gate import Gate
from hkbench.runner import capture, profile, variants
from hkbench.runner.clock import Timed, runtime, stop_self, timed_call
from hkbench.runner.command import run_command
from hkbench.runner.emulated.gpu import EmulatedGpu
from hkbench.runner.inbox import Inbox, initial_values_left
from hkbench.runner.launches import Launches
from hkbench.runner.load import load_file
from hkbench.runner.only_gpu import hide_others
from hkbench.runner.pool import SharedPool, leave_graphs_their_pools
from hkbench.runner.precision import PrecisionWatch
from hkbench.runner.raised import raised
from hkbench.runner.rehearsal import rehearse
from hkbench.runner.results import Results, tensors_in
from hkbench.runner.trace import traced_call

MODULE = "candidate"

if WITHOUT_LIBRARIES in os.environ:  # torch asks the library for its version, which it does not tell, to place an LSTM
    torch.backends.cudnn.enabled = False


class Runner:
    """State between messages. Each operation is a method of its name: it takes the request and returns the answer."""

    def __init__(self, sock: socket.socket, inbox: int, outbox: int) -> None:
        self._sock = sock
        self._fds = {"inbox": inbox, "outbox": outbox}
        self._device = torch.device("cpu")
        self._announces = False  # builds, and makes them quick: for good
        self.precision: PrecisionWatch | None = None  #: of a candidate, for good
        self._failed = capture.FailedBuilds()
        self._emulated: EmulatedGpu | None = None  # for good
        self._taken = False  # the device, for good
        self._pool: SharedPool | None = None
        self._forget()

    def _forget(self) -> None:
        """Forget the candidate: restore the state before one is loaded. The device stays."""
        if self._pool is not None:
            self._pool.close()
            variants.forget()
        self._class: Callable[..., torch.nn.Module] = _no_class
        self._variants = variants.Variants()
        self._model = torch.nn.Module()
        self._flush: Flusher | None = None
        self._gate: Gate | None = None
        self._pool = None
        self._regions: dict[str, torch.Tensor] = {}
        self._shared = False  # whether these lie on the device
        self._inbox = Inbox(self._device)
        self._inputs: list[object] = []
        self._results = Results()
        self._state: dict[str, torch.Tensor] = {}  # in the inbox, by the model's own names
        self._ahead: list[list[object]] = []  # inputs of the calls that are to follow the next one at once
        self._successive: list[object] = []  # results of such calls
        self._launches: Launches | None = None  # when Triton's launches are recorded

    def load(self, request: messages.Load) -> messages.CandidateLoaded:
        """Import the candidate, or for the baseline the problem (class `Model`, with its sizes in force).

        `capture` records extension calls instead of building them; `gpu` has Triton's launches recorded, for that GPU.
        On an `emulated` one they are executed, and so is what extensions launch.
        """
        calls: list[messages.Object] = []
        if request.emulated is not None:
            self._emulated = EmulatedGpu(request.emulated, *wire.receive_descriptors(self._sock, 2))
        if request.gpu is not None:
            self._launches = Launches(request.gpu, self._tell)
        if request.capture:
            capture.record_extension_calls(calls)
        elif not self._announces:
            self._announces = True
            capture.listeners.append(self._tell)
            capture.announce_builds(self._failed)
            patch_torch.enable_fast_builds_if_offered(capture.cpp_extension)
        if request.class_ == "ModelNew" and self.precision is None:
            self.precision = PrecisionWatch(request.path)
        module = load_file(MODULE, request.path, request.overrides, request.text)
        self._class = getattr(module, request.class_, _no_class)
        self._variants.best_class = getattr(module, BEST_CLASS, None)
        return messages.CandidateLoaded(has_class=isinstance(self._class, type), extensions=[*calls])

    def launch(self, request: messages.Launch) -> messages.Launched:
        """Make ModelNew and call it once on tensors without contents; say which kernels Triton compiled for it."""
        assert self._launches is not None
        nowhere = Inbox(torch.device("meta"))
        init_inputs, inputs = nowhere.arguments(request.init_inputs), nowhere.arguments(request.inputs)
        return self._launches.forward(self._class, init_inputs, inputs, request.seed)

    def rehearse(self, request: messages.Rehearse) -> messages.Done:
        """Have compiled what the constructor and the first call have compiled, in a process without the device."""
        rehearse(request, self._class, self._failed)
        return messages.Done()

    def part(self, request: messages.Part) -> messages.CodePart:
        """Return a part of a code object that `launch` compiled."""
        assert self._launches is not None
        return messages.CodePart(part=self._launches.part(request.number, request.offset))

    def device(self, request: messages.Device) -> messages.Done:
        """Take the device, once."""
        if self._taken:
            return messages.Done()
        self._taken = True
        self._device = torch.device(request.device)
        if self._emulated is not None:
            # A second thread that waits for work spends as much as one that computes, and what a call spends counts.
            torch.set_num_threads(1)
        elif self._device.type == "cuda":
            self._device = hide_others(request.only) or self._device
            torch.cuda.set_device(self._device)
            torch.zeros(1, device=self._device)  # makes the context, and loads torch's first kernel
            leave_graphs_their_pools()
        else:
            torch.set_num_threads(request.threads)
        return messages.Done()

    def regions(self, request: messages.Regions) -> messages.RegionsMapped:
        """Map the two regions, on the device if they are `shared`. Their files follow if they are `sent`.

        With a `gate`, whose file follows them, calls wait on the device until the evaluator releases their inputs.
        """
        self._shared, self._results.left = request.shared, request.left
        files = list(self._fds.values())
        if request.sent:
            files = wire.receive_descriptors(self._sock, len(files) + (request.gate is not None))
        page = None if request.gate is None else files.pop()
        for name, fd, size in zip(self._fds, files, (request.inbox, request.outbox), strict=True):
            if self._emulated is not None:
                self._regions[name] = self._emulated.region(name, fd, size)
            elif self._shared:
                self._regions[name] = device_memory.open_shared(size, fd, self._device)
            else:
                self._regions[name] = memory.map_host(fd, size)
                if request.sent:
                    os.close(fd)
        self._inbox = Inbox(self._device, self._regions["inbox"])
        if request.flush_bytes:
            self._flush = Flusher(self._device, request.flush_bytes)
        if page is None or request.gate is None:
            return messages.RegionsMapped(process=os.getpid())
        self._gate = Gate(device_memory.open_shared(request.gate, page, self._device))
        self._pool = self._results.pool = SharedPool(self._device, self._tell_segment)
        return messages.RegionsMapped(outbox=self._regions["outbox"].data_ptr())

    def here(self, request: messages.Here) -> messages.TextPlaced:
        """Keep a text in memory and say where, so that the evaluator sees whether it can read it there."""
        self._text = ctypes.create_string_buffer(request.text.encode())
        return messages.TextPlaced(process=os.getpid(), address=ctypes.addressof(self._text))

    def construct(self, request: messages.Construct) -> messages.ModelMade:
        """Make the model under the seed and say what parameters and buffers it has."""
        self._variants.arguments = self._inbox.arguments(request.init_inputs)
        model = self._made(request)
        same = memory.first_names(model.state_dict())  # before it moves, which gives a buffer of two names two places
        self._model = model.to(self._device)
        own = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        state = self._model.state_dict().items()
        made = [
            messages.StateForm(
                name=name,
                shape=list(value.shape),
                dtype=memory.dtype_name(value.dtype),
                parameter=name in own,
                same=same.get(name, name),
            )
            for name, value in state
        ]
        return messages.ModelMade(state=made)

    def _made(self, request: messages.Construct) -> torch.nn.Module:
        def made() -> torch.nn.Module:
            torch.manual_seed(request.seed)
            with quick_draws():
                return self._class(*self._inbox.arguments(request.init_inputs))

        if request.draws:
            return made()
        with initial_values_left():
            model = made()
        # A tensor that is no parameter keeps what it was made of.
        return made() if any(isinstance(v, torch.Tensor) for m in model.modules() for v in vars(m).values()) else model

    def parameters(self, request: messages.Parameters) -> messages.Done:
        """Load the values that lie in the inbox, by the model's own `load_state_dict`: its hooks may notice."""
        self._state = {name: self._inbox.view(place) for name, place in request.state.items()}
        values = {name: tensor.to(self._device, copy=True) for name, tensor in self._state.items()}
        values |= {name: values[first] for name, first in request.also.items()}
        self._model.load_state_dict(values, strict=False)  # buffers of its own stay as they are
        values.clear()  # free memory too
        self._poison()
        return messages.Done()

    def state(self, _request: messages.State) -> messages.Done:
        """Write the parameters and buffers, as they are now, back to where they came from."""
        now = self._model.state_dict()
        for name, place in self._state.items():
            place.copy_(now[name])
        self._finish()
        return messages.Done()

    def bind(self, request: messages.Bind) -> messages.Done:
        """Fix where inputs lie in the inbox and where outputs go in the outbox."""
        self._inputs = self._inbox.bind(request.inputs)
        outbox = self._regions["outbox"]
        self._results.places = {path: memory.view(outbox, place) for path, place in request.outputs.items()}
        self._results.inputs = tensors_in(self._inputs)
        self._poison()
        return messages.Done()

    def watch(self, request: messages.Watch) -> messages.Done:
        """Turn on strict mode for the trials: the allocator hands out junk, and all results are kept for a call."""
        self._results.keeps = request.on
        memory.perturb_heap(request.on)
        return messages.Done()

    def prepare(self, _request: messages.Prepare) -> messages.Done:
        """Prepare for the next call: memory that it may get holds no old answer."""
        self._poison()
        return messages.Done()

    def call(self, request: messages.Call) -> messages.Called:
        """Make one forward pass on the fresh contents of the inbox; copy the outputs to the outbox or leave them.

        Correctness trials and timed runs are this same message, so a candidate cannot tell them apart. The evaluator
        starts its clock when it sends the message, and stops it at the "end". With a `gate`, the number of the call,
        its clock runs from the release of the inputs until the outputs are ready, by the device or by stops.
        """
        forward = self._model if request.variant is None else self._variants.made[request.variant]
        if request.gate is not None and self._gate is not None:
            return self._gated(self._gate, request.gate, lambda: forward(*self._inputs))
        if request.gate is not None:
            return self._between_stops(lambda: forward(*self._inputs))
        with torch.no_grad():
            self._inbox.fetch()
            timed = self._timed(lambda: forward(*self._inputs))
            self._tell("end")
        return messages.Called(
            device_error=timed.device_error,
            leaves=self._hand_over(timed.result),
            seconds=timed.seconds,
            idle_seconds=timed.idle_seconds,
        )

    def _timed(self, forward: Callable[[], object]) -> Timed:
        if self._emulated is None:
            return timed_call(forward, self._device, self._flush)
        self._emulated.error()  # what was left before is not this call's
        timed = timed_call(forward, torch.device("cpu"), self._flush)
        return replace(timed, device_error=self._emulated.error())

    def variant(self, request: messages.Variant) -> messages.VariantMade:
        """Make a further baseline on the inputs that lie in the inbox, unless it is made."""
        self._inbox.fetch()
        self._variants.make(request.variant, self._model, self._inputs, self._device)
        self._finish()
        return messages.VariantMade(graphs=variants.graphs(), notes=self._variants.notes)

    def null(self, request: messages.Null) -> messages.Called:
        """Make a gated call without a forward pass, which shows what a call costs; it has the last call's outputs."""
        assert request.gate is not None
        last = self._results.delivered
        if self._gate is None:
            return self._between_stops(lambda: None, last)
        tick = torch.zeros(1, device=self._device)
        return self._gated(self._gate, request.gate, lambda: tick.add_(1), last)

    def _between_stops(
        self, forward: Callable[[], object], delivered: list[torch.Tensor] | None = None
    ) -> messages.Called:
        """Wait before the forward pass, for its inputs to be put in place, and stop this process at once after it.

        A process stops as a whole: none of its threads goes on. The evaluator's clock runs from when it lets the
        process go on until the kernel says that it has stopped, and the outputs are taken as they are then.
        """
        results = self._results
        self._tell("begun")
        wire.receive(self._sock)
        with torch.no_grad():
            result = forward()
        results.delivered = results.deliver(result) if delivered is None else delivered
        places = [[output.data_ptr(), *output.stride()] for output in results.delivered]
        wire.send(self._sock, {"event": "end", "places": places})
        stop_self()
        return messages.Called(device_error=None, leaves=[] if delivered is not None else results.described(result))

    def _gated(
        self,
        gate: Gate,
        number: int,
        forward: Callable[[], object],
        delivered: list[torch.Tensor] | None = None,
    ) -> messages.Called:
        assert self._pool is not None
        self._finish()
        runtime.unpin_cache()
        runtime.forget()
        results = self._results
        with torch.no_grad(), self._pool.use():
            gate.hold(number)
            self._tell("begun")
            result = forward()
            error = runtime.read()  # before anything else of ours: see clock.py
            results.delivered = results.deliver(result) if delivered is None else delivered
        gate.done(number, results.delivered)
        self._finish()
        return messages.Called(device_error=error, leaves=[] if delivered is not None else results.described(result))

    def trace(self, _request: messages.Trace) -> messages.Traced:
        """Make the same call while the kernel trace records."""
        with torch.no_grad():
            self._inbox.fetch()
            if self._flush is not None:
                self._flush()
            timed, rows = traced_call(lambda: self._model(*self._inputs), self._device)
            self._tell("end")
        return messages.Traced(
            device_error=timed.device_error,
            leaves=self._hand_over(timed.result),
            seconds=timed.seconds,
            idle_seconds=timed.idle_seconds,
            trace=dict(rows),
        )

    def ahead(self, _request: messages.Ahead) -> messages.Done:
        """Copy the inputs that lie in the inbox: a call of `successive` gets the copy."""
        self._inbox.fetch()
        copies = [memory.mapped(value, memory.copy_of) for value in self._inputs]
        self._ahead.append(copies)
        self._results.inputs += tensors_in(copies)
        self._finish()
        return messages.Done()

    def successive(self, _request: messages.Successive) -> messages.Done:
        """Make one forward pass on the inbox's inputs and one on each copy made `ahead`, without a pause.

        All results are held, as a caller in production holds them; `result` hands them over.
        """
        self._inbox.fetch()
        calls = [self._inputs, *self._ahead]
        with torch.no_grad():
            self._successive = [self._model(*inputs) for inputs in calls]
        self._inbox.put_back()
        self._finish()
        return messages.Done()

    def result(self, request: messages.Result) -> messages.HandedOver:
        """Hand over the result of one of the successive calls."""
        described = self._results.hand_over(self._successive[request.number])
        if request.number == len(self._successive) - 1:
            self._successive, self._ahead = [], []
            self._results.inputs = tensors_in(self._inputs)
        self._finish()
        return messages.HandedOver(leaves=described)

    def reset(self, request: messages.Reset) -> messages.MemoryHeld:
        """Forget the model, and give back what it had: the baseline's runner stays for the next problem.

        With `keep_class` a candidate's model for another shape follows; what torch.compile made for this one is
        forgotten too, as in a process of its own.

        Says what it has then, in bytes: of the device by torch's allocator, and of the host.
        """
        regions = list(self._regions.values()) if self._shared else []
        if self._gate is not None:
            regions.append(self._gate.page)
        kept = self._class
        self._forget()
        if request.keep_class:
            self._class = kept
            if "torch._dynamo" in sys.modules:
                torch._dynamo.reset()
        else:
            sys.modules.pop(MODULE, None)
        gc.collect()
        on_gpu = self._device.type == "cuda" and self._emulated is None
        if on_gpu:
            torch.cuda.synchronize(self._device)
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
        for region in regions:
            device_memory.release(region)
        held = torch.cuda.memory_reserved(self._device) if on_gpu else 0
        return messages.MemoryHeld(device_bytes=held, host_bytes=memory.resident_bytes())

    def profile(self, _request: messages.Profile) -> messages.Profiled:
        """Return the kernels of one forward pass as torch's profiler sees them."""
        self._inbox.fetch()
        with torch.no_grad():
            return profile.profile_forward(lambda: self._model(*self._inputs), self._device)

    def command(self, request: messages.Command) -> messages.CommandEnded:
        """Start a profiler around a process of its own; a runner that is asked this is asked nothing else."""
        return run_command(request)

    def _hand_over(self, result: object) -> list[messages.Object]:
        described = self._results.hand_over(result)
        self._inbox.put_back()
        self._finish()
        return described

    def _poison(self) -> None:
        results = self._results
        results.delivered = []
        if self._emulated is not None:
            return  # whatever it hands out is full of NaN
        if self._pool is None:
            memory.poison_free(results.places.values(), self._device)
        else:
            with self._pool.use():
                memory.poison_free(results.places.values(), self._device, self._pool.id)
        self._finish()

    def _finish(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _tell(self, event: str) -> None:
        wire.send(self._sock, {"event": event})

    def _tell_segment(self, address: int, size: int, descriptor: int | None) -> None:
        """Have the evaluator map a new segment of the pool, or forget one."""
        wire.send(self._sock, {"event": "segment", "address": address, "size": size})
        if descriptor is not None:
            wire.send_descriptors(self._sock, [descriptor])
            os.close(descriptor)
        wire.receive(self._sock)


def _no_class(*_: object) -> NoReturn:
    raise TypeError("the file has no class of the wanted name")


@contextlib.contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """End at a KeyboardInterrupt without a traceback: it belongs to the evaluator, which ends the runner."""
    try:
        yield
    except KeyboardInterrupt:
        os._exit(130)


def answered(runner: Runner, message: wire.Message) -> wire.Message:
    """Have the runner do what a message asks; an exception of the candidate is an answer."""
    try:
        request = messages.read(message)
        work: Callable[[messages.Request[object]], object] = getattr(runner, str(message["op"]))
        return messages.written_answer(work(request))
    except BaseException as error:  # noqa: BLE001 - the candidate may raise anything, SystemExit too
        return messages.written_answer(raised(error))


def serve(sock: socket.socket, inbox: int = -1, outbox: int = -1) -> None:
    """Answer messages until the evaluator closes the channel."""
    runner = Runner(sock, inbox, outbox)
    with _quiet_interrupt():
        while True:
            try:
                message = wire.receive(sock)
            except wire.PeerClosed:
                os._exit(0)
            answer = answered(runner, message)
            sys.stdout.flush()
            sys.stderr.flush()
            for lowered in runner.precision.take() if runner.precision is not None else ():
                wire.send(sock, {"event": "lowers", **lowered})
            wire.send(sock, answer)
