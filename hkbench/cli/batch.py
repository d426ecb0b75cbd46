"""run_batch.py: the main job."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from hkbench import __version__
from hkbench.batch import Outcome, RunPlan, make_plan, run_batch
from hkbench.batch.run import Batch
from hkbench.cli.arguments import (
    add_device,
    add_judge,
    add_model,
    add_prompts,
    chosen_backend,
    chosen_sizes,
    device_kind,
    judge_settings,
    positive,
)
from hkbench.cli.models import check_model, make_client, shown_base_url
from hkbench.engine import Evaluator
from hkbench.errors import UsageError
from hkbench.lab.prompting import Prompter
from hkbench.llm import ReplayClient
from hkbench.monitor import Display, make_display
from hkbench.problems import find_problems, problems_root, select
from hkbench.prompts import PromptBook, load_prompts
from hkbench.records import AnyEvent, Backend, DeviceKind, RunConfig, RunFacts
from hkbench.report import write_reports
from hkbench.store.events import Damage, read_events
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder
from hkbench.store.resume import finished_problems

DEFAULT_SAMPLES = 3
DESCRIPTION = """Run a batch: problems FIRST to LAST, several samples an attempt, failures turned into hints.

The same command again resumes an interrupted run; nothing finished is done or paid for twice. Exit code: 0 the batch
is complete (whatever the verdicts); 64 and above: it is not, and the message says why."""


class Audience:
    """The displays of a run. One whose stream is closed is let go: the run does not end for want of a reader."""

    def __init__(self) -> None:
        self._displays: list[Display] = []

    def add(self, display: Display) -> None:
        self._displays.append(display)

    def tell(self, event: AnyEvent) -> None:
        for display in tuple(self._displays):
            try:
                display.on_event(event)
            except BrokenPipeError:
                self._displays.remove(display)

    def close(self) -> None:
        for display in self._displays:
            display.close()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", type=positive, metavar="FIRST", help="number of the first problem")
    parser.add_argument("last", type=positive, metavar="LAST", help="number of the last problem")
    parser.add_argument("--level", type=positive, metavar="N", help="level of the problems (default: 1)")
    parser.add_argument(
        "--problems",
        type=Path,
        metavar="DIR",
        help="folder of problems (default: $KERNELBENCH_DIR, else the shipped ones)",
    )
    parser.add_argument("--match", metavar="REGEX", help="only problems whose name matches")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N of those")
    parser.add_argument(
        "--samples",
        type=positive,
        metavar="N",
        help="generations of each attempt (default: $NUM_SAMPLES, else as many as --replay has, else 3)",
    )
    parser.add_argument("--attempts", type=positive, default=3, metavar="K", help="attempts a problem (default: 3)")
    parser.add_argument("--exhaust", action="store_true", help="use every attempt, also after a success")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="the run folder (default: results)"
    )
    parser.add_argument(
        "--record",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep with each reply what was sent for it (exchange.json); replies themselves are always kept",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and spend nothing")
    parser.add_argument("--builds", type=positive, metavar="N", help="builds side by side (default: one a core)")
    parser.add_argument(
        "--display",
        choices=["rich", "full", "plain", "log", "json"],
        help="how progress is shown; full is monitor.py's screen, which q closes (default: rich on a terminal, else "
        "plain)",
    )
    add_prompts(parser)
    add_device(parser)
    add_judge(parser)
    add_model(parser)


def run(options: argparse.Namespace) -> int:
    """Plans first, then runs; the report is written also when the run ends early."""
    if not options.dry_run:
        check_model(options)
    book = load_prompts(options.prompts)
    options.samples = options.samples or _samples_from_environment()
    if options.dry_run:
        kind = device_kind(options)
        if options.backend is None and kind is None:
            kind = asyncio.run(_found_kind(options))
        backend = chosen_backend(options, kind or DeviceKind.CPU)
        _print_plan(_plan(options, book, backend), backend)
        return 0
    outcome = asyncio.run(_run(options, book))
    print(f"report: {options.results / 'detailed_report.txt'}, {options.results / 'report.html'}")
    for name, error in outcome.errors.items():
        print(f"hkbench: {name} is not finished: {error}", file=sys.stderr)
    if not outcome.complete:
        print("hkbench: the same command resumes the run", file=sys.stderr)
        return next(iter(outcome.errors.values())).exit_code
    return 0


async def _found_kind(options: argparse.Namespace) -> DeviceKind:
    """What `--device auto` means here: the prompts depend on it."""
    async with Evaluator(None, judge_settings(options)) as evaluator:
        return evaluator.device.kind


def _samples_from_environment() -> int | None:
    text = os.environ.get("NUM_SAMPLES", "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"NUM_SAMPLES is {text!r}: it has to be a whole number of at least 1")
    return int(text)


def _plan(options: argparse.Namespace, book: PromptBook, backend: Backend) -> RunPlan:
    root = problems_root(options.problems, os.environ)
    found = find_problems(root, options.level, options.first, options.last)
    chosen = select(found, options.first, options.last, options.match, options.limit)
    names = [problem.name for problem in chosen.problems]
    recorded = ReplayClient(options.replay, backend).recorded_samples(names) if options.replay is not None else None
    samples = options.samples or recorded or DEFAULT_SAMPLES
    return make_plan(chosen.problems, chosen.missing, book, backend, samples, options.attempts, options.exhaust)


def _print_plan(plan: RunPlan, backend: Backend) -> None:
    width = max(len(problem.name) for problem in plan.problems)
    for problem, template in zip(plan.problems, plan.templates, strict=True):
        print(f"{problem.name:{width}}  {template}")
    if plan.missing:
        print(f"no problem has number {', '.join(map(str, plan.missing))}")
    print(
        f"{len(plan.problems)} problems, backend {backend}, {plan.samples} samples, up to {plan.attempts} attempts: "
        f"{plan.fewest_calls} to {plan.most_calls} model calls"
    )


async def _run(options: argparse.Namespace, book: PromptBook) -> Outcome:
    sizes = chosen_sizes(options)
    async with Evaluator(
        device_kind(options), judge_settings(options), sizes, options.builds, prepares=True
    ) as evaluator:
        kind = evaluator.device.kind
        backend = chosen_backend(options, kind)
        await evaluator.require(backend)  # before a model is paid
        plan = _plan(options, book, backend)
        config = _config(options, plan, book, evaluator, backend)
        with ExitStack() as stack:
            paths = RunPaths(options.results)
            audience = Audience()
            recorder = Recorder(paths, audience.tell)
            stack.callback(recorder.close)
            facts = _facts(evaluator, plan)
            resumed = recorder.begin(config, facts)
            stack.callback(write_reports, options.results)
            history = [event for event in read_events(paths.journal) if not isinstance(event, Damage)]
            log = stack.enter_context(paths.log.open("a", encoding="utf-8"))
            name = str(options.results)
            stack.callback(audience.close)
            audience.add(make_display("log", log, config))
            shown, root = options.display, options.results
            audience.add(make_display(shown, sys.stdout, config, name=name, facts=facts, history=history, folder=root))
            client = make_client(options, backend)
            try:
                prompter = Prompter(book, backend, evaluator, config.judge)
                batch = Batch(
                    config,
                    recorder,
                    evaluator,
                    client,
                    prompter,
                    options.concurrency,
                    options.record,
                    finished_problems(paths, history),
                )
                return await run_batch(batch, plan.problems, resumed)
            finally:
                await client.close()


def _config(
    options: argparse.Namespace, plan: RunPlan, book: PromptBook, evaluator: Evaluator, backend: Backend
) -> RunConfig:
    return RunConfig(
        problems=tuple(problem.name for problem in plan.problems),
        problem_hashes=tuple(problem.sha256 for problem in plan.problems),
        level=plan.problems[0].level,
        backend=backend,
        device=evaluator.device.kind,
        sizes=evaluator.sizes,
        samples=plan.samples,
        attempts=options.attempts,
        exhaust=options.exhaust,
        model=options.model or "replay",
        base_url=shown_base_url(options),
        api=options.api,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        reasoning_effort=options.reasoning_effort,
        replay=str(options.replay.resolve()) if options.replay is not None else None,
        prompts_sha256=book.sha256,
        judge=judge_settings(options),
    )


def _facts(evaluator: Evaluator, plan: RunPlan) -> RunFacts:
    device = evaluator.device
    hardware = {"device": device.name, "count": str(len(evaluator.devices)), "host": platform.node()}
    hardware |= {"cpu": platform.processor() or platform.machine(), "cores": str(os.cpu_count())}
    if device.kind is not DeviceKind.CPU and device.arch:
        hardware["arch"] = device.arch
    return RunFacts(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        hkbench=__version__,
        versions=device.versions,
        hardware=hardware,
        device=device,
        weak={problem.name: problem.weak for problem in plan.problems if problem.weak is not None},
    )
