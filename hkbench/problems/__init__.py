"""Problems in KernelBench's format: load and choose them. Nothing here runs one or imports torch."""

from hkbench.problems.choose import chosen_problems
from hkbench.problems.load import REQUIRED, load_problem, problem_number
from hkbench.problems.select import (
    DEFAULT_LEVEL,
    SHIPPED,
    Selection,
    find_problems,
    level_folder,
    problems_root,
    select,
)
from hkbench.problems.sizes import apply_sizes

__all__ = [
    "chosen_problems",
    "REQUIRED",
    "load_problem",
    "problem_number",
    "DEFAULT_LEVEL",
    "SHIPPED",
    "Selection",
    "find_problems",
    "level_folder",
    "problems_root",
    "select",
    "apply_sizes",
]
