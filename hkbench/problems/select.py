"""Find the problems of a level."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hkbench.errors import InputMissing, ProblemError, UsageError
from hkbench.problems.load import load_problem, problem_number
from hkbench.records import Problem
from hkbench.shipped import shipped_folder

SHIPPED = shipped_folder("problems")  #: the forty problems that come with hkbench

#: The level that is meant when none is named and the folder has levels.
DEFAULT_LEVEL = 1

_LEVEL_FOLDER = re.compile(r"level(\d+)")


def problems_root(option: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the folder to look in: `option` (--problems), else KERNELBENCH_DIR, else the shipped problems.

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
        raise InputMissing(f"{root} ({origin}) is not a folder; name the folder that holds the problems")
    return root


def problem_set(problem: Problem) -> str:
    """Return the collection of a problem: "hkbench" (shipped), "KernelBench" (a checkout's), else the folder's name."""
    path = problem.path.resolve()
    if path.is_relative_to(SHIPPED.resolve()):
        return "hkbench"
    folder = path.parent.parent if _LEVEL_FOLDER.fullmatch(path.parent.name) else path.parent
    if any(part.lower() == "kernelbench" for part in folder.parts):
        return "KernelBench"
    return folder.name


def find_problems(
    root: Path, level: int | None = None, first: int | None = None, last: int | None = None
) -> list[Problem]:
    """Return the problems of a level below `root`, by number; only those numbered `first`..`last` are read.

    `root` holds `levelN` folders, or a `KernelBench` folder which does (a checkout of KernelBench), or
    problem files itself. Files whose name does not begin with a number are passed over. `level` `None`
    means `DEFAULT_LEVEL` where there are level folders.

    Raises `InputMissing` when there is no such level or no problem in it, `UsageError` when `root` is the
    folder of another level, `ProblemError` for a number that two files share or a file that cannot be used.
    """
    files = problem_files(level_folder(root, level))
    return [
        load_problem(files[number])
        for number in sorted(files)
        if (first is None or number >= first) and (last is None or number <= last)
    ]


def problem_files(folder: Path) -> dict[int, Path]:
    """Return the problem files of a folder by number, none of them read; errors as of `find_problems`."""
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
    return numbered


def level_folder(root: Path, level: int | None) -> Path:
    """Return the folder that holds the problem files of `level`; see `find_problems`."""
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
