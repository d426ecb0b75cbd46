"""monitor.py: watch a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from hkbench.cli.arguments import seconds
from hkbench.cli.runs import runs_of

DESCRIPTION = """Watch a run folder, live or finished: progress, what is being built and measured, failures.

Only reads the folder, so it can be started and stopped at any time, from anywhere. On a terminal it is a screen with
keys (`?` lists them); elsewhere it prints one frame."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        type=Path,
        nargs="*",
        metavar="RESULTS",
        help="run folders, or folders of runs, which are shown as a table (default: the newest run below results)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--once", action="store_true", help="print one plain frame of each and end")
    form.add_argument("--json", action="store_true", help="print the state of each as JSON, one a line, and end")
    parser.add_argument("--refresh", type=seconds, default=1.0, metavar="S", help="seconds between looks (default: 1)")


def run(options: argparse.Namespace) -> int:
    from rich.console import Console  # --help does without, in half of the time

    from hkbench.monitor import run_monitor
    from hkbench.store.layout import RunPaths

    run_monitor(
        [RunPaths(folder) for folder in runs_of(options.results)],
        once=options.once,
        as_json=options.json,
        refresh=options.refresh,
        console=Console(),
    )
    return 0
