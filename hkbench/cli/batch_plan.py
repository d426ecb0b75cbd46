"""What run_batch.py is asked to do: which problems, by which strategy, in how many steps."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from hkbench.batch import RunPlan, make_plan
from hkbench.batch.plan import DEFAULT_STRATEGY
from hkbench.categories import CategoryBook, load_categories
from hkbench.cli.arguments import add_numbers, positive, whole
from hkbench.cli.fields import add_field, description, flag_of, options_of, with_default
from hkbench.errors import ReplayMissing, UsageError
from hkbench.headline import plural
from hkbench.llm.replay import ReplayClient
from hkbench.problems import Selection, chosen_problems, numbers_text, parse_numbers
from hkbench.prompts import PromptBook
from hkbench.records import BackendName
from hkbench.store.settings import names_text
from hkbench.strategies import STRATEGIES, Strategy, find_strategy

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
    parser.add_argument(
        "--problem",
        type=Path,
        metavar="FILE",
        help="one problem: a file in KernelBench's format, or JSON that describes one (docs/problems.md)",
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
        help="; ".join(f"{name}: {strategy.summary}" for name, strategy in STRATEGIES.items())
        + f" (default: {DEFAULT_STRATEGY}; docs/strategies.md)",
    )
    for name, owners in owners_by_option().items():
        add_field(group, name, owners[0].Options.model_fields[name], _help(name, owners))
    group.add_argument(
        "--judge-model",
        "--reasoner-model",
        metavar="NAME",
        help="strategies judge, agents: who reads kernels, as the judge or the reasoners (default: --model)",
    )
    group.add_argument(
        "--categories",
        type=Path,
        metavar="FILE",
        help=f"strategy staged: categories, stages and rules (default: {CATEGORIES} in the folder of --prompts)",
    )


def owners_by_option() -> dict[str, list[Strategy[Any]]]:
    """Return the strategies that have an option, by its name; those that all have come first."""
    fields = [named for one in STRATEGIES.values() for named in one.Options.model_fields.items()]
    names = dict.fromkeys(name for name, field in fields if flag_of(name, field).name)
    return {name: [one for one in STRATEGIES.values() if name in one.Options.model_fields] for name in names}


def _help(name: str, owners: Sequence[Strategy[Any]]) -> str:
    text = description(owners[0].Options, name)
    defaults = {one.name: one.Options.model_fields[name].default for one in owners}
    if len(owners) == len(STRATEGIES):
        shown = ", ".join(f"{value} with {strategy}" for strategy, value in defaults.items())
        before = "$NUM_SAMPLES, else as many as --replay has, else " if name == "samples" else ""
        return f"{text} (default: {before}{shown})"
    whose = f"strategy {', '.join(defaults)}: {text}"
    return with_default(whose, defaults[owners[0].name])


def categories_of(options: argparse.Namespace) -> CategoryBook | None:
    """Return the categories, where the strategy needs them. Raises ConfigurationError."""
    if not find_strategy(options.strategy).uses_categories:
        return None
    return load_categories(options.categories or options.prompts / CATEGORIES)


def choose(options: argparse.Namespace) -> Selection:
    """Return the problems that the arguments name; raises what `parse_numbers` and `chosen_problems` raise."""
    return chosen_problems(
        options.problem if options.problem is not None else options.problems,
        os.environ,
        level=options.level,
        numbers=parse_numbers(options.numbers),
        match=options.match,
        limit=options.limit,
        draw=options.draw,
        seed=options.draw_seed,
    )


def plan_of(options: argparse.Namespace, chosen: Selection, book: PromptBook, backend: BackendName) -> RunPlan:
    """Return the plan for the chosen problems."""
    strategy = find_strategy(options.strategy)
    names = [problem.name for problem in chosen.problems]
    recorded = ReplayClient(options.replay, backend).recorded_samples(names) if options.replay is not None else None
    samples = options.samples or _samples_from_environment() or recorded
    told = options_of(strategy.Options, options, samples=samples)
    return make_plan(chosen.problems, chosen.missing, book, backend, strategy, told)


def check_choice(options: argparse.Namespace) -> None:
    """Raise UsageError for arguments that contradict each other."""
    if options.problem is not None and (options.problems is not None or options.numbers):
        raise UsageError("--problem names one problem: leave out --problems and numbers")
    if options.resume is None and options.problems is None and options.problem is None and not options.numbers:
        raise UsageError(
            "name the problems, as 1 40, 3, 1-8 or 1,4,7; or name a folder with --problems or a file with --problem"
        )
    _samples_from_environment()
    strategy = find_strategy(options.strategy)
    for name, owners in owners_by_option().items():
        if getattr(options, name) is not None and strategy not in owners:
            flag = flag_of(name, owners[0].Options.model_fields[name]).name
            _refuse(str(flag), owners, f"{options.strategy} has no such option")
    if options.judge_model is not None and not strategy.asks_judge:
        owners = [one for one in STRATEGIES.values() if one.asks_judge]
        _refuse("--judge-model", owners, f"{options.strategy} asks no second model")
    if options.categories is not None and not strategy.uses_categories:
        owners = [one for one in STRATEGIES.values() if one.uses_categories]
        _refuse("--categories", owners, f"{options.strategy} needs none")
    options_of(strategy.Options, options)


def _refuse(flag: str, owners: Sequence[Strategy[Any]], why: str) -> NoReturn:
    raise UsageError(f"{flag} belongs to --strategy {' or '.join(one.name for one in owners)}; {why}")


def check_recorded(options: argparse.Namespace, names: Sequence[str], backend: BackendName) -> None:
    """Raise ReplayMissing where --replay has not a single reply for a problem."""
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


def print_plan(plan: RunPlan, backend: BackendName) -> None:
    width = max(len(problem.name) for problem in plan.problems)
    for problem, template in zip(plan.problems, plan.templates, strict=True):
        print(f"{problem.name:{width}}  {template}")
    if plan.missing:
        print(f"no problem has number {numbers_text(plan.missing)}")
    print(
        f"{plural(len(plan.problems), 'problem')}, backend {backend}, strategy {plan.strategy.name}, "
        f"{plural(plan.options.samples, 'sample')}, up to {plural(plan.options.attempts, 'attempt')}: "
        f"{plan.min_calls} to {plan.max_calls} model calls"
    )
