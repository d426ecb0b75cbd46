"""The evaluator's end of the process that is an emulated GPU, and the beginning of that process."""

from __future__ import annotations

import os
import resource
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hkbench.cdna import LDS_BYTES
from hkbench.emulator import arena
from hkbench.emulator.arena import Range
from hkbench.emulator.device import Server
from hkbench.emulator.engine import ExecutorEngine
from hkbench.emulator.report import Ask, Begin, CallOptions, NamedRange, Report, ShareMemory
from hkbench.errors import WorkerLost
from hkbench.evaluation import host_made
from hkbench.evaluation.frames import Emulate
from hkbench.evaluation.host_made import Table
from hkbench.evaluation.job import Emulation
from hkbench.evaluation.launches import absent_gpu
from hkbench.protocol import wire
from hkbench.protocol.codec import decode, encode
from hkbench.protocol.messages import EmulatedGpu
from hkbench.sandbox import cage, environment

ANSWER_SECONDS = 600.0  #: in which the device has to come to an end of what a runner had asked before
MEMORY_PART = 2  #: the machine's memory over that which its process may take, beside the memory of the device
_BROKEN = "the process that emulates the GPU ended; what it was given to load or to launch broke it"
_BUSY = f"the process that emulates the GPU was busy for {ANSWER_SECONDS:.0f} s with what it was given to launch"


class DeviceLost(Exception):
    """The device's process ended or is not heard of any more: something that the candidate had it do broke it."""


class EmulatedDevice:
    """Requests to the device; a second evaluator may go on with the same socket."""

    def __init__(self, control: socket.socket, emulation: Emulation) -> None:
        self._control = control
        self._emulation = emulation
        self._files: dict[int, tuple[int, int]] = {}  # address -> descriptor, size

    @contextmanager
    def handed_over(self) -> Iterator[tuple[EmulatedGpu, tuple[int, ...]]]:
        """Yield what the candidate's runner is told of the device, with its socket and the file of its memory."""
        try:
            known = self._ask({"op": "attach"})
        except DeviceLost:
            raise WorkerLost(
                "the process that is the emulated GPU ended as it began; its message stands above"
            ) from None
        descriptors = wire.receive_descriptors(self._control, 2)
        try:
            own = {"libraries": self._emulation.libraries, "hip": self._emulation.hip}
            gpu = encode(absent_gpu(self._emulation.arch))
            yield decode(EmulatedGpu, {"gpu": gpu, **own, **known}), tuple(descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def share(self, files: tuple[int, int], sizes: tuple[int, int], inputs: list[NamedRange]) -> None:
        """Let the device map inbox and outbox; kernels may use the `inputs`."""
        request = ShareMemory(inbox=sizes[0], outbox=sizes[1], ranges=inputs)
        wire.send(self._control, {"op": "memory", **encode(request)})
        wire.send_descriptors(self._control, files)
        self._answer()
        self._ask({"op": "heap"})
        (heap,) = wire.receive_descriptors(self._control, 1)
        places = ((arena.HEAP, heap, arena.HEAP_BYTES), (arena.INBOX, files[0], sizes[0]))
        self._files = {address: (file, size) for address, file, size in places}

    def begin(self, options: CallOptions) -> None:
        """Have what follows observed as one call."""
        self._ask({"op": "begin", **encode(Begin(options=options))})

    def report(self, outputs: Sequence[Range]) -> Report:
        """Return what was observed since `begin`."""
        return decode(Report, self._ask({"op": "report", **encode(Ask(outputs=[*outputs]))}))

    def host_made(self, outputs: Sequence[Range]) -> tuple[Table, Table, Table]:
        """Return what kernels read since `begin` of the host's, the outputs, and what of these no kernel wrote."""
        self._ask({"op": "host_made", **encode(Ask(outputs=[*outputs]))})
        files = wire.receive_descriptors(self._control, 3)
        try:
            made, lie, left = (host_made.table(os.pread(file, os.fstat(file).st_size, 0)) for file in files)
        finally:
            for file in files:
                os.close(file)
        return made, lie, left

    def read(self, place: Range) -> bytearray | None:
        """Return bytes of the device's memory, from its file, whatever a runner maps there; `None`: there is none."""
        for address, (file, size) in self._files.items():
            if Range(address, size).holds(place):
                data = bytearray(place.size)
                return data if os.preadv(file, [data], place.begin - address) == place.size else None
        return None

    def _ask(self, message: wire.Message) -> wire.Message:
        try:
            wire.send(self._control, message)
        except wire.PeerClosed as error:
            raise DeviceLost(_BROKEN) from error
        return self._answer()

    def _answer(self) -> wire.Message:
        try:
            return wire.receive(self._control, time.monotonic() + ANSWER_SECONDS)
        except wire.PeerClosed as error:
            raise DeviceLost(_BROKEN) from error
        except TimeoutError as error:
            raise DeviceLost(_BUSY) from error


def emulate(job: Emulate, control: socket.socket) -> None:
    """Be the device, confined to a folder of its own: what it decodes and executes is a candidate's."""
    os.environ["TMPDIR"] = tempfile.tempdir = job.folder
    os.environ["XDG_CACHE_HOME"] = job.cache
    engine = ExecutorEngine(job.arch, Path(job.objdump))
    server = Server(control, engine, LDS_BYTES[job.arch])
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MEMORY_PART
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    readable = (*environment.readable_paths(), *job.readable)
    cage.confine(cage.Cage(readable, (job.folder, *environment.device_files()), tuple(job.layers)))
    server.run()
