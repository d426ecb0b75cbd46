"""A card's side of the cluster: an evaluator for one device, which writes what it is sent to a folder of its own node.

An actor of the cluster's engine runs one (`ray_site.py`). What it returns is bytes, whatever happens.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path

from hkbench import errors
from hkbench.cluster.messages import Answered, CardOrder, Entered, FactsFound, Failed, Judged, Ready, Work, written
from hkbench.engine import LocalEvaluator, factory
from hkbench.records import BackendName, Problem, Record, Stage
from hkbench.sandbox import folders

FOLDER = "hkbench-card-"
REMOVE_SECONDS = 60.0


class Card:
    """Evaluate on the one device that this process sees."""

    def __init__(self, order: bytes) -> None:
        self._order = CardOrder.model_validate_json(order)
        self._numbers = count()
        self._stack = AsyncExitStack()
        self._evaluator: LocalEvaluator | None = None
        _take_back_threads(os.environ)
        _sweep()
        self._root = Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-"))
        self._kept = self._root / "kept"

    async def start(self) -> bytes:
        """Open the device: `Ready`."""
        return await _framed(self._start, "opening its device")

    async def ping(self) -> float:
        """Return the time of the node, in seconds since the epoch."""
        return time.time()

    async def require(self, backend: BackendName) -> bytes:
        """Check what candidates of a backend need: `Answered`."""

        async def required() -> Record:
            await self._open.require(backend)
            return Answered()

        return await _framed(required, f"looking for what backend {backend} needs")

    async def facts(self, problem: bytes, seconds: float | None) -> bytes:
        """Find the shapes of a problem: `FactsFound`."""
        sent = Problem.model_validate_json(problem)
        here = self._problem(sent, self._folder())

        async def found() -> Record:
            return FactsFound(facts=await self._open.problem_facts(here, seconds))

        return _with_path(await _framed(found, f"running {sent.name}"), here.path, sent.path)

    async def judge(self, work: bytes, code: bytes) -> AsyncIterator[bytes]:
        """Evaluate a candidate: `Entered` for each stage, and `Judged` in the end."""
        news: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()
        asked = Work.model_validate_json(work)
        folder = self._folder()
        here = self._problem(asked.problem, folder)

        def entered(stage: Stage, device: int | None) -> None:
            news.put_nowait((written(Entered(stage=stage, lent=device is not None)), False))

        async def judged() -> Record:
            candidate = folder / "candidate" / asked.file_name
            candidate.parent.mkdir()
            candidate.write_bytes(code)
            found = await self._open.evaluate(
                here, candidate, folder / "build", asked.backend, entered, profile=asked.profile
            )
            assert found.verdict is not None, "no builds alone are asked for"
            kept = await asyncio.to_thread(self._take_kept, f"{here.name}-{sha256(code).hexdigest()[:12]}")
            return Judged(verdict=found.verdict, turns=found.turns, assembly=found.assembly, kept=kept)

        async def work_on() -> None:
            answer = await _framed(judged, f"judging {asked.problem.name}")
            news.put_nowait((_with_path(answer, here.path, asked.problem.path), True))

        task = asyncio.create_task(work_on())
        try:
            last = False
            while not last:
                said, last = await news.get()
                yield said
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(_remove, folder)

    async def close(self) -> None:
        """End the evaluator, and remove the folder."""
        await self._stack.aclose()
        await asyncio.to_thread(_remove, self._root)

    async def _start(self) -> Record:
        order = self._order
        kept = str(self._kept) if order.keeps_profile else None
        settings = order.settings.model_copy(update={"keep_profile": kept})
        evaluator = factory.local_evaluator(order.kind, settings, order.sizes, order.builds, prepares=True)
        await self._stack.enter_async_context(evaluator)
        if len(evaluator.devices) != 1:
            seen = ", ".join(f"{facts.index} ({facts.name})" for facts in evaluator.devices)
            raise errors.UsageError(
                f"the process of one card sees several devices, {seen}: leave out RAY_EXPERIMENTAL_NOSET_* where the "
                "node is started, so that Ray shows each process its own card only"
            )
        self._evaluator = evaluator
        return Ready(devices=evaluator.devices, isolation=evaluator.isolation, sizes=evaluator.sizes)

    @property
    def _open(self) -> LocalEvaluator:
        if self._evaluator is None:
            raise errors.WorkerLost("the card was asked for work before its device was open")
        return self._evaluator

    def _folder(self) -> Path:
        folder = self._root / str(next(self._numbers))
        folder.mkdir()
        return folder

    def _problem(self, sent: Problem, folder: Path) -> Problem:
        """Write a problem's file here."""
        path = folder / "problem" / f"{sent.name}.py"
        path.parent.mkdir()
        path.write_text(sent.source, encoding="utf-8")
        return sent.model_copy(update={"path": path})

    def _take_kept(self, name: str) -> dict[str, dict[str, str]]:
        """Return what profilers left of a candidate, by the name of its folder, and remove it here."""
        folder = self._kept / name
        if not folder.is_dir():
            return {}
        found = {path.name: path.read_text(errors="backslashreplace") for path in sorted(folder.iterdir())}
        _remove(folder)
        return {name: found}


async def _framed(work: Callable[[], Awaitable[Record]], doing: str) -> bytes:
    """Return the answer of some work, or what it failed at."""
    try:
        return written(await work())
    except errors.HkbenchError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 - the end of a process: an exception of any kind must not be pickled
        failure = errors.unexpected(doing, error)
    return written(Failed(error=type(failure).__name__, message=str(failure)))


def _with_path(answer: bytes, here: Path, there: Path) -> bytes:
    """Name the controller's file where an answer names its copy."""
    return answer.replace(str(here).encode(), str(there).encode())


def _take_back_threads(environment: os._Environ[str]) -> None:
    """Undo Ray's choice of OMP_NUM_THREADS, unless the node was started with it: kernels would be timed by it."""
    raylet = environment.get("RAY_RAYLET_PID", "")
    if "OMP_NUM_THREADS" not in environment or not raylet.isdecimal():
        return
    with suppress(OSError):
        own = Path(f"/proc/{raylet}/environ").read_bytes().split(b"\0")
        if not any(setting.startswith(b"OMP_NUM_THREADS=") for setting in own):
            del environment["OMP_NUM_THREADS"]


def _sweep() -> None:
    """Remove the folders of cards that were killed here."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        pid = folder.name.removeprefix(FOLDER).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists() and folder.stat().st_uid == os.geteuid():
            _remove(folder)


def _remove(folder: Path) -> None:
    with suppress(OSError):
        folders.remove(folder, REMOVE_SECONDS)
