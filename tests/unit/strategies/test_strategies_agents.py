"""Strategy agents on recorded replies: every branch, the four ends, what each prompt is told, and the resume."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.agents_bench import FROM, Played

from hkbench.agents.flow import ENDS, Branch, Step
from hkbench.llm.client import ALWAYS, NobodyClient, Permit
from hkbench.llm.replay import ReplayClient
from hkbench.prompts import HintTopic
from hkbench.records import Advice, AdviceReceived, AnyEvent, CallKey, Remedy, Reply, ReplyReceived, Role
from hkbench.store.events import read_history
from hkbench.store.layout import RunPaths
from hkbench.strategies import Agents, agents

REPLIES = Path(__file__).with_name("agents_replies.toml")
KNOWN = {
    "1_Known": "# VERDICT time 1.4 profiled\nclass ModelNew: pass\n",
    "2_KnownSlow": "# VERDICT time 1.1 profiled\nclass ModelNew: pass\n",
    "3_Long": "# VERDICT wrong 1.0\nclass ModelNew: pass\n",
}
#: By problem: the options, and the end.
PROBLEMS: dict[str, tuple[Mapping[str, Any], Step]] = {
    "1_Known": ({}, Step.MEMORY_HIT),
    "2_KnownSlow": ({}, Step.TARGET_MET),
    "3_Long": ({}, Step.TARGET_MET),
    "4_Stuck": ({"attempts": 3}, Step.FAILURE),
    "5_Wrong": ({"attempts": 3}, Step.FAILURE),
    "6_Silent": ({"attempts": 2, "max_tuning": 0}, Step.FAILURE),
    "7_Slow": ({"attempts": 2, "target_roof": 0.7}, Step.BEST_FOUND),
    "8_Emulated": ({}, Step.BEST_FOUND),
}


class Counting(ReplayClient):
    """Serves the recorded replies, and notes which were asked for."""

    def __init__(self) -> None:
        super().__init__(REPLIES, "cpp")
        self.asked: list[CallKey] = []

    async def complete(
        self,
        key: CallKey,
        prompt: str,
        form: type[Advice] | None = None,
        permit: Permit = ALWAYS,
        system: str | None = None,
    ) -> Reply:
        self.asked.append(key)
        return await super().complete(key, prompt, form, permit, system)


async def played(root: Path, name: str) -> Played:
    one = Played(root, Counting(), KNOWN)
    await one.run(name, PROBLEMS[name][0])
    return one


async def test_the_journal_shows_every_branch_and_every_end(tmp_path: Path) -> None:
    taken: set[str] = set()
    for name, (_, end) in PROBLEMS.items():
        one = await played(tmp_path / name, name)
        assert one.decided("end") == [end.value], name
        branches = [Branch[choice.upper()] for choice in one.decided("branch")]
        assert branches[0].source is Step.PLAN and branches[-1].target is end
        assert all(one.target is then.source for one, then in pairwise(branches))
        taken |= {branch.name for branch in branches}
    assert {branch.name for branch in Branch} == taken
    assert {end for _, end in PROBLEMS.values()} == ENDS


async def test_a_known_kernel_that_is_good_here_ends_the_problem_without_a_call(tmp_path: Path) -> None:
    one = Played(tmp_path, NobodyClient(), KNOWN)
    await one.run("1_Known")
    assert one.told.judged == [KNOWN["1_Known"]], "it is judged again here"
    assert not [event for event in one.events if isinstance(event, ReplyReceived | AdviceReceived)]


async def test_each_kind_of_hint_reaches_the_next_prompt(tmp_path: Path) -> None:
    one = await played(tmp_path, "3_Long")
    research = one.prompt("3_Long", 5)
    assert "parallel_for" in research and "ATen/Parallel" in research and ".h:" in research, "with file and line"
    assert "As I said: include ATen/Parallel.h." in research, "an answer that is no JSON is a hint as it stands"
    assert "### Diversity" in research and "failed in the way of attempt 3" in research
    assert "### Compile" not in one.prompt("3_Long", 4), "a refusal is no hint"
    assert "wider ones" in one.prompt("3_Long", 8) and "speed-up of 1.20x" in one.prompt("3_Long", 8)
    wrong = await played(tmp_path / "wrong", "5_Wrong")
    assert {*one.decided("hint"), *wrong.decided("hint")} == set(HintTopic)
    assert "Tried in vain: constants BLOCK=32" in wrong.prompt("5_Wrong", 3)
    assert "too large a block" in wrong.prompt("5_Wrong", 3)


async def test_a_reasoner_is_told_what_was_tried_and_found(tmp_path: Path) -> None:
    one = await played(tmp_path, "3_Long")
    paths = RunPaths(tmp_path).problem("3_Long")
    again = paths.advice(5, 1, Role.COMPILE_REASONER).prompt.read_text()
    assert "This error came 2 times" in again and "ATen/Parallel" in again
    tuning = paths.advice(7, 1, Role.CORRECTNESS_REASONER).prompt.read_text()
    assert "constants BLOCK=64: wrong_values" not in paths.advice(6, 1, Role.CORRECTNESS_REASONER).prompt.read_text()
    assert "BLOCK=64" in tuning and "1 more change" in tuning
    read = paths.advice(7, 1, Role.CORRECTNESS_REASONER).advice.read_text()
    assert '"version": 1' in read and '"constants"' in read, "what was given and answered, typed, is kept"
    roles = {event.key.role for event in one.events if isinstance(event, AdviceReceived)}
    assert roles == {Role.COMPILE_REASONER, Role.CORRECTNESS_REASONER, Role.PERFORMANCE_REASONER}


async def test_constants_are_changed_by_rule_and_a_diff_is_applied(tmp_path: Path) -> None:
    one = await played(tmp_path, "3_Long")
    tuned = [source for source in one.told.judged if "three" in source]
    assert [("\nBLOCK = 64" in source, "time 1.1" in source) for source in tuned] == [
        (False, False), (True, False), (True, True),
    ]  # fmt: skip


async def test_earlier_runs_are_part_of_the_research(tmp_path: Path) -> None:
    one = Played(tmp_path, Counting(), KNOWN)
    one.remedies = (Remedy(text="at::parallel_for needs <ATen/Parallel.h>", source=FROM, helped=3, tried=4),)
    await one.run("3_Long")
    assert "helped 3 of 4" in one.prompt("3_Long", 5)


class Killed(BaseException):
    """What a kill is for the coroutine."""


@pytest.mark.parametrize("name", ["3_Long", "5_Wrong"])
async def test_killed_anywhere_no_call_is_repeated_and_the_same_way_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(agents, "shelves", lambda *_: ())  # whose files are many, and what they say changes no way
    whole = await played(tmp_path / "whole", name)
    asked = [*whole.client.asked] if isinstance(whole.client, Counting) else []
    for point in range(3, len(whole.events), 7):
        client = Counting()
        cut = Played(tmp_path / f"cut_{point}", client, KNOWN)
        cut.stop_after = point
        with pytest.raises(Killed):
            await cut.run(name, PROBLEMS[name][0], Killed)
        answered = [event.key for event in _journal(cut.root) if isinstance(event, ReplyReceived | AdviceReceived)]
        cut.stop_after = None
        await cut.run(name, PROBLEMS[name][0])
        assert sorted(map(repr, {*client.asked})) == sorted(map(repr, asked))
        assert all(client.asked.count(key) == 1 for key in answered), "what was answered is not asked again"
        assert cut.decided("branch")[-len(whole.decided("branch")) :] == whole.decided("branch")


def _journal(root: Path) -> list[AnyEvent]:
    return list(read_history(RunPaths(root).journal))


def test_one_target_only() -> None:
    assert Agents.Options(target_roof=0.7).target is None
    with pytest.raises(ValidationError, match="give one of them"):
        Agents.Options(target=1.5, target_roof=0.7)
