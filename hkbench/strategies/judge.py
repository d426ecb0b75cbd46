"""The judge loop: a second reader of every kernel says what to mend, or what to make faster."""

from __future__ import annotations

from hkbench.lab import Lab, Plan, best_of
from hkbench.records import QuestionKind


async def judge(lab: Lab, plan: Plan) -> None:
    """A seed, then rounds: repair or optimise, as the kernel that a round starts from demands."""
    hint = kernel = None
    for attempt in range(1, plan.attempts + 1):
        prompt = await lab.prompt(attempt, hint)
        candidates = await lab.generate(prompt, attempt, plan.samples, kernel)
        kernel = best_of(await lab.evaluate(candidates))
        if attempt == plan.attempts:
            return
        if plan.from_best and lab.best is not None and lab.best.sound:
            kernel = lab.best
        question = QuestionKind.OPTIMISE if kernel.sound else QuestionKind.REPAIR
        hint = await lab.consult(question, kernel, attempt + 1)
