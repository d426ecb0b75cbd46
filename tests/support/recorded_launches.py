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

from hkbench.emulator import arena, executor
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
        for place in self._pages:
            memory = os.memfd_create("replay")
            os.ftruncate(memory, place.size)
            arena.map_at(memory, place.begin, place.size)
            os.close(memory)
        return self

    def __exit__(self, *_: object) -> None:
        for place in self._pages:
            arena.unmap(place)

    def execute(self, program: Program, options: Options) -> tuple[Outcome, bytes]:
        """Return the outcome, and all memory of the device after it."""
        request = self._launch.request
        for at, _, data in self._launch.memory:
            ctypes.memmove(at, data, len(data))
        asked = executor.Launch(request.kernel, request.grid, request.block, request.dynamic_lds, request.kernarg)
        outcome = executor.launch(program, asked, self._memory, options)
        return outcome, b"".join(ctypes.string_at(at, len(data)) for at, _, data in self._launch.memory)


def _pages(ranges: Sequence[tuple[int, int]]) -> Iterator[arena.Range]:
    """Yield the pages that hold the ranges, given by address and size, each once."""
    begin = end = 0
    for at, size in sorted(ranges):
        first, last = at // mmap.PAGESIZE * mmap.PAGESIZE, -(-(at + size) // mmap.PAGESIZE) * mmap.PAGESIZE
        if first > end:
            if end:
                yield arena.Range(begin, end - begin)
            begin = first
        end = max(end, last)
    if end:
        yield arena.Range(begin, end - begin)
