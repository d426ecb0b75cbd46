"""run_batch.py: the main job."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import platform
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hkbench import __version__
from hkbench.backends import find_backend
from hkbench.batch import Outcome, RunPlan, run_batch
from hkbench.batch.budget import Budget
from hkbench.batch.run import Batch
from hkbench.categories import CategoryBook
from hkbench.cli.arguments import (
    add_build_only,
    add_device,
    add_model,
    add_prompts,
    check_build_only,
    chosen_sizes,
    device_kind,
    positive,
)
from hkbench.cli.batch_plan import (
    add_choice,
    add_strategy,
    categories_of,
    check_choice,
    check_recorded,
    choose,
    plan_of,
    print_plan,
)
from hkbench.cli.budgets import add_budgets, chosen_prices, limits
from hkbench.cli.cluster import add_cluster, begin_on_cards, check_cluster, cluster_evaluator, on_nodes
from hkbench.cli.configuration import configure
from hkbench.cli.experience_use import add_experience, asked, experience_of, fed
from hkbench.cli.models import asks_model, calls_service, check_model, judge_model, make_client
from hkbench.cli.preflight import check_machine, check_service, estimate
from hkbench.cli.problem_file import problem_file
from hkbench.cli.resume import choose_resumed, sources_of, take_recorded
from hkbench.cli.run_config import backend_of, config_of, draft_of, settings_of
from hkbench.cli.run_folder import Place, check_folder, describe_place, find_place, new_run, place_of
from hkbench.cli.runs import tell
from hkbench.cli.settings import add_evaluation
from hkbench.cli.signals import stopped_by_signals
from hkbench.cli.steps import doing
from hkbench.cluster import ClusterEvaluator
from hkbench.compile_only.conditions import no_device
from hkbench.compile_only.evaluator import CompileOnlyEvaluator, cross_compiled
from hkbench.engine import Evaluator, LocalEvaluator, factory
from hkbench.errors import HkbenchError, UsageError
from hkbench.lab import Stop
from hkbench.lab.prompting import Prompter
from hkbench.llm.client import ModelClient
from hkbench.llm.settings import CALLS_AT_ONCE
from hkbench.monitor import Display, make_display
from hkbench.problems import Selection, numbers_text, problem_set
from hkbench.prompts import PromptBook, load_prompts
from hkbench.records import AnyEvent, BackendName, DeviceKind, Price, RunConfig, RunFacts
from hkbench.report.last_lines import last_lines
from hkbench.report.model import Report
from hkbench.report.write import write_reports
from hkbench.shipped import batch_command
from hkbench.store.events import read_history
from hkbench.store.find import holds_run, point_latest
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunFile, read_run_file
from hkbench.store.recorder import Recorder
from hkbench.store.resume import finished_problems, spent_before
from hkbench.store.state import RunState
from hkbench.strategies import find_strategy

DESCRIPTION = """Run a batch: problems FIRST to LAST, several samples an attempt, failures turned into hints.

The same command again resumes its last run where that is unfinished, and else begins another (--new always does);
--resume RUN resumes any run without repeating its settings. Nothing finished is done or paid for twice.

Exit code: 0 the batch is complete (whatever the verdicts); 64 and above: it is not, and the message says why (75: a
budget is used up, 130: Ctrl-C, SIGTERM or a closed terminal, at which model calls under way are still waited for; a
second Ctrl-C ends at once).

