"""What a plan says of the calls to come."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import doors

from hkbench.batch import make_plan
from hkbench.problems import find_problems
from hkbench.prompts import PromptBook, load_prompts
from hkbench.records import Problem
from hkbench.strategies import Judge, Reflect


@pytest.fixture
def problems(tmp_path: Path) -> tuple[Problem, ...]:
    for number, name in enumerate(("1_Softmax", "2_Swish", "4_Matmul"), start=1):
        doors.problem(tmp_path, name, number)
    return tuple(find_problems(tmp_path))


@pytest.fixture(scope="module")
def book() -> PromptBook:
    return load_prompts(doors.ROOT / "prompts")


def test_the_counts(problems: tuple[Problem, ...], book: PromptBook) -> None:
    plan = make_plan(problems, ((3, 3),), book, "cpp", Reflect(), Reflect.Options(samples=4, attempts=5))
    assert (plan.min_calls, plan.max_calls) == (3 * 4, 3 * 4 * 5)
    assert plan.missing == ((3, 3),)


def test_an_exhausting_plan_has_no_early_end(problems: tuple[Problem, ...], book: PromptBook) -> None:
    plan = make_plan(problems, (), book, "cpp", Reflect(), Reflect.Options(samples=2, attempts=3, exhaust=True))
    assert plan.min_calls == plan.max_calls == 18


def test_each_problem_has_its_own_template(problems: tuple[Problem, ...], book: PromptBook) -> None:
    plan = make_plan(problems, (), book, "cpp", Reflect(), Reflect.Options(samples=1, attempts=1))
    assert plan.templates == tuple(book.choose(problem.name, "cpp") for problem in problems)
    assert len(set(plan.templates)) > 1


def test_a_judge_is_asked_before_each_round_and_twice_at_the_most(
    problems: tuple[Problem, ...], book: PromptBook
) -> None:
    plan = make_plan(problems, (), book, "cpp", Judge(), Judge.Options())
    assert (plan.min_calls, plan.max_calls) == (3 * (11 + 10), 3 * (11 + 20))
