"""The replies of examples/replies/{judge,staged,graph}.toml: complete, labelled, and read as their labels say.

What the candidates do when they are built and run is the business of tests/integration/test_example_strategies_run.py,
in CUDA of tests/gpu/test_strategies_on_gpu.py.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import cast

import pytest
from support.noted_lab import NotedLab
from support.run_folder import correct, incorrect
from support.strategy_examples import BACKENDS, CORRECT, ROOT, Row, name, replies, rows

from hkbench.categories import Situation, load_categories
from hkbench.lab import Lab
from hkbench.llm.extract import extract
from hkbench.llm.replay import ReplayClient
from hkbench.llm.structured import read_answer
from hkbench.records import FORMS, AnswerForm, FailureKind, OperatorClass, QuestionKind, Reply
from hkbench.strategies import STRATEGIES, Staged
from scripts import compare_strategies

PROBLEMS = sorted(path.stem for path in ROOT.glob("problems/level1/*.py"))
WITH_REPLIES = {"cpp": range(1, 9), "cuda": range(1, 5), "hip": range(2, 3)}  #: problems by number
#: Which labels of what is no failure a collection has: one for hip is compiled and never run.
NO_FAILURE = {"cpp": {"correct"}, "cuda": {"fast", "slow"}, "hip": {"compiled"}}
ASKED_AGAIN = 2
COLLECTIONS = [*((strategy, backend) for strategy in ("judge", "staged") for backend in BACKENDS), ("graph", "cpp")]
#: Speed-up as measured on an H200, and share of the roofline; of problem 3's attempts and of slow ones about.
ON_AN_H200 = {
    (2, 1): (0.07, 0.03), (2, 2): (2.71, 0.88),
    (3, 1): (0.20, 0.02), (3, 4): (9.35, 0.70),
    (4, 1): (0.43, 0.08), (4, 2): (2.94, 0.53), (4, 3): (3.75, 0.68), (4, 4): (4.56, 0.82),
}  # fmt: skip
ANSWERS = [(backend, row) for backend in BACKENDS for row in rows("judge", backend) if row.judge]


@pytest.mark.parametrize(("strategy", "backend"), COLLECTIONS)
def test_the_readme_labels_every_reply_and_no_other(strategy: str, backend: str) -> None:
    table = rows(strategy, backend)
    labelled = [name(row) for row in table]
    assert len(labelled) == len(set(labelled))
    assert set(labelled) == replies(strategy, backend).keys()
    wanted = {problem for problem in PROBLEMS if int(problem.split("_")[0]) in WITH_REPLIES[backend]}
    assert {row.problem for row in table} == wanted


@pytest.mark.parametrize(("strategy", "backend"), COLLECTIONS)
def test_nobody_is_billed_for_a_reply_written_by_hand(strategy: str, backend: str) -> None:
    for reply in replies(strategy, backend).values():
        assert reply == Reply(text=reply.text, model="hand-written example", finish_reason=reply.finish_reason)


def question_of(row: Row, backend: str) -> QuestionKind:
    """What the judge is asked: by the verdict of the attempt before."""
    (before,) = [
        one
        for one in rows("judge", backend)
        if (one.problem, one.attempt, one.who) == (row.problem, row.attempt - 1, "sample_1")
    ]
    return QuestionKind.OPTIMISE if before.label in CORRECT else QuestionKind.REPAIR


@pytest.mark.parametrize(("backend", "row"), ANSWERS, ids=str)
def test_an_answer_of_the_judge_is_read_as_its_label_says(backend: str, row: Row) -> None:
    text = replies("judge", backend)[name(row)].text
    assert read_answer(text, FORMS[question_of(row, backend)]).form.value == row.label


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_judge_is_asked_again_after_an_unusable_answer_only(backend: str) -> None:
    forms = {(row.problem, row.attempt, row.who): row.label for row in rows("judge", backend) if row.judge}
    for problem, attempt, _ in forms:
        again = (problem, attempt, f"judge_{ASKED_AGAIN}") in forms
        assert again == (forms[problem, attempt, "judge_1"] == AnswerForm.UNUSABLE.value)


@pytest.mark.parametrize("backend", ["cpp", "cuda"])
def test_answers_come_in_every_form(backend: str) -> None:
    assert {row.label for of, row in ANSWERS if of == backend} == {form.value for form in AnswerForm}


@pytest.mark.parametrize(("strategy", "backend"), COLLECTIONS)
def test_the_code_in_a_reply_fits_its_label(strategy: str, backend: str) -> None:
    known = {kind.value for kind in FailureKind} | NO_FAILURE[backend]
    sources: dict[str, list[str]] = {}
    for row in (row for row in rows(strategy, backend) if not row.judge):
        assert row.label in known
        text = replies(strategy, backend)[name(row)].text
        before = sources.setdefault(row.problem, [])
        # A diff is against an earlier attempt; which one, the run decides.
        found = [source for parent in (None, *reversed(before)) if (source := extract(text, parent).source) is not None]
        assert bool(found) == (row.label != "no_code"), row
        for source in found[:1]:
            names = classes(source)
            assert (names is None) == (row.label == "syntax_error"), row
            assert names is None or ("ModelNew" in names) == (row.label != "no_model_new"), row
        before.extend(found[:1])


def classes(source: str) -> set[str] | None:
    """Names of the classes in a source; `None`: it is no Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


