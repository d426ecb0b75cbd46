"""hkbench rerun: evaluate recorded candidates of a run again."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from hkbench.batch.rerun import RerunResult, rerun
from hkbench.cli.recorded import (
    FIELDS,
    add_copy,
    evaluator_of,
    matching,
    name_of,
    new_folder,
    open_copy,
    parse_where,
    print_end,
    problems_of,
    same_device,
    tell,
)
from hkbench.cli.runs import only_one_of
from hkbench.errors import InputMissing
from hkbench.records import Problem, SampleKey
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView, read_run

DESCRIPTION = """Evaluate samples of a run again, from their recorded code: no model is called.

RUN stays as it is. NEW becomes a copy of it in which the matching samples have the verdict of today, each with a
warning that says what the verdict was before; reports are written anew. The evaluator's settings are those of RUN,
and the device has to be the same. Prompts of later attempts stay what they were. The same command again goes on where
an interrupted one ended."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RUN", help="the run folder, finished or interrupted")
    parser.add_argument(
        "--where",
        action="append",
        required=True,
        metavar="FIELD=VALUE",
        help=f"which samples, as kind=timeout,crash; fields: {', '.join(FIELDS)}; all of several have to hold",
    )
    add_copy(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the samples and evaluate nothing")


def run(options: argparse.Namespace) -> int:
    """Print a line a sample. 0 where all were judged, else the code of the first failure of the machine."""
    view = read_run(RunPaths(only_one_of(options.results)))
    keys = matching(view, parse_where(options.where, view.config.problems))
    if not keys:
        raise InputMissing(f"no judged sample of {options.results} with code matches {' '.join(options.where)}")
    if options.dry_run:
        print("\n".join(name_of(key) for key in keys))
        return 0
    target = new_folder(options.target, view, view.config)
    problems = problems_of(options.problems, view, {key.problem for key in keys})
    found = asyncio.run(_rerun(target, view, keys, problems))
    return print_end(target, found)


async def _rerun(target: Path, view: RunView, keys: Sequence[SampleKey], problems: dict[str, Problem]) -> RerunResult:
    config = view.config
    async with evaluator_of(config) as evaluator:
        same_device(evaluator, view)
        await evaluator.require(config.backend)
        with open_copy(view, target, config) as recorder:
            return await rerun(view, recorder, keys, problems, evaluator, tell)
