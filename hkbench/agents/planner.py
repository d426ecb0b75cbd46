"""The planner: what kind of problem it is, what bounds it, and which ways of making it fast there are. By rule."""

from __future__ import annotations

from typing import Literal

from hkbench.categories import Category, Situation
from hkbench.records import Record


class PlanTask(Record):
    """What the planner is given."""

    version: Literal[1] = 1
    category: Category
    situation: Situation
    target: str  #: in words


class Plan(Record):
    """What it answers."""

    version: Literal[1] = 1
    category: str
    bound: Literal["memory", "arithmetic"] | None  #: `None`: not known
    target: str
    approaches: tuple[str, ...]  #: ways to make such a problem fast, the first one first

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan for a prompt."""
        bound = {
            "memory": "The bytes that have to be moved bound it: read each input once, write each output once.",
            "arithmetic": "Its operations bound it: the product's inner loop decides.",
        }
        kind = f"Kind of problem: {self.category}."
        said = kind if self.bound is None else f"{kind} {bound[self.bound]}"
        return (said, f"First a kernel that is right; then {self.target}.", f"Begin with this: {self.approaches[0]}.")


def plan(task: PlanTask) -> Plan:
    """Return the plan for a problem."""
    ratio = task.situation.of_ridge
    bound: Literal["memory", "arithmetic"] | None = None
    if ratio is not None:
        bound = "arithmetic" if ratio >= 1.0 else "memory"
    approaches = tuple(stage.focus.rstrip(".") for stage in task.category.stages)
    return Plan(category=task.category.title, bound=bound, target=task.target, approaches=approaches)
