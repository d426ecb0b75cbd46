"""Attempts with reflection: the default strategy."""

from __future__ import annotations

from hkbench.lab import Lab, Plan, best_of


async def reflect(lab: Lab, plan: Plan) -> None:
    """Try, see what went wrong, say so in the next prompt."""
    hint = parent = None
    for attempt in range(1, plan.attempts + 1):
        prompt = await lab.prompt(attempt, hint)
        candidates = await lab.generate(prompt, attempt, plan.samples, parent)
        parent = best_of(await lab.evaluate(candidates))
        if parent.succeeded and not plan.exhaust:
            return
        hint = lab.reflect_on(parent)  # its error, or its profile when it is correct but slow
