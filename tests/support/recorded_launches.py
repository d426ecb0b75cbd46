"""Launches of whole candidates on an emulated GPU, kept as the device was given them, to be executed again.

`Recording` is the device's engine in a process of the evaluator's, which `recorded` starts in the place of its usual
one; it writes each kernel's first launch to a file that it opens before it is confined.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from hkbench.emulator import executor
from hkbench.emulator.device import Ran
from hkbench.emulator.engine import ExecutorEngine
from hkbench.emulator.executor import Memory, Options, Outcome
from hkbench.emulator.link import LaunchKernel
from hkbench.emulator.program import Program
from hkbench.emulator.report import CallOptions
from hkbench.engine import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, Problem, Status, Track
from hkbench.sandbox.client import ForkServer

ROOT = Path(__file__).resolve().parents[2]
WORKER, RECORDING_WORKER = "hkbench.evaluation.worker", "recording_worker"
#: Of an evaluation: one trial, without further shapes.
SETTINGS = EvaluationSettings(trials=1, shapes=0, track=Track.ANY, run_timeout=600.0)
_MODULE = """
from pathlib import Path
from support.recorded_launches import Recording
from hkbench.evaluation import emulated_device
from hkbench.evaluation.worker import serve as serve
Recording.folder = Path({folder!r})
emulated_device.ExecutorEngine = Recording
"""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FIXED_NOREPLACE = 0x100000


@dataclass(frozen=True)
class Recorded:
    """A kernel's launch: its code object, what it was asked for, and all memory of the device before it."""

    code: bytes
    request: LaunchKernel
    memory: tuple[tuple[int, str, bytes], ...]  #: address, name and contents of each range


class Recording(ExecutorEngine):
    """Executes as ever, and writes each kernel's first launch down."""

    folder: Path

    def __init__(self, arch: str, objdump: Path) -> None:
        super().__init__(arch, objdump)
        self._file = (self.folder / str(os.getpid())).open("wb")
        self._codes: dict[str, bytes] = {}
        self._known: set[str] = set()

    def load(self, code: bytes) -> Program:
        program = super().load(code)
        self._codes.update(dict.fromkeys(program.kernels, code))
        return program

    def launch(self, module: Program, request: LaunchKernel, options: CallOptions) -> Ran:
        if request.kernel not in self._known:
            self._known.add(request.kernel)
            memory = tuple((at, name, ctypes.string_at(at, size)) for at, size, name in self._memory.ranges())
            pickle.dump(Recorded(self._codes[request.kernel], request, memory), self._file)
            self._file.flush()
        return super().launch(module, request, options)


def recorded(problem: Problem, text: str, arch: str, backend: str = "hip") -> list[Recorded]:
    """Return the launches of a candidate that is right on the emulated GPU. Raises AssertionError where it is not."""
    return asyncio.run(_recorded(problem, text, arch, backend))


async def _recorded(problem: Problem, text: str, arch: str, backend: str) -> list[Recorded]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "launches").mkdir()
        (folder / f"{RECORDING_WORKER}.py").write_text(_MODULE.format(folder=str(folder / "launches")))
        (folder / "code.py").write_text(text, encoding="utf-8")
        path = os.pathsep.join(map(str, (ROOT, ROOT / "tests", folder)))
        with mock.patch.dict(os.environ, PYTHONPATH=path), mock.patch("hkbench.engine.evaluator.ForkServer", _server):
            async with LocalEvaluator(DeviceKind(f"emulated:{arch}"), SETTINGS) as evaluator:
                found = await evaluator.evaluate(problem, folder / "code.py", folder / "build", backend)
        assert found.verdict is not None and found.verdict.status is Status.EMULATED, found
        return [one for file in sorted((folder / "launches").iterdir()) for one in _read(file)]


def _server(module: str, environment: dict[str, str] | None = None) -> ForkServer:
    return ForkServer(RECORDING_WORKER if module == WORKER else module, environment)


def _read(file: Path) -> Iterator[Recorded]:
    with file.open("rb") as stream:
        while stream.peek(1):
            yield pickle.load(stream)


class Replay:
    """The launch on memory at the same addresses, as often as wanted. Use as a context manager."""

    def __init__(self, launch: Recorded) -> None:
        self._launch = launch
        self._pages = list(_pages([(at, len(data)) for at, _, data in launch.memory]))
        self._memory = Memory()
        for at, name, data in launch.memory:
            self._memory.add(at, len(data), name)

    def __enter__(self) -> Replay:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
        for begin, size in self._pages:
            found = _libc.mmap(begin, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
            assert found == begin, os.strerror(ctypes.get_errno())
        return self

    def __exit__(self, *_: object) -> None:
        for begin, size in self._pages:
            _libc.munmap(begin, size)

    def execute(self, program: Program, options: Options) -> tuple[Outcome, bytes]:
        """Return the outcome, and all memory of the device after it."""
        request = self._launch.request
        for at, _, data in self._launch.memory:
            ctypes.memmove(at, data, len(data))
        asked = executor.Launch(request.kernel, request.grid, request.block, request.dynamic_lds, request.kernarg)
        outcome = executor.launch(program, asked, self._memory, options)
        return outcome, b"".join(ctypes.string_at(at, len(data)) for at, _, data in self._launch.memory)


def _pages(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield address and size of the pages that hold the ranges, each once."""
    begin = end = 0
    for at, size in sorted(ranges):
        first, last = at // mmap.PAGESIZE * mmap.PAGESIZE, -(-(at + size) // mmap.PAGESIZE) * mmap.PAGESIZE
        if first > end:
            if end:
                yield begin, end - begin
            begin = first
        end = max(end, last)
    if end:
        yield begin, end - begin
