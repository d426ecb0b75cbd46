"""The judge loop: a second reader of every kernel says what to fix, or what to make faster."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from hkbench.lab import Attempt, Lab, best_of
from hkbench.records import Flag, QuestionKind
from hkbench.strategies.base import Attempts, Options, Strategy


class JudgeOptions(Options):
    attempts: Attempts = 11
    rounds: Annotated[int | None, Field(ge=1, exclude=True), Flag("N")] = None
    """rounds after the seed (default: 10)"""

    start: Annotated[Literal["best", "last"], Flag(name="--from")] = "last"
    """the kernel that a round starts from"""

    @model_validator(mode="before")
    @classmethod
    def _count_seed(cls, told: dict[str, Any]) -> dict[str, Any]:
        if told.get("rounds") is None:
            return told
        if told.get("attempts") is not None:
            raise ValueError("--rounds N is the same as --attempts N+1: give one of them")
        return {**told, "attempts": told["rounds"] + 1}


class Judge(Strategy[JudgeOptions]):
    """A seed, then rounds: repair or optimise, as the kernel that a round starts from demands."""

    name = "judge"
    summary = "rounds, each told what a second model says of the last kernel"
    Options = JudgeOptions
    stepwise = asks_judge = profiles_fast = True

    async def run(self, lab: Lab, options: JudgeOptions) -> None:
        hint = kernel = None
        for attempt in range(1, options.attempts + 1):
            prompt = await lab.prompt(attempt, hint)
            candidates = await lab.generate(prompt, attempt, options.samples, kernel)
            kernel = best_of(await lab.evaluate(candidates))
            if attempt == options.attempts:
                return
            if options.start == "best" and lab.best is not None and lab.best.sound:
                kernel = lab.best
            question = QuestionKind.OPTIMISE if kernel.sound else QuestionKind.REPAIR
            hint = await lab.consult(question, kernel, attempt + 1)

    def describe(self, attempt: Attempt) -> str | None:
        return "seed" if attempt.number == 1 else attempt.question
