"""generate_report.py: the report of a run folder, or of several side by side."""

from __future__ import annotations

import argparse
import errno
from pathlib import Path

from hkbench.cli.compare import add_force
from hkbench.cli.runs import newest_of, only_one_of
from hkbench.errors import InputMissing, UsageError
from hkbench.report.compare_text import comparison_lines
from hkbench.report.comparison import RankBy
from hkbench.report.text import render_text
from hkbench.report.write import write_comparison, write_reports
from hkbench.store.sanitize import strip_escapes

DESCRIPTION = """Write the report of a run into its folder, or of several runs side by side into the first one's.

Of one run: report.html (a page for a browser), detailed_report.txt and .json, summary.json, and the tables
summary.csv, samples.csv and usage.csv. Of several: comparison.html and comparison.json.

Works on finished, interrupted and running runs alike; the text is printed too. Of several runs each is compared with
the first, as by hkbench compare; the folders' own reports stay as they are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        type=Path,
        nargs="*",
        metavar="RESULTS",
        help="the run's folder, or a folder of runs, whose newest is taken (default: results); or several runs",
    )
    parser.add_argument("--quiet", action="store_true", help="do not print the text")
    parser.add_argument("--definitions", action="store_true", help="print what the words mean, too")
    group = parser.add_argument_group("several runs")
    group.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="the page, its data beside it as .json (default: comparison.html in the first folder)",
    )
    group.add_argument(
        "--rank-by",
        choices=[one.value for one in RankBy],
        default=RankBy.FASTER.value,
        help="faster: by the share of faster problems; sol: by how near kernels are to the least time of the device "
        "(default: faster)",
    )
    add_force(group)


def run(options: argparse.Namespace) -> int:
    """Write and print the report; errors as of `write_reports` and `write_comparison`."""
    if len(options.results) > 1:
        return _compare(options)
    if options.output is not None or options.force:
        raise UsageError("--output and --force are for several runs: the report of one lies in its folder")
    folder = newest_of(options.results[0] if options.results else None)
    try:
        report = write_reports(folder)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise InputMissing(
            f"cannot write the report into {folder} ({error.strerror}): copy the run, and name the copy; "
            "hkbench show only reads"
        ) from None
    if not options.quiet:
        print(render_text(report, definitions=options.definitions), end="")
        print(f"\nreport for a browser: {folder / 'report.html'}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    folders, ranked = [only_one_of(folder) for folder in options.results], RankBy(options.rank_by)
    found, page = write_comparison(folders, options.output, force=options.force, rank_by=ranked)
    if not options.quiet:
        for line in comparison_lines(found):
            print(strip_escapes(line).rstrip())
        print(f"\ncomparison for a browser: {page}")
    return 0
