"""The settings of a run (`RunConfig`), from the arguments: what resuming holds against those that a folder records."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from hkbench.batch import RunPlan
from hkbench.categories import CategoryBook
from hkbench.cli.arguments import chosen_backend, chosen_sizes, device_kind, judge_settings
from hkbench.cli.batch_plan import plan_of
from hkbench.cli.models import judge_model, shown_base_url
from hkbench.engine import Evaluating
from hkbench.engine.build_evaluator import DEFAULT_ARCH
from hkbench.problems import Selection
from hkbench.problems.sizes import sizes_in_force
from hkbench.prompts import PromptBook
from hkbench.records import Backend, DeviceKind, JudgeSettings, RunConfig, SizeSet
from hkbench.strategies import STRATEGIES


@dataclass(frozen=True)
class Draft:
    """The settings as far as they are known before a device is looked for."""

    config: RunConfig
    unknown: frozenset[str]  #: settings that depend on the device, where that is left to `auto`


def draft_of(
    options: argparse.Namespace, chosen: Selection, book: PromptBook, categories: CategoryBook | None
) -> Draft:
    """The settings that the arguments ask for."""
    kind = DeviceKind.ROCM if options.build_only else device_kind(options)
    unknown: set[str] = set()
    if kind is None:
        unknown = {"device"} | {name for name in ("backend", "sizes") if getattr(options, name) is None}
        if options.replay is not None and "backend" in unknown:
            unknown.add("samples")  # as many as are recorded for the backend
        kind = DeviceKind.CPU
    backend = backend_of(options, kind)
    plan = plan_of(options, chosen, book, backend)
    default = SizeSet.CPU if kind is DeviceKind.CPU else SizeSet.FULL
    arch = (options.arch or DEFAULT_ARCH) if options.build_only else None
    place = (kind, chosen_sizes(options) or default, arch)
    return Draft(_config(options, plan, book, categories, backend, *place), frozenset(unknown))


def config_of(
    options: argparse.Namespace,
    plan: RunPlan,
    book: PromptBook,
    categories: CategoryBook | None,
    backend: Backend,
    evaluator: Evaluating,
) -> RunConfig:
    """The settings of the run on the evaluator's device."""
    place = (evaluator.device.kind, evaluator.sizes, evaluator.compiled_for)
    return _config(options, plan, book, categories, backend, *place)


def backend_of(options: argparse.Namespace, kind: DeviceKind) -> Backend:
    """The backend that was named, else that of the kind of device, or of a batch with --build-only."""
    return Backend(options.backend or Backend.HIP) if options.build_only else chosen_backend(options, kind)


def settings_of(options: argparse.Namespace) -> JudgeSettings:
    """The judge's settings, with what the strategy wants to know of fast candidates."""
    profiles_fast = STRATEGIES[options.strategy].profiles_fast and not options.no_profile
    return judge_settings(options).model_copy(update={"profile_fast": profiles_fast})


def _config(
    options: argparse.Namespace,
    plan: RunPlan,
    book: PromptBook,
    categories: CategoryBook | None,
    backend: Backend,
    kind: DeviceKind,
    sizes: SizeSet,
    compiled_for: str | None,
) -> RunConfig:
    return RunConfig(
        problems=tuple(problem.name for problem in plan.problems),
        problem_hashes=tuple(problem.sha256 for problem in plan.problems),
        level=plan.problems[0].level,
        backend=backend,
        device=kind,
        compiled_for=compiled_for,
        sizes=sizes_in_force(sizes, *plan.problems),
        strategy=plan.strategy,
        samples=plan.each.samples,
        attempts=plan.each.attempts,
        exhaust=plan.each.exhaust,
        model=options.model or "replay",
        base_url=shown_base_url(options),
        api=options.api,
        temperature=options.temperature,
        max_tokens=options.max_reply_tokens,
        reasoning_effort=options.reasoning_effort,
        replay=str(options.replay.resolve()) if options.replay is not None else None,
        judge_model=judge_model(options) if STRATEGIES[plan.strategy].asks_judge else None,
        from_best=plan.each.from_best,
        prompts_sha256=book.sha256,
        categories_sha256=categories.sha256 if categories is not None else None,
        judge=settings_of(options),
    )
