"""Evaluate a candidate or run a batch from Python: `hkbench.evaluate` and `hkbench.run`.

    import hkbench

    verdict = hkbench.evaluate("problems/level1/4_RMSNorm_fp32.py", "candidate.py")
    run = hkbench.run("batch.toml")

Both may be called in a notebook, whose event loop goes on meanwhile. What they raise is in hkbench/errors.py.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from hkbench.cli import batch
from hkbench.cli.parser import Parser
from hkbench.cli.resume import recorded_options
from hkbench.compile_only.build_only import compile_only
from hkbench.compile_only.evaluator import BUILD_ONLY_BACKEND
from hkbench.engine import factory
from hkbench.engine.private_folder import temporary_folder
from hkbench.errors import ConfigurationError, InputMissing, RunMismatch, UsageError
from hkbench.frames import Run, load_run
from hkbench.problems import find_problems, load_problem, problem_number, problems_root
from hkbench.prompts import load_prompts
from hkbench.records import DeviceKind, EvaluationSettings, Problem, RunConfig, SizeSet, Verdict
from hkbench.registry import backend_entry, default_backend

__all__ = ["evaluate", "run", "Problem", "EvaluationSettings", "RunConfig", "Verdict"]

T = TypeVar("T")
Choice = TypeVar("Choice", DeviceKind, SizeSet)


def evaluate(
    problem: Problem | str | Path,
    code: str | Path,
    *,
    device: DeviceKind | str = "auto",
    device_index: Sequence[int] | None = None,
    backend: str | None = None,
    sizes: SizeSet | str | None = None,
    settings: EvaluationSettings | None = None,
    compile_for: str | None = None,
) -> Verdict:
    """Build a candidate, compare it with the problem's reference, and time both.

    Each call starts the processes of the evaluator (some seconds); for many candidates use `run`, which keeps them.

    Args:
        problem: the path of a problem's file, or what `hkbench.problems.load_problem` returned.
        code: the path of a file that defines ModelNew, or its text: a string of more than one line is text.
        device: "auto" (a GPU that torch sees, else the CPU), "rocm", "cuda" or "cpu".
        device_index: which devices of that kind may be used, by torch's numbers; all of them by default.
        backend: the language of the kernels; hipkittens on rocm, cuda on cuda, cpp on cpu by default.
        sizes: "cpu", "emulated" or "full", which sizes of the problem; by default those of the kind of device.
        settings: trials, timed runs, limits in seconds and GiB, tolerances, track.
        compile_for: an architecture such as "gfx942": compile for it without a device, and measure nothing. The
            backend is then hip by default, and `device` and `device_index` are not used.

    Returns:
        The verdict. A candidate that fails has one too, with its `failure`: it raises nothing.

    Raises:
        InputMissing: the problem or the candidate is not there, or the problem's file cannot be used.
        UsageError: an argument has a value that it cannot have, or the backend is for other devices.
        Unavailable: a device, a compiler or the confinement of candidates is not there.
        InternalError: hkbench itself went wrong.
    """
    asked = problem if isinstance(problem, Problem) else load_problem(Path(problem))
    kind = None if device == "auto" else _member(DeviceKind, device)
    if backend is not None:
        backend_entry(backend)  # which raises before a device is started
    chosen = None if sizes is None else _member(SizeSet, sizes)
    how = settings or EvaluationSettings()

    async def verdict() -> Verdict:
        with temporary_folder() as scratch:
            file = _code_file(code, scratch)
            if compile_for is not None:
                return await compile_only(
                    asked, file, scratch, backend or BUILD_ONLY_BACKEND, compile_for, how, chosen or SizeSet.FULL
                )
            async with factory.local_evaluator(kind, how, chosen, indices=device_index) as evaluator:
                spoken = backend or default_backend(evaluator.device.kind)
                await evaluator.require(spoken)
                found = await evaluator.evaluate(asked, file, scratch / "build", spoken)
        assert found.verdict is not None, "only a build-only evaluation has none"
        return found.verdict

    return _outside_of_loops(lambda: asyncio.run(verdict()))


def run(
    config: RunConfig | str | Path | Mapping[str, Any],
    *,
    results: str | Path | None = None,
    problems: str | Path | None = None,
) -> Run:
    """Run a batch and load it: what `run_batch.py` does, with the same checks, prints and files.

    The same call resumes an unfinished run of the same settings. In the main thread Ctrl-C ends it as it ends the
    command.

    Args:
        config: the path of a TOML file, or a mapping, whose keys are the options of `run_batch.py` without the
            dashes before them, and `numbers` for the problems ("1-8", or [1, 4]); or the settings of another run
            (`hkbench.load_run(...).config`), which are then those of this one. Paths are relative to the working
            folder. As for the command, hkbench.toml and the environment say what `config` does not.
        results: the run's folder; a new one below results by default.
        problems: the folder of problems, or a problem's file; $KERNELBENCH_DIR or the shipped ones by default.

    Returns:
        The run, read from its folder. It is not `complete` where an error left a problem unfinished.

    Raises:
        ConfigurationError: the file is not TOML.
        UsageError: an option is unknown, or has a value that it cannot have.
        RunMismatch: the folder holds a run of other settings, or problems or prompts are not those of `config`.
        InputMissing: a file that `config` names is not there.
        Unavailable: the model service, a device or a compiler is not there.
        RunStopped: a budget is used up, or the run was interrupted; the same call resumes it.
    """
    if isinstance(config, RunConfig):
        options = _same_settings(config, problems)
    else:
        given = dict(config) if isinstance(config, Mapping) else _read_toml(Path(config))
        given |= {} if problems is None else {"problems": problems}
        options = _parser().parse_args(list(_command_line(given)))
    if results is not None:
        options.results = Path(results)
    options.display = options.display or "plain"
    _outside_of_loops(lambda: batch.run(options))
    return load_run(options.results)


class _Parser(Parser):
    def error(self, message: str) -> NoReturn:
        """Raise what the command would print."""
        raise UsageError(message)


def _parser() -> _Parser:
    parser = _Parser(prog="hkbench.run", add_help=False)
    batch.add_arguments(parser)
    return parser


def _command_line(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments of run_batch.py that say what the mapping says."""
    numbers = given.get("numbers", ())
    yield from map(str, numbers if isinstance(numbers, list | tuple) else str(numbers).split())
    for key, value in given.items():
        flag = f"--{key.replace('_', '-')}"
        if key == "numbers":
            continue
        if isinstance(value, bool):
            yield flag if value else flag.replace("--", "--no-", 1)
        else:
            for one in value if isinstance(value, list | tuple) else (value,):
                yield f"{flag}={one}"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputMissing(f"{path}: there is no such file; name a TOML file with the options of the run") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}; fix it") from None


