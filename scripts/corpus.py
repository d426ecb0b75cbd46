#!/usr/bin/env python3
"""Run the corpus of attacks and honest candidates and print the table: case, caught by, verdict, seconds, totals."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import corpus  # noqa: E402

MAX_MESSAGE_LENGTH = 300
DEVICES = ["cpu", "cuda", "emulated:gfx942", "emulated:gfx950"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Exit code: 0 all as expected, 1 not.")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="run the cases for it (default: cpu)")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose folder/name matches, as `attacks/t`")
    parser.add_argument("--via", choices=["engine", "eval"], default="engine", help="one evaluator, or eval.py each")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="cases under way at once (default: 2)")
    parser.add_argument("--again", action="store_true", help="evaluate what was not as expected twice more, alone")
    parser.add_argument("--json", type=Path, metavar="F", help="write the rows as JSON")
    parser.add_argument("--markdown", type=Path, metavar="F", help="write the table as Markdown")
    arguments, options = parser.parse_known_args()
    cases = [case for case in corpus.load_cases(only=arguments.only) if case.runs_on(arguments.device)]
    if not cases:
        parser.error(f"no case for {arguments.device} matches {arguments.only!r}")
    began = time.monotonic()
    work = corpus.run(
        cases, arguments.device, options, arguments.jobs, arguments.via, on_row=_print_row, again=arguments.again
    )
    rows = asyncio.run(work)
    _print_totals(rows, time.monotonic() - began)
    if arguments.json:
        arguments.json.write_text(json.dumps(corpus.as_json(rows), indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(corpus.markdown(rows))
    return 0 if all(row.passed for row in rows) else 1


def _print_row(row: corpus.Row) -> None:
    caught = f"{row.kind} at {row.stage}" if row.kind else ""
    print(f"{row.case:34} {row.status:10} {caught:28} {row.seconds:6.1f} s  {row.word}", flush=True)
    if row.findings:
        print(f"    findings: {', '.join(row.findings)}")
    if not row.passed:
        print(f"    expected {row.expected}: {' '.join(row.message.split())[:MAX_MESSAGE_LENGTH]}")


def _print_totals(rows: list[corpus.Row], seconds: float) -> None:
    print(f"\n{'class':14} {'cases':>6} {'as expected':>12} {'succeeded or hurt':>18}")
    for group, every, good, loud in corpus.totals(rows):
        print(f"{group:14} {every:6} {good:12} {loud:18}")
    print(f"{sum(row.passed for row in rows)} of {len(rows)} as expected, in {seconds:.0f} s")
    worst = [row.case for row in rows if row.word == "ATTACK SUCCEEDED"]
    if worst:
        print(f"ATTACKS THAT SUCCEEDED: {', '.join(worst)}")


if __name__ == "__main__":
    sys.exit(main())
