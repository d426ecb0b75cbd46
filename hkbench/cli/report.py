"""generate_report.py: the report of a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from hkbench.report import write_reports

DESCRIPTION = """Write summary.json, summary.csv, detailed_report.json, detailed_report.txt and report.html
(a page for a browser) into a run folder.

Works on finished, interrupted and running runs alike; the text is printed too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the run folder")
    parser.add_argument("--quiet", action="store_true", help="do not print the text")


def run(options: argparse.Namespace) -> int:
    write_reports(options.results)
    if not options.quiet:
        print((options.results / "detailed_report.txt").read_text(encoding="utf-8"), end="")
        print(f"\nreport for a browser: {options.results / 'report.html'}")
    return 0