def _same_settings(config: RunConfig, problems: str | Path | None) -> argparse.Namespace:
    """Make the options that give these settings again. Raises RunMismatch where problems or prompts are others."""
    options = _parser().parse_args([])
    for name, value in recorded_options(config, None).items():
        setattr(options, name, value)
    options.base_url = config.base_url
    options.problems = None if problems is None else Path(problems)
    numbers = [problem_number(Path(f"{name}.py")) for name in config.problems]
    options.numbers = [",".join(map(str, numbers))]
    root = problems_root(options.problems, os.environ)
    there = {one.name: one.sha256 for one in find_problems(root, config.level) if one.number in numbers}
    for name, sha256 in zip(config.problems, config.problem_hashes, strict=True):
        if there.get(name) != sha256:
            raise RunMismatch(f"{root} has no {name} as the settings know it: name the problems' folder (problems=...)")
    if load_prompts(options.prompts).sha256 != config.prompts_sha256:
        raise RunMismatch(f"the prompts in {options.prompts} are not those of the settings: run with a mapping instead")
    return options


def _code_file(code: str | Path, scratch: Path) -> Path:
    if isinstance(code, str) and "\n" in code:
        path = scratch / "candidate.py"
        path.write_text(code, encoding="utf-8")
        return path
    if not Path(code).is_file():
        raise InputMissing(f"{code}: there is no such file; name the candidate, or give its text")
    return Path(code)


def _member(kind: type[Choice], value: Choice | str) -> Choice:
    try:
        return kind(value)
    except ValueError as error:
        raise UsageError(f"{error}; `hkbench run --help` lists the values") from None


def _outside_of_loops(work: Callable[[], T]) -> T:
    """Do work that runs an event loop of its own: in another thread where this one has a loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
