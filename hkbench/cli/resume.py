"""`run_batch.py --resume RUN`: a run goes on with what it recorded, and with what the command adds to it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hkbench.categories import CategoryBook
from hkbench.cli.arguments import PROMPTS
from hkbench.cli.batch_plan import CATEGORIES, choose, owners_by_option
from hkbench.cli.models import shown_base_url
from hkbench.cli.recorded import kept_problems
from hkbench.cli.runs import only_one_of
from hkbench.cli.settings import options_for
from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.problems import Selection, level_folder, load_problem, problems_root
from hkbench.records import Problem, RunConfig, RunSources
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunFile, read_run_file
from hkbench.store.settings import names_text

#: Options that choose among problems, and so name some that a resumed run may not have.
_CHOOSING = frozenset({"numbers", "problem", "match", "limit", "draw"})


def take_recorded(options: argparse.Namespace) -> RunFile | None:
    """Return the run that --resume names, whose settings take the places of options that were not given.

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
    for name, value in recorded_options(run.config, run.sources).items():
        if name not in options.given:
            setattr(options, name, value)
    if "base_url" not in options.given and shown_base_url(options) != run.config.base_url:
        options.base_url = run.config.base_url  # a password, which is not recorded, is in the environment only
    return run


def choose_resumed(options: argparse.Namespace, run: RunFile) -> Selection:
    """Return the run's problems, and those that the command adds.

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
    """Return where the inputs of this command lie."""
    folders = dict.fromkeys(str(problem.path.absolute().parent) for problem in problems)
    book = options.categories or options.prompts / CATEGORIES
    return RunSources(
        problems=tuple(folders),
        prompts=str(options.prompts.absolute()),
        categories=str(book.absolute()) if categories is not None else None,
    )


def recorded_options(config: RunConfig, sources: RunSources | None) -> dict[str, Any]:
    """Map each option of run_batch.py to the value that gives these settings again."""
    same = {
        **dict.fromkeys(owners_by_option()),
        "strategy": config.strategy.name,
        "samples": config.samples,
        "attempts": config.attempts,
        **config.strategy.options,
        "model": _named(config, config.model),
        "judge_model": _named(config, config.judge_model),
        "replay": None if config.replay is None else Path(config.replay),
        "experience": config.experience,
        "hold_out": config.hold_out,
        "api": config.api,
        "temperature": config.temperature,
        "max_reply_tokens": config.max_tokens,
        "reasoning_effort": config.reasoning_effort,
        "level": config.level,
        "device": "auto" if config.compiled_for is not None else config.device.value,
        "backend": config.backend,
        "sizes": config.sizes.value,
        "build_only": config.compiled_for is not None,
        "arch": config.compiled_for,
        "prompts": Path(sources.prompts) if sources is not None and Path(sources.prompts).is_dir() else PROMPTS,
        "problems": _first_folder(sources),
        "categories": Path(sources.categories) if sources is not None and sources.categories is not None else None,
    }
    return same | options_for(config.evaluation)


def _named(config: RunConfig, model: str | None) -> str | None:
    """Return the model that the run's command named; recorded replies need none."""
    return None if config.replay is not None and model == "replay" else model


def _first_folder(sources: RunSources | None) -> Path | None:
    """Return where problems that are added to a run are looked for, unless the command says."""
    found = Path(sources.problems[0]) if sources is not None and sources.problems else None
    return found if found is not None and found.is_dir() else None


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
    """Yield folders that may hold the problems' files that the run does not keep.

    The folder that is named excludes others; else the folders where they lay come first.
    """
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
