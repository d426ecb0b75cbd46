"""hkbench compare: two runs side by side, or several against the first."""

from __future__ import annotations

import argparse
from pathlib import Path

from hkbench.cli.runs import only_one_of
from hkbench.report.compare_text import comparison_lines
from hkbench.report.write import json_text, read_comparison
from hkbench.store.sanitize import strip_escapes

WORSE = 1

DESCRIPTION = """Compare two runs over the problems that both finished: is B better than A, or is the difference chance?

Each problem counts by its best correct sample. Intervals are 95 %, by a bootstrap over problems; fewer than six
problems that differ settle nothing. Of more than two runs each is compared with the first. Runs on other devices, at
other sizes, or with an experience where the other has none are refused. Exit code 0, whatever is found, unless
--fail-if-worse is given. generate_report.py A B makes a page of the same."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A", help="a run folder")
    parser.add_argument("b", type=Path, nargs="+", metavar="B", help="the run folders to compare with it")
    parser.add_argument(
        "--fail-if-worse",
        action="store_true",
        help="exit 1 when B (of several: one of them) solves fewer problems than A, or has slower kernels, by more "
        "than its interval",
    )
    add_force(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, as generate_report.py writes it")


def add_force(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--force",
        action="store_true",
        help="compare runs on other devices, at other sizes, with and without an experience too",
    )


def run(options: argparse.Namespace) -> int:
    """Print the comparison; 1 with --fail-if-worse where a run is worse than the first, else 0."""
    found = read_comparison([only_one_of(folder) for folder in (options.a, *options.b)], force=options.force)
    if options.json:
        print(json_text(found), end="")
    else:
        for line in comparison_lines(found):
            print(strip_escapes(line).rstrip())
    return WORSE if options.fail_if_worse and found.worse else 0
