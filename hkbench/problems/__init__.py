"""Problems in KernelBench's format: load and choose them. Nothing here runs one or imports torch."""

from hkbench.problems.choose import Selection, chosen_problems
from hkbench.problems.load import REQUIRED, load_problem, problem_number
from hkbench.problems.numbers import parse_numbers
from hkbench.problems.select import (
    DEFAULT_LEVEL,
    SHIPPED,
    find_problems,
    level_folder,
    problem_set,
    problems_root,
)
from hkbench.problems.sizes import apply_sizes, constants_in_force
from hkbench.store.ranges import Range, numbers_text

__all__ = [
    "chosen_problems",
    "Range",
    "numbers_text",
    "parse_numbers",
    "REQUIRED",
    "load_problem",
    "problem_number",
    "DEFAULT_LEVEL",
    "SHIPPED",
    "Selection",
    "find_problems",
    "level_folder",
    "problem_set",
    "problems_root",
    "apply_sizes",
    "constants_in_force",
]
