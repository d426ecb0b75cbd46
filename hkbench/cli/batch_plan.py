"""What run_batch.py is asked to do: which problems, by which strategy, in how many steps."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from hkbench.batch import RunPlan, make_plan
from hkbench.batch.plan import DEFAULT_STRATEGY
from hkbench.categories import CategoryBook, load_categories
from hkbench.cli.arguments import add_numbers, positive, whole
from hkbench.errors import ReplayMissing, UsageError
from hkbench.headline import plural
from hkbench.lab import Plan
from hkbench.llm.replay import ReplayClient
from hkbench.problems import Selection, chosen_problems, numbers_text, parse_numbers
from hkbench.prompts import PromptBook
from hkbench.records import Backend
from hkbench.store.settings import names_text
from hkbench.strategies import STRATEGIES

CATEGORIES = "categories.toml"


def add_choice(parser: argparse.ArgumentParser) -> None:
    add_numbers(parser, "with --problems they may be left out")
    parser.add_argument("--level", type=positive, metavar="N", help="level of the problems (default: 1)")
    parser.add_argument(
        "--problems",
        type=Path,
        metavar="PATH",
        help="folder of problems, or one problem's file (default: $KERNELBENCH_DIR, else the shipped ones)",
    )
    parser.add_argument("--match", metavar="REGEX", help="only problems whose name matches")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N of those")
    parser.add_argument("--draw", type=positive, metavar="N", help="only N of those, drawn at random by --draw-seed")
    parser.add_argument(
        "--draw-seed", type=whole, metavar="S", default=0, help="the same seed draws the same (default: 0)"
    )


def add_strategy(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("strategy")
    group.add_argument(
        "--strategy",
        choices=list(STRATEGIES),
        default=DEFAULT_STRATEGY,
        help="reflect: attempts, each told of the best sample before it; judge: rounds, each told what a second model "
        f"says of the last kernel; staged: the stages of the problem's category (default: {DEFAULT_STRATEGY}; "
        "docs/strategies.md)",
    )
    group.add_argument(
        "--samples",
        type=positive,
        metavar="N",
        help="generations of each attempt (default: $NUM_SAMPLES, else as many as --replay has, else "
        f"{_defaults('samples')})",
    )
    group.add_argument(
        "--attempts", type=positive, metavar="K", help=f"attempts a problem (default: {_defaults('attempts')})"
    )
    group.add_argument("--exhaust", action="store_true", help="use every attempt, also after a success")
    group.add_argument(
        "--rounds", type=positive, metavar="N", help="strategy judge: rounds after the seed (default: 10)"
    )
    group.add_argument("--judge-model", metavar="NAME", help="who is asked as the judge (default: --model)")
    group.add_argument(
        "--from",
        dest="start",
        choices=["best", "last"],
        help="strategy judge: the kernel that a round starts from (default: last)",
    )
    group.add_argument(
        "--categories",
        type=Path,
        metavar="FILE",
        help=f"strategy staged: categories, stages and rules (default: {CATEGORIES} in the folder of --prompts)",
    )


def categories_of(options: argparse.Namespace) -> CategoryBook | None:
    """The categories, where the strategy needs them. Raises ConfigurationError."""
    if not STRATEGIES[options.strategy].staged:
        return None
    return load_categories(options.categories or options.prompts / CATEGORIES)


def _defaults(what: str) -> str:
    return ", ".join(f"{getattr(strategy, what)} with {name}" for name, strategy in STRATEGIES.items())


def choose(options: argparse.Namespace) -> Selection:
    """The problems that the arguments name; raises what `parse_numbers` and `chosen_problems` raise."""
    return chosen_problems(
        options.problems,
        os.environ,
        level=options.level,
        numbers=parse_numbers(options.numbers),
        match=options.match,
        limit=options.limit,
        draw=options.draw,
        seed=options.draw_seed,
    )


def plan_of(options: argparse.Namespace, chosen: Selection, book: PromptBook, backend: Backend) -> RunPlan:
    """The plan for the chosen problems."""
    strategy = STRATEGIES[options.strategy]
    names = [problem.name for problem in chosen.problems]
    recorded = ReplayClient(options.replay, backend).recorded_samples(names) if options.replay is not None else None
    samples = options.samples or _samples_from_environment() or recorded or strategy.samples
    attempts = options.attempts or (options.rounds + 1 if options.rounds else strategy.attempts)
    each = Plan(samples, attempts, options.exhaust, options.start == "best")
    return make_plan(chosen.problems, chosen.missing, book, backend, each, options.strategy)


def check_choice(options: argparse.Namespace) -> None:
    """Raises UsageError for arguments that contradict each other."""
    if options.resume is None and options.problems is None and not options.numbers:
        raise UsageError("name the problems, as 1 40, 3, 1-8 or 1,4,7; or name a folder or a file with --problems")
    _samples_from_environment()
    asks = STRATEGIES[options.strategy].asks_judge
    for name, given in (
        ("--rounds", options.rounds),
        ("--judge-model", options.judge_model),
        ("--from", options.start),
    ):
        if given and not asks:
            raise UsageError(f"{name} belongs to --strategy judge; {options.strategy} asks no judge")
    if options.categories is not None and not STRATEGIES[options.strategy].staged:
        raise UsageError(f"--categories belongs to --strategy staged; {options.strategy} needs none")
    if options.exhaust and options.strategy != "reflect":
        raise UsageError(f"--exhaust belongs to --strategy reflect; {options.strategy} has its own end")
    if options.rounds and options.attempts:
        raise UsageError("--rounds N is the same as --attempts N+1: give one of them")


def check_recorded(options: argparse.Namespace, names: Sequence[str], backend: Backend) -> None:
    """Raises ReplayMissing where --replay has not a single reply to the first prompt of a problem."""
    if options.replay is None:
        return
    absent = ReplayClient(options.replay, backend).unrecorded(names)
    if absent:
        there = [name for name in names if name not in absent]
        instead = f"it has those of {names_text(there)}" if there else "it has none of the problems that are named"
        raise ReplayMissing(f"{options.replay} has no replies ({backend}) for {names_text(absent)}; {instead}")


def _samples_from_environment() -> int | None:
    text = os.environ.get("NUM_SAMPLES", "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"NUM_SAMPLES is {text!r}, and must be a whole number of at least 1: set it so, or unset it")
    return int(text)


def print_plan(plan: RunPlan, backend: Backend) -> None:
    width = max(len(problem.name) for problem in plan.problems)
    for problem, template in zip(plan.problems, plan.templates, strict=True):
        print(f"{problem.name:{width}}  {template}")
    if plan.missing:
        print(f"no problem has number {numbers_text(plan.missing)}")
    print(
        f"{plural(len(plan.problems), 'problem')}, backend {backend}, strategy {plan.strategy}, "
        f"{plural(plan.each.samples, 'sample')}, up to {plural(plan.each.attempts, 'attempt')}: "
        f"{plan.fewest_calls} to {plan.most_calls} model calls"
    )
