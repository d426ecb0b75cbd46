"""Stages, tries, skips and exits, against a lab that notes what it is asked for."""

from __future__ import annotations

from typing import cast

from support.noted_lab import NAME, NotedLab
from support.run_folder import compiled, correct, incorrect

from hkbench.categories import Advice, Category, Condition, Rule, StageGuide
from hkbench.lab import Lab
from hkbench.records import Verdict
from hkbench.strategies import Staged

WRONG = incorrect(NAME)


def stage(name: str, *skip: Rule) -> StageGuide:
    return StageGuide(name=name, focus=f"about {name}", guidance=(Advice(text="do it"),), skip=skip)


def category(*exits: Rule, skip: Rule | None = None) -> Category:
    second = stage("two", skip) if skip is not None else stage("two")
    return Category(name="c", title="a kind", stages=(stage("one"), second, stage("three")), exit=exits)


def when(why: str, **condition: object) -> Rule:
    return Rule(when=Condition.model_validate(condition), why=why)


async def played(kind: Category, *verdicts: Verdict, attempts: int = 8) -> NotedLab:
    lab = NotedLab([(verdict,) for verdict in verdicts], category=kind)
    await Staged().run(cast(Lab, lab), Staged.Options(attempts=attempts))
    return lab


def decided(lab: NotedLab) -> list[tuple[int, str, str]]:
    return [(attempt, what, choice) for attempt, what, choice, _ in lab.decisions]


async def test_a_seed_and_three_stages_each_from_the_best_so_far() -> None:
    lab = await played(category(), correct(NAME, 0.5), correct(NAME, 1.5), correct(NAME, 1.2), correct(NAME, 2.0))
    assert lab.stages == [None, "one", "two", "three"]
    assert [parent and parent.key.attempt for _, _, _, parent in lab.generations] == [None, 1, 2, 2]
    assert decided(lab) == [(2, "stage", "one"), (3, "stage", "two"), (4, "stage", "three")]
    assert lab.places == [(1, 3), (2, 3), (3, 3)]
    assert lab.results == [(2, "one", 0.5), (3, "two", 1.5), (4, "three", 1.5)]


async def test_what_a_try_broke_the_next_one_mends_and_no_third_is_made() -> None:
    lab = await played(category(), WRONG, correct(NAME, 0.5), WRONG, WRONG, correct(NAME, 0.9), correct(NAME, 1.0))
    assert lab.stages == [None, None, "one", "one", "two", "three"]
    parents = [parent and parent.key.attempt for _, _, _, parent in lab.generations]
    assert parents == [None, 1, 2, 3, 2, 5], "a stage begins with the best kernel, its second try with the broken one"


async def test_where_nothing_is_run_a_kernel_that_compiles_needs_no_second_try() -> None:
    lab = await played(category(), WRONG, compiled(NAME), compiled(NAME), compiled(NAME), compiled(NAME))
    assert lab.stages == [None, None, "one", "two", "three"]


async def test_a_rule_skips_a_stage_and_says_why() -> None:
    skip = when("fast enough", speedup_at_least=2.0)
    lab = await played(category(skip=skip), correct(NAME, 0.5), correct(NAME, 2.5), correct(NAME, 2.6))
    assert lab.stages == [None, "one", "three"]
    assert (2, "skip", "two", "fast enough") in lab.decisions
    assert lab.situations == [(0, None, None), (1, "one", 0.5), (1, "one", 0.5)], "a skipped stage is not finished"


async def test_a_rule_ends_the_problem_and_says_why() -> None:
    lab = await played(category(when("trails", stage=1, speedup_below=0.3)), correct(NAME, 0.2), correct(NAME, 0.2))
    assert lab.stages == [None, "one"]
    assert lab.decisions[-1] == (2, "exit", "before two", "trails")
    assert decided(lab)[-3:-1] == [(2, "left", "two"), (2, "left", "three")], "a report names what was left out"


async def test_a_condition_on_the_gain_of_the_last_stage() -> None:
    rule = when("gained nothing", gain_below=1.02)
    lab = await played(category(rule), correct(NAME, 1.0), correct(NAME, 1.5), correct(NAME, 1.5))
    assert lab.stages == [None, "one", "two"] and lab.decisions[-1][3] == "gained nothing"


async def test_the_budget_of_attempts_ends_it() -> None:
    lab = await played(category(), WRONG, correct(NAME, 0.5), WRONG, attempts=3)
    assert lab.stages == [None, None, "one"]
    assert lab.decisions[-1] == (3, "exit", "before two", "all 3 attempts are used")
    assert not any(what == "left" for _, what, _ in decided(lab)), "no rule left anything out"


def test_the_default_plan_has_room_for_every_try() -> None:
    options = Staged.Options()
    assert (options.samples, options.attempts) == (1, 8)
    assert (Staged().min_calls(options), Staged().max_calls(options)) == (1, 8)
