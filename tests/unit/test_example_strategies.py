"""The replies below examples/strategies: complete, labelled, and read as their labels say.

What the candidates do when they are built and run is tests/integration/test_example_strategies_run.py's business.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from support.strategy_examples import ROOT, Row, response, responses, rows

from hkbench.llm import read_answer
from hkbench.llm.extract import extract
from hkbench.records import FORMS, AnswerForm, FailureKind, QuestionKind, Reply

PROBLEMS = sorted(path.stem for path in ROOT.glob("problems/level1/*.py"))
ASKED_AGAIN = 2
JUDGED = [*rows("judge"), *rows("judge", "hip")]


EACH = pytest.mark.parametrize(
    ("strategy", "backend"), [("judge", "cpp"), ("staged", "cpp"), ("judge", "hip"), ("staged", "hip")]
)


@EACH
def test_the_readme_labels_every_reply_and_no_other(strategy: str, backend: str) -> None:
    labelled = [response(strategy, row) for row in rows(strategy, backend)]
    assert len(labelled) == len(set(labelled))
    assert set(labelled) == set(responses(strategy, backend))


@pytest.mark.parametrize("strategy", ["judge", "staged"])
def test_all_small_problems_have_replies_for_a_cpu(strategy: str) -> None:
    assert {row.problem for row in rows(strategy)} == {name for name in PROBLEMS if int(name.split("_")[0]) <= 8}


@pytest.mark.parametrize(
    "path", [*responses("judge"), *responses("staged")], ids=lambda path: "-".join(path.parts[-6:-1])
)
def test_a_reply_has_its_record(path: Path) -> None:
    record = json.loads(path.with_name("exchange.json").read_text(encoding="utf-8"))
    reply = Reply.model_validate({**record, "text": path.read_text(encoding="utf-8")})
    assert reply.model == "hand-written example"
    assert reply.usage.input is None, "nobody was billed for a reply written by hand"


def question_of(row: Row) -> QuestionKind:
    """What the judge is asked: by the verdict of the attempt before."""
    (before,) = [
        one
        for one in rows("judge", row.backend)
        if (one.problem, one.attempt, one.who) == (row.problem, row.attempt - 1, "sample_1")
    ]
    return QuestionKind.OPTIMISE if before.label in ("correct", "compiled") else QuestionKind.REPAIR


@pytest.mark.parametrize("row", [row for row in JUDGED if row.judge], ids=str)
def test_an_answer_of_the_judge_is_read_as_its_label_says(row: Row) -> None:
    read = read_answer(response("judge", row).read_text(encoding="utf-8"), FORMS[question_of(row)])
    assert read.form.value == row.label


def test_the_judge_is_asked_again_after_an_unusable_answer_only() -> None:
    forms = {(f"{row.backend} {row.problem}", row.attempt, row.who): row.label for row in JUDGED if row.judge}
    for problem, attempt, _ in forms:
        again = (problem, attempt, f"judge_{ASKED_AGAIN}") in forms
        assert again == (forms[problem, attempt, "judge_1"] == AnswerForm.UNUSABLE.value)
    assert set(forms.values()) == {form.value for form in AnswerForm}


@EACH
def test_the_code_in_a_reply_fits_its_label(strategy: str, backend: str) -> None:
    known = {kind.value for kind in FailureKind} | {"correct" if backend == "cpp" else "compiled"}
    sources: dict[str, list[str]] = {}
    for row in (row for row in rows(strategy, backend) if not row.judge):
        assert row.label in known
        text = response(strategy, row).read_text(encoding="utf-8")
        before = sources.setdefault(row.problem, [])
        # A diff is against an earlier attempt; which one, the run decides.
        found = [source for parent in (None, *reversed(before)) if (source := extract(text, parent).source) is not None]
        assert bool(found) == (row.label != "no_code"), row
        for source in found[:1]:
            names = {node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
            assert ("ModelNew" in names) == (row.label != "no_model_new"), row
        before.extend(found[:1])
