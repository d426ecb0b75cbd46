"""From what a user names to the problems of a run: a file, a folder, a range, the first few, a random draw."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from hkbench.errors import UsageError
from hkbench.problems.load import load_problem
from hkbench.problems.select import Selection, find_problems, problems_root, select


def chosen_problems(
    path: Path | None,
    environment: Mapping[str, str],
    *,
    level: int | None = None,
    first: int | None = None,
    last: int | None = None,
    match: str | None = None,
    limit: int | None = None,
    draw: int | None = None,
    seed: int = 0,
) -> Selection:
    """The problems of a run, by number.

    `path` is a folder (see `find_problems`) or one problem's file, which nothing else narrows. `limit` takes the first
    ones that fit, `draw` as many at random: the same seed draws the same ones of the same problems.

    Raises what `find_problems` and `select` do; UsageError where a file is given with a range, for `limit` with `draw`,
    and when there are fewer problems than `draw`.
    """
    if limit is not None and draw is not None:
        raise UsageError("--limit takes the first problems and --draw any: give one of them")
    if path is not None and path.is_file():
        if (first, last, level, match, limit, draw) != (None,) * 6:
            raise UsageError(f"--problems names one problem's file, {path}: leave out what chooses among several")
        return Selection((load_problem(path),), ())
    found = find_problems(problems_root(path, environment), level, first, last)
    chosen = select(found, first, last, match, limit)
    if draw is None:
        return chosen
    if draw > len(chosen.problems):
        raise UsageError(f"--draw {draw}: there are only {len(chosen.problems)} such problems")
    drawn = random.Random(seed).sample(chosen.problems, draw)
    return Selection(tuple(sorted(drawn, key=lambda problem: problem.number)), chosen.missing)
