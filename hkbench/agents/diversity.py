"""The diversity agent: whether the attempts repeat themselves, and what to do instead. By rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hkbench.prompts import AgentHint, HintTopic
from hkbench.records import Record

_SHOWN = 4  #: attempts that the hint names, the last ones


class Past(Record):
    """An attempt, as far as it tells whether another one is the same."""

    attempt: int
    key: str | None  #: of its code; `None`: there was none
    error: str | None  #: by which failures count as the same
    outcome: str
    gained: bool  #: it is better than all before it


class DiversityTask(Record):
    """What the agent is given."""

    version: Literal[1] = 1
    past: tuple[Past, ...]
    approaches: tuple[str, ...]  #: of the plan
    given: int  #: hints of this kind so far


def repeats(past: Sequence[Past]) -> str | None:
    """Say in which way the last attempt repeats earlier ones; `None`: it does not."""
    if not past:
        return None
    last, before = past[-1], past[:-1]
    same = next((one for one in before if one.key is not None and one.key == last.key), None)
    if same is not None:
        return f"attempt {last.attempt} is the code of attempt {same.attempt} again"
    failed = [one.attempt for one in before if one.error is not None and one.error == last.error]
    if failed:
        return f"attempt {last.attempt} failed in the way of attempt {failed[-1]}"
    if len(past) > 1 and last.error is None and not (last.gained or past[-2].gained):
        return f"attempts {past[-2].attempt} and {last.attempt} brought nothing"
    return None


def hint(task: DiversityTask, why: str) -> AgentHint:
    """Return the hint for the next kernel: what was tried, and another approach."""
    tried = [f"- attempt {one.attempt}: {one.outcome}" for one in task.past[-_SHOWN:]]
    approach = task.approaches[(task.given + 1) % len(task.approaches)]
    lines = [f"{why[0].upper()}{why[1:]}. Tried so far:", *tried]
    lines.append(f"Do not vary that once more. Write the kernel in another way, for instance: {approach}.")
    return AgentHint(topic=HintTopic.DIVERSITY, text="\n".join(lines), origin="rule")
