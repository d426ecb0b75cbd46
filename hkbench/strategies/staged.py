"""Staged optimisation: the stages of the problem's category, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hkbench.categories import STAGES, StageGuide, first
from hkbench.lab import Attempt, Lab, best_of
from hkbench.strategies.base import Attempts, Options, Strategy

TRIES = 2  #: attempts of a stage: the second one fixes what the first one broke


class StagedOptions(Options):
    attempts: Attempts = (1 + STAGES) * TRIES


class Staged(Strategy[StagedOptions]):
    """A seed, then each stage from the best kernel so far; rules leave stages out and end the problem early."""

    name = "staged"
    summary = "the stages of the problem's category"
    Options = StagedOptions
    stepwise = uses_categories = profiles_fast = True

    async def run(self, lab: Lab, options: StagedOptions) -> None:
        category = await lab.classify()
        attempts = iter(range(1, options.attempts + 1))
        attempt = await self._work(lab, options, attempts, None)
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
            if attempt == options.attempts:
                why = f"all {options.attempts} attempts are used"
                lab.decide(attempt, "exit", f"before {stage.name}", why)
                return
            lab.decide(attempt + 1, "stage", stage.name, stage.focus, number + 1, len(category.stages))
            attempt = await self._work(lab, options, attempts, stage)
            lab.note_result(attempt, stage.name, at.speedup)
            done, last, before = done + 1, stage.name, at.speedup

    async def _work(self, lab: Lab, options: StagedOptions, attempts: Iterator[int], stage: StageGuide | None) -> int:
        """Try until a kernel is correct (or compiles, where nothing is run), at most `TRIES` times.

        Returns the number of the last attempt.
        """
        kernel, attempt = lab.best, 0
        for attempt in islice(attempts, TRIES):
            hint = lab.reflect_on(kernel, stage) if kernel is not None else None
            prompt = await lab.prompt(attempt, hint, stage)
            kernel = best_of(await lab.evaluate(await lab.generate(prompt, attempt, options.samples, kernel)))
            if kernel.sound:
                break
        return attempt

    def describe(self, attempt: Attempt) -> str | None:
        return attempt.stage or "seed"

    def ends_early(self, options: StagedOptions) -> bool:
        del options
        return True  # a rule may end a problem after its seed
