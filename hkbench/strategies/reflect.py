"""Attempts with reflection: the default strategy."""

from __future__ import annotations

from hkbench.lab import Lab, best_of
from hkbench.strategies.base import Attempts, Options, Samples, Strategy


class ReflectOptions(Options):
    samples: Samples = 3
    attempts: Attempts = 3
    exhaust: bool = False
    """use every attempt, also after a success"""


class Reflect(Strategy[ReflectOptions]):
    """Try, see what went wrong, say so in the next prompt."""

    name = "reflect"
    summary = "attempts, each told of the best sample before it"
    Options = ReflectOptions

    async def run(self, lab: Lab, options: ReflectOptions) -> None:
        hint = parent = None
        for attempt in range(1, options.attempts + 1):
            prompt = await lab.prompt(attempt, hint)
            candidates = await lab.generate(prompt, attempt, options.samples, parent)
            parent = best_of(await lab.evaluate(candidates))
            if parent.succeeded and not options.exhaust:
                return
            hint = lab.reflect_on(parent)  # its error, or its profile when it is correct but slow

    def ends_early(self, options: ReflectOptions) -> bool:
        return not options.exhaust
