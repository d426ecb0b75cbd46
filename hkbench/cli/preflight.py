"""What can be known of a run before anything is paid for: the machine, the model service, what it may cost."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable

from hkbench.backends import Backend, find_backend
from hkbench.batch import RunPlan
from hkbench.cli.arguments import device_kind
from hkbench.cli.models import calls_service, judge_model, service_of
from hkbench.compile_only.evaluator import BUILD_ONLY_BACKEND, built_on_host
from hkbench.device_kinds import model_of
from hkbench.lab.prompting import Prompter
from hkbench.llm.served import check_served
from hkbench.records import DeviceKind, Price
from hkbench.registry import default_backend
from hkbench.store.costs import money
from hkbench.strategies import find_strategy
from hkbench.toolchain.programs import check_cxx, surely_cpu

CHARACTERS = 4  #: of a prompt to a token, for an estimate: models count differently
RENDERED = 3  #: problems whose prompts are rendered for it
REPLY_TOKENS = (1_000, 8_000)  #: of a reply, assumed for the least and the most that a run may cost
LATER = 2  #: prompts of later attempts hold code and hints beside: so many times the first, assumed for the most


def check_machine(options: argparse.Namespace) -> None:
    """Check the device against the backend, and the tools for its candidates, without starting a device.

    Raises:
        UsageError: the backend is for other devices than the one that is named, or the only one that there can be.
        ToolchainUnavailable: a compiler, ninja or Triton is missing.
    """
    if getattr(options, "cluster", None) is not None:
        return  # its nodes have the device and the tools; Evaluator.require looks there
    if getattr(options, "build_only", False):
        _check_cross_compiler(find_backend(options.backend or BUILD_ONLY_BACKEND))
        return
    kind = device_kind(options) or (DeviceKind.CPU if surely_cpu() else None)
    name = options.backend or (default_backend(kind) if kind is not None else None)
    if name is None:
        return  # the device says; Evaluator.require looks then
    backend = find_backend(name)
    if kind is not None:
        backend.check_device(kind, model_of(kind).phrase)
    backend.check_tools()
    if backend.builds_extensions:
        check_cxx()


def _check_cross_compiler(backend: Backend) -> None:
    if backend.compile_only is not None:
        backend.compile_only.find_compiler()
    elif built_on_host(backend):
        backend.check_tools()


def check_service(options: argparse.Namespace) -> list[str]:
    """Ask the model service once whether it will serve the run; a line for each thing found. Empty for --replay.

    Raises:
        ModelUnavailable: it cannot be reached, or refuses the key, the model or the options.
    """
    if not calls_service(options):
        return []
    models = [options.model]
    if hasattr(options, "strategy") and find_strategy(options.strategy).asks_judge:
        models.append(judge_model(options))
    return asyncio.run(check_served(*service_of(options), models))


async def estimate(
    plan: RunPlan, prompter: Prompter, price: Price | None, max_reply_tokens: int | None, judged: bool
) -> Iterable[str]:
    """Return lines on the tokens and the money of a plan, estimated from some of its first prompts.

    `judged`: a judge is asked beside, whose calls are not in the estimate.
    """
    step = max(1, len(plan.problems) // RENDERED)
    some = plan.problems[::step][:RENDERED]  # from all over the list
    sizes = []
    for problem in some:
        prompt = await prompter.render(problem, None)
        sizes.append((len(prompt.text) + len(prompt.system or "")) / CHARACTERS)
    prompt_tokens = sum(sizes) / len(sizes)
    least, most = plan.min_calls * prompt_tokens, plan.max_calls * prompt_tokens * LATER
    lines = [
        f"prompts: about {prompt_tokens:,.0f} tokens each ({CHARACTERS} characters a token, by {len(some)} of them), "
        f"{least:,.0f} to {most:,.0f} in all"
    ]
    if price is not None:
        few, many = REPLY_TOKENS[0], max_reply_tokens or REPLY_TOKENS[1]
        low = _cost(price, least, plan.min_calls * min(few, many))
        high = _cost(price, most, plan.max_calls * many)
        beside = "; the judge's calls come on top" if judged else ""
        lines.append(
            f"cost: an estimate of {money(low, price.currency)} to {money(high, price.currency)}, with replies of "
            f"{min(few, many):,} to {many:,} tokens{beside}"
        )
    else:
        lines.append("cost: not known, no price of the model is (--prices)")
    return lines


def _cost(price: Price, prompt_tokens: float, reply_tokens: float) -> float:
    return (prompt_tokens * price.rates.input + reply_tokens * price.rates.output) / 1e6
