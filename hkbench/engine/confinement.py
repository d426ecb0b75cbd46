"""How far runners are confined here, and the cage of each."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import ValidationError

from hkbench.errors import IsolationUnavailable, WorkerLost
from hkbench.records import Isolation, IsolationLevel
from hkbench.sandbox import command
from hkbench.sandbox.cage import Cage
from hkbench.sandbox.environment import device_files, kept_environment, readable_paths

SURVEY_SECONDS = 120.0
_NO_LAYERS = ("guard", command.BUBBLEWRAP)  #: which are not put on by the runner itself


async def survey() -> Isolation:
    """Return what works on this machine, found by trying it in a process of its own.

    Raises:
        WorkerLost: that process failed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hkbench.sandbox.survey",
        env=kept_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SURVEY_SECONDS):
            answer, words = await process.communicate()
        return Isolation.model_validate_json(answer)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise WorkerLost(f"how far candidates can be confined was not found within {SURVEY_SECONDS:g} s") from error
    except ValidationError as error:
        said = words.decode(errors="replace")[-2000:]
        raise WorkerLost(
            f"`python -m hkbench.sandbox.survey` failed (exit code {process.returncode}): {said}"
        ) from error


def require(isolation: Isolation, level: IsolationLevel) -> None:
    """Check that candidates can be confined to `level`.

    Raises:
    IsolationUnavailable: less than `level` is reached.
    """
    if isolation.level.rank >= level.rank:
        return
    missing = "".join(f"\n  {line}" for line in isolation.missing)
    raise IsolationUnavailable(
        f"--require-isolation {level}: candidates can only be confined to the level `{isolation.level}` here; what is "
        f"missing:{missing}\nmend that (`hkbench doctor` shows it again), or ask for less"
    )


def prefix(isolation: Isolation) -> tuple[str, ...]:
    """Return the command under which the runners' fork server has to run."""
    return (command.bubblewrap() or ()) if command.BUBBLEWRAP in isolation.layers else ()


class Cages:
    """Made when the devices have been opened once: their files may appear only then."""

    def __init__(self, isolation: Isolation) -> None:
        self._readable = readable_paths()
        self._devices = device_files()
        self._layers = tuple(layer for layer in isolation.layers if layer not in _NO_LAYERS)
        self._prefix = prefix(isolation)

    def cage(self, folder: Path, code: str | None, readable: tuple[str, ...] = ()) -> Cage:
        """Return the cage of a runner that uses its private `folder` and the file `code`, if it imports one.

        `readable`: what all runners may see beyond the system.
        """
        own = () if code is None else (str(Path(code).resolve()),)
        return Cage((*self._readable, *readable, *own), (str(folder), *self._devices), self._layers)

    def profiler(self, folder: Path, built: Path, code: str, problem: Path, readable: tuple[str, ...] = ()) -> Cage:
        """Return the cage of a profiler in the private `folder`; its process imports `code` and uses what it `built`.

        `readable`: as for `cage`.
        """
        own = (str(Path(code).resolve()), str(problem.resolve()))
        writable = (str(folder), str(built), *self._devices)
        return Cage((*self._readable, *readable, *own), writable, self._layers, named_pipes=True)

    def tool(self, folder: Path, *readable: Path) -> tuple[str, ...]:
        """Return the command prefix that confines a compiler to `folder`: it sees no other files of ours.

        `readable`: what this compiler needs beyond the system, as the folder of a toolchain.
        """
        seen = (*self._readable, *(str(path.resolve()) for path in readable))
        return command.words(Cage(seen, (str(folder.resolve()), *self._devices), self._layers), self._prefix)
