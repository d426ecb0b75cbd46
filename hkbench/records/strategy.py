"""What run.json keeps of the strategy of a run: enough for readers, which do not need the strategy's code."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import JsonValue

from hkbench.records.base import Record


class Layout(StrEnum):
    """How reports and displays draw the attempts of a problem."""

    ATTEMPTS = "attempts"  #: a grid of attempts and samples
    TREE = "tree"  #: each attempt below the one that its kernel comes from


class RunStrategy(Record):
    """The strategy of a run, with its options beside `samples` and `attempts`."""

    name: str
    options: dict[str, JsonValue] = {}
    layout: Layout = Layout.ATTEMPTS
    stepwise: bool = False  #: each attempt is a step from another one: evaluation/*.json and score.png are written
    ends_early: bool = False  #: a problem ends at its first success


def older_strategy(run: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a run, of schema_version 1, that recorded its strategy as a name with options beside it.

    Settings of a run that has the strategy as a record are returned as they are.
    """
    name = run.get("strategy", "reflect")
    if not isinstance(name, str):
        return run
    rest = {key: value for key, value in run.items() if key not in ("strategy", "exhaust", "from_best")}
    exhaust, from_best = run.get("exhaust", False), run.get("from_best", False)
    if name == "reflect":
        found = RunStrategy(name=name, options={"exhaust": exhaust}, ends_early=not exhaust)
    elif name == "judge":
        found = RunStrategy(name=name, options={"start": "best" if from_best else "last"}, stepwise=True)
    else:
        found = RunStrategy(name=name, stepwise=name == "staged", ends_early=name == "staged")
    return rest | {"strategy": found}
