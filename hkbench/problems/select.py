"""Find the problems of a level, and choose among them by number and name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hkbench.errors import InputMissing, ProblemError, UsageError
from hkbench.problems.load import load_problem, problem_number
from hkbench.records import Problem

#: The forty problems that come with hkbench, beside the package in a checkout.
SHIPPED = Path(__file__).resolve().parents[2] / "problems"

#: The level that is meant when none is named and the folder has levels.
DEFAULT_LEVEL = 1

_LEVEL_FOLDER = re.compile(r"level(\d+)")


@dataclass(frozen=True)
class Selection:
    """The chosen problems in order of number, and the numbers of the range for which there is no file."""

    problems: tuple[Problem, ...]
    missing: tuple[int, ...]


def problems_root(option: Path | None, environment: Mapping[str, str]) -> Path:
    """The folder to look in: `option` (--problems), else KERNELBENCH_DIR, else the shipped problems.

    Raises `InputMissing` when that is not a folder; an empty KERNELBENCH_DIR counts as unset.
    """
    named = environment.get("KERNELBENCH_DIR", "")
    if option is not None:
        root, origin = option, "--problems"
    elif named:
        root, origin = Path(named), "KERNELBENCH_DIR"
    else:
        root, origin = SHIPPED, "the shipped problems"
    if not root.is_dir():
        raise InputMissing(f"{root} ({origin}) is not a folder; name the problems' folder with --problems")
    return root


def find_problems(
    root: Path, level: int | None = None, first: int | None = None, last: int | None = None
) -> list[Problem]:
    """The problems of a level below `root`, by number; only those numbered `first`..`last` are read.

    `root` holds `levelN` folders, or a `KernelBench` folder which does (a checkout of KernelBench), or
    problem files itself. Files whose name does not begin with a number are passed over. `level` `None`
    means `DEFAULT_LEVEL` where there are level folders.

    Raises `InputMissing` when there is no such level or no problem in it, `UsageError` when `root` is the
    folder of another level, `ProblemError` for a number that two files share or a file that cannot be used.
    """
    folder = level_folder(root, level)
    numbered: dict[int, Path] = {}
    for path in sorted(folder.glob("*.py")):
        number = problem_number(path)
        if number is None:
            continue
        if number in numbered:
            raise ProblemError(
                f"{folder}: {numbered[number].name} and {path.name} are both number {number}; rename one"
            )
        numbered[number] = path
    if not numbered:
        raise InputMissing(f"{folder}: holds no problem file (such as 1_Name.py); name another folder")
    return [
        load_problem(numbered[number])
        for number in sorted(numbered)
        if (first is None or number >= first) and (last is None or number <= last)
    ]


def level_folder(root: Path, level: int | None) -> Path:
    """The folder that holds the problem files of `level`; see `find_problems`."""
    if not root.is_dir():
        raise InputMissing(f"{root}: is not a folder; name the folder that holds the problems")
    for base in (root, root / "KernelBench"):
        levels = _levels(base)
        if levels:
            wanted = DEFAULT_LEVEL if level is None else level
            if wanted not in levels:
                present = ", ".join(str(number) for number in sorted(levels))
                raise InputMissing(f"{base}: has no level{wanted}; choose --level from {present}")
            return levels[wanted]
    own = _LEVEL_FOLDER.fullmatch(root.absolute().name)
    if own and level is not None and int(own.group(1)) != level:
        raise UsageError(
            f"{root} holds level {own.group(1)}, but level {level} was asked for; name its parent folder, "
            f"or give --level {own.group(1)}"
        )
    return root


def _levels(base: Path) -> dict[int, Path]:
    if not base.is_dir():
        return {}
    found = ((_LEVEL_FOLDER.fullmatch(path.name), path) for path in base.iterdir() if path.is_dir())
    return {int(name.group(1)): path for name, path in found if name}


def select(
    problems: Sequence[Problem],
    first: int | None = None,
    last: int | None = None,
    match: str | None = None,
    limit: int | None = None,
) -> Selection:
    """Choose the problems `first`..`last` whose name matches the regex `match`, at most `limit` of them.

    `match` may match anywhere in the name. `missing` lists the numbers from `first` to `last` that no
    problem has, whatever `match` and `limit` say; without both ends nothing counts as missing.

    Raises `UsageError` for an impossible range, limit or regex and when `match` leaves nothing,
    `InputMissing` when no problem has a number in the range, `ProblemError` for a number that occurs twice.
    """
    _check_range(first, last, limit)
    pattern = _compile(match)
    by_number = _by_number(problems)
    inside = [
        number
        for number in sorted(by_number)
        if (first is None or number >= first) and (last is None or number <= last)
    ]
    if not inside:
        have = f"numbers {min(by_number)} to {max(by_number)}" if by_number else "no problem at all"
        raise InputMissing(f"no problem from {_end(first)} to {_end(last)}; the folder has {have}")
    chosen = [by_number[number] for number in inside if pattern is None or pattern.search(by_number[number].name)]
    if not chosen:
        raise UsageError(
            f"no problem from {inside[0]} to {inside[-1]} matches {match!r}; names look like "
            f"{by_number[inside[0]].name!r}"
        )
    missing: tuple[int, ...] = ()
    if first is not None and last is not None:
        missing = tuple(sorted(set(range(first, last + 1)).difference(inside)))
    return Selection(tuple(chosen[:limit]), missing)


def _check_range(first: int | None, last: int | None, limit: int | None) -> None:
    if first is not None and last is not None and first > last:
        raise UsageError(f"the range {first} to {last} is empty; give the smaller number first")
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} leaves nothing to do; give at least 1")


def _compile(match: str | None) -> re.Pattern[str] | None:
    if match is None:
        return None
    try:
        return re.compile(match)
    except re.error as error:
        raise UsageError(f"--match {match!r} is not a regular expression: {error}; correct it") from error


def _by_number(problems: Sequence[Problem]) -> dict[int, Problem]:
    by_number: dict[int, Problem] = {}
    for problem in problems:
        if problem.number in by_number:
            raise ProblemError(
                f"{by_number[problem.number].path} and {problem.path} are both number {problem.number}; "
                "leave one of them out"
            )
        by_number[problem.number] = problem
    return by_number


def _end(number: int | None) -> str:
    return "any" if number is None else str(number)
