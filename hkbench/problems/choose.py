"""From what a user names to the problems of a run: a file, a folder, numbers, the first few, a random draw."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hkbench.errors import InputMissing, UsageError
from hkbench.problems.load import load_problem
from hkbench.problems.numbers import within, without
from hkbench.problems.select import level_folder, problem_files, problems_root
from hkbench.records import Problem
from hkbench.store.ranges import Range, numbers_text


@dataclass(frozen=True)
class Selection:
    """The chosen problems in order of number, and the numbers that were named and have no file."""

    problems: tuple[Problem, ...]
    missing: tuple[Range, ...]


def chosen_problems(
    path: Path | None,
    environment: Mapping[str, str],
    *,
    level: int | None = None,
    numbers: Sequence[Range] = (),
    match: str | None = None,
    limit: int | None = None,
    draw: int | None = None,
    seed: int = 0,
) -> Selection:
    """Return the problems of a run, by number; only their files are read.

    `path` is a folder (see `find_problems`) or one problem's file, which nothing else narrows. Without `numbers` all
    are meant. The regular expression `match` may match anywhere in a name. `limit` takes the first ones that fit,
    `draw` as many at random: the same seed draws the same ones of the same problems. What counts as missing has nothing
    to do with these three.

    Raises what `find_problems` does; InputMissing where no problem has one of the numbers; UsageError where a file is
    given with numbers, for a `match` that is not a regular expression or leaves nothing, for `limit` with `draw`, and
    when there are fewer problems than `draw`.
    """
    if limit is not None and draw is not None:
        raise UsageError("--limit takes the first problems and --draw any: give one of them")
    if path is not None and path.is_file():
        if numbers or (level, match, limit, draw) != (None,) * 4:
            raise UsageError(f"--problems names one problem's file, {path}: leave out what chooses among several")
        return Selection((load_problem(path),), ())
    pattern = _compiled(match)
    folder = level_folder(problems_root(path, environment), level)
    files = problem_files(folder)
    inside = {number: files[number] for number in sorted(files) if within(numbers, number)}
    there = numbers_text((number, number) for number in files)
    if not inside:
        raise InputMissing(f"no problem has number {numbers_text(numbers)}: {folder} has {there}")
    chosen = [path for path in inside.values() if pattern is None or pattern.search(path.stem)]
    if not chosen:
        example = next(iter(inside.values())).stem
        among = numbers_text((number, number) for number in inside)
        raise UsageError(f"no problem of {among} matches --match {match!r}; names look like {example!r}")
    if draw is not None:
        if draw > len(chosen):
            raise UsageError(f"--draw {draw}: there are only {len(chosen)} such problems")
        chosen = sorted(random.Random(seed).sample(chosen, draw), key=chosen.index)
    return Selection(tuple(load_problem(path) for path in chosen[:limit]), without(numbers, files))


def _compiled(match: str | None) -> re.Pattern[str] | None:
    if match is None:
        return None
    try:
        return re.compile(match)
    except re.error as error:
        raise UsageError(f"--match {match!r} is not a valid regular expression: {error}; fix it") from error
