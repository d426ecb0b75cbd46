"""hkbench classify: which category each problem belongs to, and why."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hkbench.categories import CategoryBook, Classification, load_categories
from hkbench.cli.arguments import PROMPTS, add_numbers, chosen_sizes, device_kind, positive, seconds
from hkbench.engine import LocalEvaluator, factory
from hkbench.errors import HkbenchError
from hkbench.headline import plural
from hkbench.problems import chosen_problems, parse_numbers
from hkbench.records import DeviceKind, EvaluationSettings, GraphFacts, Problem, ProblemFacts, Record, SizeSet
from hkbench.store.files import write_atomic
from hkbench.store.sanitize import one_line, strip_escapes

DESCRIPTION = """Classify problems: which category of categories.toml each belongs to, and why.

What decides is what one pass of the reference contains, at the sizes in force; nothing is measured. A reference that
cannot be traced in time is classified by its name. Exit code 0, whatever is found."""

NOTES = (
    "by: what decided, the traced operators (graph), the name, or neither (generic)",
    "arithmetic intensity: operations of one pass / bytes of inputs, parameters and outputs",
    "ridge point: the intensity above which the device's peak rate and not its bandwidth is the limit",
)
MAX_SHOWN = 2  #: products, convolutions and reductions of a problem, each


class Row(Record):
    """One problem, as --json prints it."""

    problem: str
    level: int | None
    sizes: SizeSet
    classification: Classification
    graph: GraphFacts | None
    error: str | None = None  #: why its code could not be run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_numbers(parser, "all where they are left out")
    parser.add_argument("--problems", type=Path, metavar="DIR", help="folder of problems (default: as hkbench run)")
    parser.add_argument("--level", type=positive, metavar="N", help="level of the problems (default: 1)")
    parser.add_argument(
        "--categories",
        type=Path,
        default=PROMPTS / "categories.toml",
        metavar="FILE",
        help="the categories (default: the project's prompts/categories.toml)",
    )
    parser.add_argument("--device", choices=["auto", *(kind.value for kind in DeviceKind.known())], default="auto")
    parser.add_argument(
        "--sizes",
        choices=[sizes.value for sizes in SizeSet],
        help="which sizes of the problems (default: cpu on a CPU, emulated on an emulated GPU, else full)",
    )
    parser.add_argument(
        "--limit-seconds",
        type=seconds,
        default=60.0,
        metavar="S",
        help="limit of one problem's own code, after which its name has to do (default: 60)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with all that was traced")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")


def run(options: argparse.Namespace) -> int:
    """Print a line a problem, the doubtful ones with the reason, then how many of each category."""
    book = load_categories(options.categories)
    numbers = parse_numbers(options.numbers)
    problems = chosen_problems(options.problems, os.environ, level=options.level, numbers=numbers).problems
    rows = asyncio.run(_rows(options, book, problems))
    if options.json:
        print(json.dumps([row.model_dump(mode="json") for row in rows], indent=1))
    else:
        print(strip_escapes("\n".join(text(rows))))
    if options.markdown is not None:
        write_atomic(options.markdown, markdown(rows))
    return 0


async def _rows(options: argparse.Namespace, book: CategoryBook, problems: Sequence[Problem]) -> list[Row]:
    at_once = asyncio.Semaphore(os.cpu_count() or 1)
    screen = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        traced = progress.add_task("tracing references", total=len(problems))
        async with factory.local_evaluator(
            device_kind(options), EvaluationSettings(), chosen_sizes(options)
        ) as evaluator:
            return await _classified(options, book, problems, evaluator, at_once, lambda: progress.advance(traced))


async def _classified(
    options: argparse.Namespace,
    book: CategoryBook,
    problems: Sequence[Problem],
    evaluator: LocalEvaluator,
    at_once: asyncio.Semaphore,
    done: Callable[[], None],
) -> list[Row]:
    """Return a row a problem, in their order; `done` is called after each."""

    async def one(problem: Problem) -> Row:
        error: str | None = None
        async with at_once:
            try:
                facts = await evaluator.problem_facts(problem, options.limit_seconds)
            except HkbenchError as failed:  # of this problem; the others are classified all the same
                error = one_line(str(failed), 300)
                facts = ProblemFacts(
                    sizes=evaluator.sizes, inputs=(), init_inputs=(), outputs=(), parameters=(), graph=None
                )
        done()
        return Row(
            problem=problem.name,
            level=problem.level,
            sizes=facts.sizes,
            classification=book.classify(problem, facts),
            graph=facts.graph,
            error=error,
        )

    return list(await asyncio.gather(*map(one, problems)))


def text(rows: Sequence[Row]) -> list[str]:
    """Return the table for a terminal."""
    width = max(len("problem"), *(len(row.problem) for row in rows))
    lines = [f"{'problem':{width}}  {'category':17}  {'by':7}  operators; arithmetic intensity; sizes"]
    for row in rows:
        found = row.classification
        lines.append(f"{row.problem:{width}}  {found.category:17}  {found.by:7}  {_why(row)}".rstrip())
        lines += [f"{'':{width}}  doubtful: {reason}" for reason in _doubts(row)]
    return [*lines, "", totals(rows), *NOTES]


def totals(rows: Sequence[Row]) -> str:
    counts = Counter(row.classification.category for row in rows)
    doubtful = sum(row.classification.doubtful is not None for row in rows)
    said = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return f"{plural(len(rows), 'problem')} at {rows[0].sizes} sizes: {said}; {doubtful} doubtful"


def markdown(rows: Sequence[Row]) -> str:
    """Return the same as a table of Markdown."""
    header = ("problem", "category", "by", "operators; arithmetic intensity; sizes", "doubtful")
    lines = [f"| {' | '.join(header)} |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        cells = (row.problem, row.classification.category, row.classification.by, _why(row), "; ".join(_doubts(row)))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, "", totals(rows)]) + "\n"


def _why(row: Row) -> str:
    sizes = attributes(row.graph) if row.graph is not None else ""
    return f"{row.classification.why}; {sizes}" if sizes else row.classification.why


def _doubts(row: Row) -> list[str]:
    return [reason for reason in (row.classification.doubtful, row.error) if reason is not None]


def attributes(graph: GraphFacts) -> str:
    """Return the first kernels of convolutions, sizes of products, windows and lengths of reductions."""
    said = []
    for one in graph.convolutions[:MAX_SHOWN]:
        groups = f" groups {one.groups}" if one.groups > 1 else ""
        stride = f" stride {_by(one.strides)}" if set(one.strides) != {1} else ""
        transposed = " transposed" if one.transposed else ""
        channels = f"{one.in_channels} to {one.out_channels} channels"
        said.append(f"kernel {_by(one.kernel)}{stride}{groups}{transposed}, {channels}")
    for product in graph.products[:MAX_SHOWN]:
        batch = f"{product.batch} x " if product.batch > 1 else ""
        said.append(f"{batch}M={product.m} N={product.n} K={product.k}")
    said += [f"window {_by(window)}" for window in graph.pools[:MAX_SHOWN]]
    if graph.reductions:
        said.append(f"reduces {', '.join(map(str, graph.reductions[:MAX_SHOWN]))} elements")
    return "; ".join(said)


def _by(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))
