"""A strategy in one file and one registration: a beam search, in which a rule makes every second child.

Run as a script it is run_batch.py with --strategy beam.
"""

from __future__ import annotations

import re
import sys
from random import Random
from typing import Annotated

from pydantic import Field

from hkbench.cli.main import door
from hkbench.lab import Ask, Attempt, Lab, Proposal, Sample, ranked
from hkbench.records import Flag, Layout
from hkbench.strategies import Attempts, Seeded, Strategy, register


class BeamOptions(Seeded):
    attempts: Attempts = 7
    width: Annotated[int, Field(ge=1), Flag("W")] = 2
    """nodes of the tree that are worked on at once"""


class Beam(Strategy[BeamOptions]):
    """Ask for a seed; then take the best nodes, and give each a child of the model's and one of the rule's."""

    name = "beam"
    summary = "a beam search"
    Options = BeamOptions
    layout = Layout.TREE
    stepwise = True

    async def run(self, lab: Lab, options: BeamOptions) -> None:
        draw = lab.random(options.seed)
        await lab.expand([Ask(samples=options.samples)])
        left = options.attempts - 1
        while left > 0:
            steps: list[Ask | Proposal] = []
            for node in ranked(lab.samples)[: options.width]:
                steps += [Ask(node, lab.reflect_on(node), options.samples), halve(node, draw)]
            await lab.expand(steps[:left])
            left -= len(steps)

    def describe(self, attempt: Attempt) -> str | None:
        return "seed" if attempt.parent is None else attempt.rule or "refine"


def halve(node: Sample, draw: Random) -> Proposal:
    """Half of the rounds of every loop, and a number that is drawn."""
    source = node.candidate.source if node.candidate is not None else ""
    halved = re.sub(r"range\((\d+)\)", lambda found: f"range({int(found[1]) // 2})", source)
    return Proposal(f"{halved}# {draw.randrange(1 << 30)}\n", "halve", node)


if __name__ == "__main__":
    register(Beam())
    sys.exit(door("run"))
