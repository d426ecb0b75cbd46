"""Staged optimisation: the stages of the problem's category, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hkbench.categories import StageGuide, first
from hkbench.lab import Lab, Plan, best_of

TRIES = 2  #: attempts of a stage: the second one mends what the first one broke


async def staged(lab: Lab, plan: Plan) -> None:
    """A seed, then each stage from the best kernel so far; rules leave stages out and end the problem early."""
    category = await lab.classify()
    attempts = iter(range(1, plan.attempts + 1))
    attempt = await _work(lab, plan, attempts, None)
    done, last, before = 0, None, None
    for number, stage in enumerate(category.stages):
        at = await lab.situation(done, last, before)
        if rule := first(category.exit, at):
            for left in category.stages[number:]:
                lab.decide(attempt, "left", left.name, rule.why)
            lab.decide(attempt, "exit", f"before {stage.name}", rule.why)
            return
        if rule := first(stage.skip, at):
            lab.decide(attempt, "skip", stage.name, rule.why)
            continue
        if attempt == plan.attempts:
            lab.decide(attempt, "exit", f"before {stage.name}", f"all {plan.attempts} attempts are used")
            return
        lab.decide(attempt + 1, "stage", stage.name, stage.focus, number + 1, len(category.stages))
        attempt = await _work(lab, plan, attempts, stage)
        lab.note_result(attempt, stage.name, at.speedup)
        done, last, before = done + 1, stage.name, at.speedup


async def _work(lab: Lab, plan: Plan, attempts: Iterator[int], stage: StageGuide | None) -> int:
    """Attempts until one is correct (or compiles, where nothing is run), at most `TRIES`; the last one's number."""
    kernel, attempt = lab.best, 0
    for attempt in islice(attempts, TRIES):
        hint = lab.reflect_on(kernel, stage) if kernel is not None else None
        prompt = await lab.prompt(attempt, hint, stage)
        kernel = best_of(await lab.evaluate(await lab.generate(prompt, attempt, plan.samples, kernel)))
        if kernel.sound:
            break
    return attempt