With --build-only candidates are compiled for an AMD GPU that need not be there, and nothing is measured."""


class EventBus:
    """The displays of a run. One whose pipe or terminal was closed is let go, and the run continues without it."""

    def __init__(self) -> None:
        self._displays: list[Display] = []

    def add(self, display: Display) -> None:
        self._displays.append(display)

    def tell(self, event: AnyEvent) -> None:
        for display in tuple(self._displays):
            try:
                display.on_event(event)
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.EIO):
                    raise
                self._displays.remove(display)

    def close(self) -> None:
        for display in self._displays:
            display.close()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_choice(parser)
    add_strategy(parser)
    parser.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help="the run's folder, which is resumed where it holds a run (default: an unfinished run of the same settings "
        "below results, else results/{time}_{model}); {time}, {model} and {strategy} stand for those of the start",
    )
    parser.add_argument(
        "--new", action="store_true", help="begin another run, though an unfinished one has the same settings"
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="RUN",
        help="resume this run with the settings that it recorded; problems that are named are added to it, --samples "
        "and --attempts may grow, and what is no setting (budgets, --concurrency, --display, --base-url) may change",
    )
    parser.add_argument(
        "--record",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep with each reply what was sent for it (exchange.json); replies themselves are always kept",
    )
    parser.add_argument(
        "--keep-assembly",
        action="store_true",
        default=None,
        help="keep what the compiler made of each candidate beside its verdict (assembly.s); strategy graph does so",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and spend nothing")
    add_work(parser)
    add_prompts(parser)
    add_device(parser)
    add_build_only(parser, ": for machines without an AMD GPU; --backend hip, hipkittens or triton (default: hip)")
    add_evaluation(parser)
    add_model(parser)
    add_experience(parser)
    add_budgets(parser)


def add_work(parser: argparse.ArgumentParser) -> None:
    """Add how much is built at once, and how progress is shown."""
    parser.add_argument("--builds", type=positive, metavar="N", help="builds side by side (default: one a core)")
    add_cluster(parser)
    parser.add_argument(
        "--display",
        choices=["rich", "plain", "log", "json"],
        help="how progress is shown (default: rich on a terminal, else plain)",
    )


def run(options: argparse.Namespace) -> int:
    """Plan first, then run; the report is written also when the run ends early."""
    recorded = take_recorded(options)
    check_choice(options)
    if options.problem is None:
        return _planned(options, recorded)
    with problem_file(options.problem) as options.problem:
        return _planned(options, recorded)


def _planned(options: argparse.Namespace, recorded: RunFile | None) -> int:
    check_build_only(options)
    check_unmeasured(options)
    check_cluster(options)
    configure(options)
    experience_of(options)
    place = place_of(options, datetime.now().astimezone())
    check_folder(place)
    chosen = choose(options) if recorded is None else choose_resumed(options, recorded)
    if chosen.missing and not options.dry_run:
        tell(f"no problem has number {numbers_text(chosen.missing)}")
    check_model(options)
    book, categories = load_prompts(options.prompts), categories_of(options)
    draft = draft_of(options, chosen, book, categories)
    place = find_place(options, draft, place)
    if not holds_run(place.folder) and "backend" not in draft.unknown:
        check_recorded(options, draft.config.problems, draft.config.backend)
    options.results = place.folder
    prices = chosen_prices(options, judge_model(options) if find_strategy(options.strategy).asks_judge else None)
    check_machine(options)
    service = check_service(options)
    if options.dry_run:
        where = describe_place(place, draft)
        asyncio.run(_dry_run(options, where, chosen, book, categories, prices, service))
        return 0
    if not place.is_new and holds_run(place.folder):
        tell(describe_place(place, draft))
    outcome, report, unfed = asyncio.run(_run(options, place, chosen, book, categories, prices))
    aside = sys.stderr if options.display == "json" else sys.stdout  # whose output is the events alone
    for line in last_lines(report, options.results):
        print(line, file=aside)
    for line in unfinished(outcome):
        print(f"hkbench: {line}", file=sys.stderr)
    if unfed is not None:
        raise unfed
    if outcome.complete:
        return 0
    by_folder = f"{batch_command()} --resume {options.results}"
    tell(f"{by_folder} resumes the run" if options.new else f"the same command resumes the run, as does {by_folder}")
    if outcome.stopped is not None:
        raise outcome.stopped
    return next(iter(outcome.errors.values())).exit_code


def unfinished(outcome: Outcome) -> Iterator[str]:
    """Yield a line for each error that left problems unfinished, with their names, but for what ended the run."""
    names: dict[str, list[str]] = {}
    for name, error in outcome.errors.items():
        if outcome.stopped is None or str(error) not in str(outcome.stopped):
            names.setdefault(str(error), []).append(name)
    for said, found in names.items():
        yield f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} not finished: {said}"


def check_unmeasured(options: argparse.Namespace) -> None:
    """Raise UsageError for what does not go with --build-only."""
    if not options.build_only:
        return
    if options.device not in (None, "auto"):
        raise UsageError(
            f"--build-only compiles for --arch and measures on no device: leave out --device {options.device}"
        )
    if options.backend is not None and find_backend(options.backend).compile_only is None:
        known = ", ".join(cross_compiled())
        raise UsageError(
            f"a batch with --build-only compiles for AMD GPUs ({known}), not {options.backend}, whose candidates are "
            "measured: leave out --build-only"
        )


def _evaluator(options: argparse.Namespace) -> LocalEvaluator | CompileOnlyEvaluator | ClusterEvaluator:
    """Make the evaluator; it is not begun yet."""
    settings, sizes = settings_of(options), chosen_sizes(options)
    if options.cluster is not None:
        return cluster_evaluator(options, settings, sizes)
    if options.build_only:
        return CompileOnlyEvaluator(backend_of(options, DeviceKind.ROCM), options.arch, settings, sizes, options.builds)
    return factory.local_evaluator(
        device_kind(options), settings, sizes, options.builds, prepares=True, indices=options.device_index
    )


async def _dry_run(
    options: argparse.Namespace,
    where: str,
    chosen: Selection,
    book: PromptBook,
    categories: CategoryBook | None,
    prices: tuple[Price | None, Price | None],
    service: list[str],
) -> None:
    """Start what the run would start, short of the generations; print the plan and what it is estimated to take."""
    async with _evaluator(options) as evaluator:
        backend = backend_of(options, evaluator.device.kind)
        await evaluator.require(backend)
        plan = plan_of(options, chosen, book, backend)
        prompter = Prompter(book, backend, evaluator, settings_of(options), categories=categories)
        judged = find_strategy(options.strategy).asks_judge
        costs = await estimate(plan, prompter, prices[0], options.max_reply_tokens, judged)
        device = evaluator.device.name
    print_plan(plan, backend)
    print(f"model: {(options.model or 'recorded replies') if asks_model(options) else 'none'}")
    for line in service:
        print(f"service: {line}")
    print(f"device: {device}")
    print(f"folder: {where}")
    for line in costs if calls_service(options) else ():
        print(line)


async def _run(
    options: argparse.Namespace,
    place: Place,
    chosen: Selection,
    book: PromptBook,
    categories: CategoryBook | None,
    prices: tuple[Price | None, Price | None],
) -> tuple[Outcome, Report, HkbenchError | None]:
    """Return how the run ended, its report, and why it could not be added to its experience."""
    written: list[Report] = []
    async with AsyncExitStack() as opened:
        with doing("starting the compilers" if options.build_only else "starting the device", options.display):
            ours = _evaluator(options)
            evaluator: Evaluator = await opened.enter_async_context(ours)
        backend = backend_of(options, evaluator.device.kind)
        await evaluator.require(backend)  # before a model is paid
        plan = plan_of(options, chosen, book, backend)
        if not holds_run(place.folder):
            check_recorded(options, [problem.name for problem in plan.problems], backend)
        where = (evaluator.device.kind, evaluator.sizes, evaluator.compiled_for)
        config = config_of(options, plan, book, categories, backend, where)
        with ExitStack() as stack:
            options.results = place.make()
            paths = RunPaths(options.results)
            audience = EventBus()
            recorder = Recorder(paths, audience.tell)
            stack.callback(recorder.close)
            memory = stack.enter_context(asked(options))
            facts = _facts(ours, plan, *prices)
            facts = facts.model_copy(update={"experience": memory.facts() if memory is not None else None})
            resumed = recorder.begin(config, facts, sources_of(options, plan.problems, categories))
            if place.root is not None:
                point_latest(place.root, options.results)
            if place.is_new:
                tell(new_run(options.results, place.why))
            stack.callback(lambda: written.append(write_reports(options.results)))
            history = read_history(paths.journal)
            stack.enter_context(_shown(audience, options.display, paths, config, facts, history))
            stop = Stop()
            before = RunState.after(history, config, *prices)
            audience.add(Budget(limits(options), stop, spent_before(paths, before), before.seconds or 0.0))
            coder, judge = await opened.enter_async_context(_models(options, backend, config.judge_model))
            prompter = Prompter(book, backend, evaluator, config.evaluation, categories=categories)
            first = None
            if isinstance(ours, ClusterEvaluator):
                checked = plan.problems[0] if options.check_cards else None
                first = partial(begin_on_cards, ours, recorder.event, checked, backend)
            batch = Batch(
                config,
                recorder,
                evaluator,
                coder,
                prompter,
                options.concurrency or max(CALLS_AT_ONCE, evaluator.capacity),
                options.record,
                finished_problems(paths, before, read_run_file(paths).extended),
                stop,
                judge=judge,
                before=before.problems,
                memory=memory,
                first=first,
            )
            with stopped_by_signals(stop):
                outcome = await run_batch(batch, plan.problems, resumed)
            unfed = await fed(options, paths.root, place.root, prompter, plan.problems)
    return outcome, written[0], unfed


@asynccontextmanager
async def _models(
    options: argparse.Namespace, backend: BackendName, judged_by: str | None
) -> AsyncIterator[tuple[ModelClient, ModelClient]]:
    """Yield who writes kernels, and who is asked about them."""
    async with AsyncExitStack() as opened:
        coder = judge = make_client(options, backend)
        opened.push_async_callback(coder.close)
        if judged_by is not None:
            judge = make_client(options, backend, judged_by)
            opened.push_async_callback(judge.close)
        yield coder, judge


@contextmanager
def _shown(
    audience: EventBus, display: str, paths: RunPaths, config: RunConfig, facts: RunFacts, history: Sequence[AnyEvent]
) -> Iterator[None]:
    """Tell the run's log and the display of what happens, until the end of the block."""
    with paths.log.open("a", encoding="utf-8") as log:
        audience.add(make_display("log", log, config))
        audience.add(make_display(display, sys.stdout, config, name=str(paths.root), facts=facts, history=history))
        try:
            yield
        finally:
            audience.close()


def _facts(
    evaluator: Evaluator | ClusterEvaluator, plan: RunPlan, price: Price | None, judge_price: Price | None
) -> RunFacts:
    device = evaluator.device
    name = device.name if evaluator.compiled_for is None else f"{no_device(device.arch)}, as for {device.name}"
    hardware = {"device": name, "count": str(len(evaluator.devices)), "host": platform.node()}
    hardware |= {"cpu": platform.processor() or platform.machine(), "cores": str(os.cpu_count())}
    if device.kind is not DeviceKind.CPU and device.arch:
        hardware["arch"] = device.arch
    facts = RunFacts(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        hkbench=__version__,
        versions=device.versions,
        hardware=hardware,
        problem_set=problem_set(plan.problems[0]),
        device=device,
        weak={problem.name: problem.weak for problem in plan.problems if problem.weak is not None},
        price=price,
        judge_price=judge_price,
    )
    return on_nodes(facts, evaluator.nodes) if isinstance(evaluator, ClusterEvaluator) else facts