@dataclass
class Device(NotedLab):
    """Knows the share of the roofline that each attempt reaches, and what the reference holds."""

    number: int = 0
    classes: frozenset[OperatorClass] = frozenset()

    async def situation(self, stage: int, name: str | None, before: float | None) -> Situation:
        at = await super().situation(stage, name, before)
        assert self.best is not None
        _, roof = ON_AN_H200.get((self.number, self.best.key.attempt), (None, None))
        return at.model_copy(update={"roof": roof, "contains": self.classes, "steps": 4})


@pytest.mark.parametrize(
    ("number", "decisions"),
    [
        (1, {("left", "reductions"), ("exit", "before reductions")}),
        (2, {("skip", "access"), ("skip", "reductions")}),
        (3, {("skip", "reductions")}),
        (4, set()),
    ],
)
async def test_the_shipped_rules_lead_the_cuda_replies_through_the_labelled_stages(
    number: int, decisions: set[tuple[str, str]]
) -> None:
    table = [row for row in rows("staged", "cuda") if row.problem.startswith(f"{number}_") and row.who != "spare"]
    right = {row.attempt for row in table if row.label in CORRECT}
    assert right == {attempt for which, attempt in ON_AN_H200 if which == number}
    problem = table[0].problem
    lab = Device(
        [(correct(problem, ON_AN_H200[number, n][0]) if n in right else incorrect(problem),) for n in range(1, 9)],
        category=load_categories(ROOT / "prompts" / "categories.toml").category("fusion-memory"),
        number=number,
        classes=frozenset({OperatorClass.ELEMENTWISE} | ({OperatorClass.REDUCTION} if number == 4 else set())),
    )
    await Staged().run(cast(Lab, lab), Staged.Options())
    assert [stage or "seed" for stage in lab.stages] == [row.who for row in table]
    assert {(what, choice) for _, what, choice, _ in lab.decisions if what != "stage"} == decisions


NOTHING_TO_SEARCH = 4  #: the problem of which no first sample is right
EDITS = [2, 3, 4]


def test_a_graph_starts_from_a_sample_that_is_right_and_each_edit_has_a_reply() -> None:
    for problem in {row.problem for row in rows("graph")}:
        table = [row for row in rows("graph") if row.problem == problem]
        assert [row.who for row in table if row.attempt == 1] == ["sample_1", "sample_2", "sample_3"]
        starts = any(row.attempt == 1 and row.label in CORRECT for row in table)
        assert starts == (not problem.startswith(f"{NOTHING_TO_SEARCH}_"))
        assert [row.attempt for row in table if row.attempt > 1] == (EDITS if starts else [])


def test_no_edit_is_a_diff() -> None:
    for row in rows("graph"):
        found = extract(replies("graph")[name(row)].text, None)
        assert (found.source is not None) == (row.label != "no_code"), "it does not depend on the kernel before"


def test_the_replies_are_enough_for_all_strategies_at_six_calls() -> None:
    planned = compare_strategies.shapes(list(STRATEGIES), 6, {"judge": 3, "agents": 2}, {"reflect": 2})
    for shape in planned:
        client = ReplayClient(ROOT / "examples" / "replies" / f"{shape.strategy}.toml", "cpp")
        for problem in {row.problem for row in rows("judge")}:
            assert not client.missing(shape.sure_keys(problem))
