"""`run_batch.py --resume RUN`: a run goes on with what it recorded, and with what the command adds to it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hkbench.categories import CategoryBook
from hkbench.cli.arguments import PROMPTS
from hkbench.cli.batch_plan import CATEGORIES, choose
from hkbench.cli.models import shown_base_url
from hkbench.cli.recorded import kept_problems
from hkbench.cli.runs import only_one_of
from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.problems import Selection, level_folder, load_problem, problems_root
from hkbench.records import JudgeSettings, Problem, RunConfig, RunSources
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunFile, read_run_file
from hkbench.store.settings import names_text

#: Options that choose among problems, and so name some that a resumed run may not have.
_CHOOSING = frozenset({"numbers", "match", "limit", "draw"})


def take_recorded(options: argparse.Namespace) -> RunFile | None:
    """The run that --resume names, whose settings take the places of options that were not given.

    `None` without --resume.

    Raises:
        UsageError: --resume with --results or --new.
        InputMissing: there is no such run.
        ConfigurationError: its run.json cannot be read.
    """
    if options.resume is None:
        return None
    for name in ("results", "new"):
        if name in options.given:
            raise UsageError(f"--resume names the run's folder: leave out --{name}")
    options.resume = only_one_of(options.resume)
    run = read_run_file(RunPaths(options.resume))
    for name, value in (_run_options(run) | _judge_options(run.config.judge)).items():
        if name not in options.given:
            setattr(options, name, value)
    if "base_url" not in options.given and shown_base_url(options) != run.config.base_url:
        options.base_url = run.config.base_url  # a password, which is not recorded, is in the environment only
    return run


def choose_resumed(options: argparse.Namespace, run: RunFile) -> Selection:
    """The run's problems, and those that the command adds.

    Raises:
        UsageError: the command names problems, and none that the run lacks.
        InputMissing: a problem's file is not found.
        RunMismatch: it has changed.
    """
    recorded = _recorded_problems(options, run)
    if not _CHOOSING & options.given:
        return Selection(tuple(recorded), ())
    chosen = choose(options)
    names = {problem.name for problem in recorded}
    added = [problem for problem in chosen.problems if problem.name not in names]
    if not added and len(chosen.problems) < len(recorded):
        raise UsageError(
            f"--resume goes on with all problems of {options.resume} ({names_text(run.config.problems)}): leave out "
            "their choice, or name problems to be added"
        )
    return Selection(tuple(sorted([*recorded, *added], key=lambda problem: problem.number)), chosen.missing)


def sources_of(
    options: argparse.Namespace, problems: tuple[Problem, ...], categories: CategoryBook | None
) -> RunSources:
    """Where the inputs of this command lie."""
    folders = dict.fromkeys(str(problem.path.absolute().parent) for problem in problems)
    book = options.categories or options.prompts / CATEGORIES
    return RunSources(
        problems=tuple(folders),
        prompts=str(options.prompts.absolute()),
        categories=str(book.absolute()) if categories is not None else None,
    )


def _run_options(run: RunFile) -> dict[str, Any]:
    """By option, the value that gives the run's settings again; those of the judge apart."""
    config, sources = run.config, run.sources
    return {
        "strategy": config.strategy,
        "samples": config.samples,
        "attempts": config.attempts,
        "rounds": None,
        "exhaust": config.exhaust,
        "start": "best" if config.from_best else None,
        "model": _named(config, config.model),
        "judge_model": _named(config, config.judge_model),
        "replay": None if config.replay is None else Path(config.replay),
        "api": config.api,
        "temperature": config.temperature,
        "max_reply_tokens": config.max_tokens,
        "reasoning_effort": config.reasoning_effort,
        "level": config.level,
        "device": "auto" if config.compiled_for is not None else config.device.value,
        "backend": config.backend.value,
        "sizes": config.sizes.value,
        "build_only": config.compiled_for is not None,
        "arch": config.compiled_for,
        "prompts": Path(sources.prompts) if sources is not None and Path(sources.prompts).is_dir() else PROMPTS,
        "problems": _first_folder(sources),
        "categories": Path(sources.categories) if sources is not None and sources.categories is not None else None,
    }


def _named(config: RunConfig, model: str | None) -> str | None:
    """The model that the run's command named; recorded replies need none."""
    return None if config.replay is not None and model == "replay" else model


def _first_folder(sources: RunSources | None) -> Path | None:
    """Where problems that are added to a run are looked for, unless the command says."""
    found = Path(sources.problems[0]) if sources is not None and sources.problems else None
    return found if found is not None and found.is_dir() else None


def _judge_options(settings: JudgeSettings) -> dict[str, Any]:
    """By option, what gives these settings; most have the name of their option."""
    same = {name: getattr(settings, name) for name in type(settings).model_fields}
    return same | {
        "track": settings.track.value,
        "rtol": [f"{dtype}={value!r}" for dtype, value in settings.rtol.items()],
        "require_isolation": settings.require_isolation.value,
        "warmup": settings.warmups,
        "no_profile": not settings.profile_slow,
        "keep_profile": None if settings.keep_profile is None else Path(settings.keep_profile),
    }


def _recorded_problems(options: argparse.Namespace, run: RunFile) -> list[Problem]:
    config = run.config
    folders = list(_folders(options, run))
    kept = {} if "problems" in options.given else kept_problems(RunPaths(options.resume), config, config.problems)
    found = [kept.get(name) or _recorded_problem(name, folders, options.resume) for name in config.problems]
    changed = [one.name for one, sha in zip(found, config.problem_hashes, strict=True) if one.sha256 != sha]
    if changed:
        raise RunMismatch(
            f"{options.resume}: the files of {names_text(changed)} in {found[0].path.parent} are not those of the run "
            "any more: name the folder that has them with --problems"
        )
    return found


def _recorded_problem(name: str, folders: list[Path], run: Path) -> Problem:
    for folder in folders:
        path = folder / f"{name}.py"
        if path.is_file():
            return load_problem(path)
    raise InputMissing(f"{run}: {name}.py is not in {', '.join(map(str, folders))}: name its folder with --problems")


def _folders(options: argparse.Namespace, run: RunFile) -> Iterator[Path]:
    """Where the files of problems may lie that the run does not keep: in the folder that is named, else where they lay,
    else where others do."""
    path = options.problems
    if "problems" in options.given and path is not None:
        yield path.parent if path.is_file() else level_folder(problems_root(path, os.environ), run.config.level)
        return
    if run.sources is not None:
        yield from map(Path, run.sources.problems)
    try:
        yield level_folder(problems_root(None, os.environ), run.config.level)
    except (InputMissing, UsageError):
        return
