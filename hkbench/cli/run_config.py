"""The settings of a run (`RunConfig`), from the arguments: what resuming holds against those that a folder records."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from hkbench.batch import RunPlan
from hkbench.categories import CategoryBook
from hkbench.cli.arguments import chosen_backend, chosen_sizes, device_kind
from hkbench.cli.batch_plan import plan_of
from hkbench.cli.experience_use import experience_of
from hkbench.cli.models import judge_model, model_name, shown_base_url
from hkbench.cli.settings import evaluation_settings
from hkbench.compile_only.evaluator import BUILD_ONLY_BACKEND, DEFAULT_ARCH
from hkbench.device_kinds import model_of
from hkbench.problems import Selection
from hkbench.problems.sizes import sizes_in_force
from hkbench.prompts import PromptBook
from hkbench.records import BackendName, DeviceKind, EvaluationSettings, RunConfig, SizeSet
from hkbench.strategies import find_strategy

Where = tuple[DeviceKind, SizeSet, str | None]  #: device, sizes, and the architecture that is compiled for


@dataclass(frozen=True)
class Draft:
    """The settings as far as they are known before a device is looked for."""

    config: RunConfig
    unknown: frozenset[str]  #: settings that depend on the device, where that is left to `auto`


def draft_of(
    options: argparse.Namespace, chosen: Selection, book: PromptBook, categories: CategoryBook | None
) -> Draft:
    """Return the settings that the arguments ask for."""
    kind = DeviceKind.ROCM if options.build_only else device_kind(options)
    unknown: set[str] = set()
    if kind is None:
        unknown = {"device"} | {name for name in ("backend", "sizes") if getattr(options, name) is None}
        if options.replay is not None and "backend" in unknown:
            unknown.add("samples")  # as many as are recorded for the backend
        kind = DeviceKind.CPU
    backend = backend_of(options, kind)
    plan = plan_of(options, chosen, book, backend)
    default = model_of(kind).default_sizes
    arch = (options.arch or DEFAULT_ARCH) if options.build_only else None
    where = (kind, chosen_sizes(options) or default, arch)
    return Draft(config_of(options, plan, book, categories, backend, where), frozenset(unknown))


def config_of(
    options: argparse.Namespace,
    plan: RunPlan,
    book: PromptBook,
    categories: CategoryBook | None,
    backend: BackendName,
    where: Where,
) -> RunConfig:
    """Return the settings of the run on that device."""
    kind, sizes, compiled_for = where
    return RunConfig(
        problems=tuple(problem.name for problem in plan.problems),
        problem_hashes=tuple(problem.sha256 for problem in plan.problems),
        level=plan.problems[0].level,
        backend=backend,
        device=kind,
        compiled_for=compiled_for,
        sizes=sizes_in_force(sizes, *plan.problems),
        strategy=plan.strategy.record(plan.options),
        samples=plan.options.samples,
        attempts=plan.options.attempts,
        model=model_name(options),
        base_url=shown_base_url(options),
        api=options.api,
        temperature=options.temperature,
        max_tokens=options.max_reply_tokens,
        reasoning_effort=options.reasoning_effort,
        replay=str(options.replay.resolve()) if options.replay is not None else None,
        judge_model=judge_model(options) if plan.strategy.asks_judge else None,
        prompts_sha256=book.sha256,
        categories_sha256=categories.sha256 if categories is not None else None,
        experience=str(experience) if (experience := experience_of(options)) is not None else None,
        hold_out=options.hold_out,
        evaluation=settings_of(options),
    )


def backend_of(options: argparse.Namespace, kind: DeviceKind) -> BackendName:
    """Return the backend that was named, else that of the kind of device, or of a batch with --build-only."""
    return (options.backend or BUILD_ONLY_BACKEND) if options.build_only else chosen_backend(options, kind)


def settings_of(options: argparse.Namespace) -> EvaluationSettings:
    """Return the evaluator's settings, with what the strategy wants to know of candidates."""
    settings, strategy = evaluation_settings(options), find_strategy(options.strategy)
    profiles_fast = strategy.profiles_fast and settings.profile_slow
    keeps = strategy.keeps_assembly or settings.keep_assembly
    return settings.model_copy(update={"profile_fast": profiles_fast, "keep_assembly": keeps})
