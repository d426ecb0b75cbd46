"""hkbench audit: null controls on every problem."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hkbench.audit.records import CheckAudit, ProblemAudit
from hkbench.cli.arguments import chosen_sizes, device_kind, positive, seconds
from hkbench.engine import factory
from hkbench.errors import HkbenchError
from hkbench.problems import chosen_problems, parse_numbers
from hkbench.problems.weak import WEAK, weak_text
from hkbench.records import DeviceKind, EvaluationSettings, Problem, SizeSet
from hkbench.store.files import write_atomic
from hkbench.store.sanitize import one_line

DESCRIPTION = """Audit problems: which answers pass that were made without doing the work?

Each problem's checks, KernelBench's and hkbench's, are given null controls: zeros, the mean, an earlier output, an
input, half of the data, parameters left out. A problem is weak where one of them passes.
Exit code 0, whatever is found."""

Outcome = ProblemAudit | HkbenchError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ranges", nargs="*", metavar="RANGE", help="numbers of problems: 7 or 1-20 (default: all)")
    parser.add_argument("--level", type=positive, metavar="N", help="level of the problems (default: 1)")
    parser.add_argument("--problems", type=Path, metavar="DIR", help="folder of problems (default: as hkbench run)")
    parser.add_argument("--device", choices=["auto", *(kind.value for kind in DeviceKind.known())], default="auto")
    parser.add_argument(
        "--sizes",
        choices=[sizes.value for sizes in SizeSet],
        help="cpu, emulated: a problem without smaller sizes is scaled down (default: cpu on a CPU, else full)",
    )
    parser.add_argument("--trials", type=positive, default=5, metavar="N", help="trials of each check (default: 5)")
    parser.add_argument(
        "--limit-seconds", type=seconds, default=300.0, metavar="S", help="limit of one problem (default: 300)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was found")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--update", action="store_true", help="record the result in hkbench/problems/weak.json")


def run(options: argparse.Namespace) -> int:
    """Print a line a problem as it is done, then the totals."""
    numbers = [one for text in options.ranges for one in parse_numbers([text])]
    problems = chosen_problems(options.problems, os.environ, level=options.level, numbers=numbers).problems
    outcomes = asyncio.run(_audit(options, problems))
    audits = [outcome for outcome in outcomes if isinstance(outcome, ProblemAudit)]
    print(totals(problems, outcomes))
    if options.json is not None:
        write_atomic(options.json, json_text(problems, outcomes))
    if options.markdown is not None:
        write_atomic(options.markdown, markdown(problems, outcomes))
    if options.update:
        write_atomic(WEAK, weak_text({audit.sha256: audit.hkbench.null for audit in audits}))
    return 0


async def _audit(options: argparse.Namespace, problems: Sequence[Problem]) -> list[Outcome]:
    settings = EvaluationSettings(trials=options.trials, evaluations_per_gpu=1)  # it takes what memory there is

    async with factory.local_evaluator(device_kind(options), settings, chosen_sizes(options)) as evaluator:

        async def one(problem: Problem) -> Outcome:
            outcome: Outcome
            try:
                outcome = await evaluator.audit_problem(problem, options.limit_seconds)
            except HkbenchError as error:  # of this problem; the others are audited all the same
                outcome = error
            print(line(problem, outcome), flush=True)
            return outcome

        print(f"{'problem':44}  {'KernelBench':26}  hkbench", file=sys.stdout)
        return list(await asyncio.gather(*map(one, problems)))


def line(problem: Problem, outcome: Outcome) -> str:
    """Return one problem for a terminal."""
    if isinstance(outcome, HkbenchError):
        return f"{problem.name:44.44}  not run: {one_line(str(outcome), 160)}"
    return f"{problem.name:44.44}  {_weakness(outcome.kernelbench):26}  {_weakness(outcome.hkbench)}"


def _weakness(check: CheckAudit) -> str:
    if not check.null:
        return "holds"
    more = f" and {len(check.null) - 1} more" if len(check.null) > 1 else ""
    return f"WEAK: {check.null[0]}{more}"


def totals(problems: Sequence[Problem], outcomes: Sequence[Outcome]) -> str:
    audits = [outcome for outcome in outcomes if isinstance(outcome, ProblemAudit)]
    theirs = sum(bool(audit.kernelbench.null) for audit in audits)
    ours = sum(bool(audit.hkbench.null) for audit in audits)
    missing = len(problems) - len(audits)
    return (
        f"{len(audits)} problems audited, {missing} not run; weak under KernelBench's check: {theirs}, "
        f"under hkbench's: {ours}"
    )


def json_text(problems: Sequence[Problem], outcomes: Sequence[Outcome]) -> str:
    audits = [outcome.model_dump(mode="json") for outcome in outcomes if isinstance(outcome, ProblemAudit)]
    not_run = {
        problem.name: str(outcome)
        for problem, outcome in zip(problems, outcomes, strict=True)
        if isinstance(outcome, HkbenchError)
    }
    return json.dumps({"audits": audits, "not_run": not_run}, indent=1) + "\n"


def markdown(problems: Sequence[Problem], outcomes: Sequence[Outcome]) -> str:
    """Return a table: number, name, what passes under each check, and the close formulas that pass ours."""
    lines = ["| # | problem | passes KernelBench's check | passes hkbench's | close formulas that pass hkbench's |"]
    lines.append("| ---: | --- | --- | --- | --- |")
    for problem, outcome in zip(problems, outcomes, strict=True):
        if isinstance(outcome, ProblemAudit):
            cells = [
                ", ".join(x) or "-" for x in (outcome.kernelbench.null, outcome.hkbench.null, outcome.hkbench.close)
            ]
        else:
            cells = [f"not run: {one_line(str(outcome), 200)}", "", ""]
        lines.append("| " + " | ".join([str(problem.number), problem.name, *cells]) + " |")
    return "\n".join([*lines, "", totals(problems, outcomes)]) + "\n"
