"""What can be known of a run before anything is paid for: the machine, the model service, what it may cost."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence

from hkbench.batch import RunPlan
from hkbench.cli.arguments import DEFAULT_BACKEND, device_kind
from hkbench.cli.models import judge_model, service_of
from hkbench.engine.needs import check_compiler, check_kind, check_tools, surely_cpu
from hkbench.lab.prompting import Prompter
from hkbench.llm.served import check_served
from hkbench.records import Backend, DeviceKind, Price, Problem
from hkbench.store.costs import money
from hkbench.strategies import STRATEGIES
from hkbench.toolchain.hip import find_hip
from hkbench.toolchain.triton import find_triton

CHARACTERS = 4  #: of a prompt to a token, for an estimate: models count differently
RENDERED = 3  #: problems whose prompts are rendered for it
REPLY_TOKENS = (1_000, 8_000)  #: of a reply, assumed for the least and the most that a run may cost
LATER = 2  #: prompts of later attempts hold code and hints beside: so many times the first, assumed for the most


def check_machine(options: argparse.Namespace) -> None:
    """Device against backend, and the tools that build its candidates, as far as no device has to be started.

    Raises:
        UsageError: the backend is for other devices than the one that is named, or the only one that there can be.
        ToolchainUnavailable: a compiler, ninja or Triton is missing.
    """
    named = Backend(options.backend) if options.backend is not None else None
    if getattr(options, "build_only", False):
        _check_cross_compiler(named or Backend.HIP)
        return
    kind = device_kind(options) or (DeviceKind.CPU if surely_cpu() else None)
    backend = named or (DEFAULT_BACKEND[kind] if kind is not None else None)
    if backend is None:
        return  # the device says; Evaluator.require looks then
    if kind is not None:
        check_kind(backend, kind, _NAMES[kind])
    check_tools(backend)
    if backend is not Backend.TRITON:
        check_compiler()


_NAMES = {DeviceKind.CPU: "a CPU", DeviceKind.CUDA: "an NVIDIA GPU", DeviceKind.ROCM: "an AMD GPU"}


def _check_cross_compiler(backend: Backend) -> None:
    if backend is Backend.TRITON:
        find_triton()
    elif backend is Backend.CPP:
        check_tools(backend)
    else:
        find_hip()


def check_service(options: argparse.Namespace) -> list[str]:
    """Asks the model service once whether it will serve the run; a line for each thing found. Empty for --replay.

    Raises:
        ModelUnavailable: it cannot be reached, or refuses the key, the model or the options.
    """
    if options.replay is not None:
        return []
    models = [options.model]
    if hasattr(options, "strategy") and STRATEGIES[options.strategy].asks_judge:
        models.append(judge_model(options))
    return asyncio.run(check_served(*service_of(options), models))


async def estimate(
    plan: RunPlan, prompter: Prompter, price: Price | None, max_reply_tokens: int | None, judged: bool
) -> Iterable[str]:
    """Lines on the tokens and the money that a plan takes: estimates from some of its first prompts, rendered here.

    `judged`: a judge is asked beside, whose calls are not in the estimate.
    """
    some = _spread(plan.problems, RENDERED)
    sizes = []
    for problem in some:
        prompt = await prompter.render(problem, None)
        sizes.append((len(prompt.text) + len(prompt.system or "")) / CHARACTERS)
    prompt_tokens = sum(sizes) / len(sizes)
    least, most = plan.fewest_calls * prompt_tokens, plan.most_calls * prompt_tokens * LATER
    lines = [
        f"prompts: about {prompt_tokens:,.0f} tokens each ({CHARACTERS} characters a token, by {len(some)} of them), "
        f"{least:,.0f} to {most:,.0f} in all"
    ]
    if price is not None:
        few, many = REPLY_TOKENS[0], max_reply_tokens or REPLY_TOKENS[1]
        low = _cost(price, least, plan.fewest_calls * min(few, many))
        high = _cost(price, most, plan.most_calls * many)
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


def _spread(problems: Sequence[Problem], most: int) -> list[Problem]:
    """Up to `most` of them, from all over the list."""
    step = max(1, len(problems) // most)
    return list(problems[::step])[:most]
