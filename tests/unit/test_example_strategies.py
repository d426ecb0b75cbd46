"""The replies below examples/strategies: complete, labelled, and read as their labels say.

What the candidates do when they are built and run is the business of tests/integration/test_example_strategies_run.py,
in CUDA of tests/gpu/test_strategies_on_gpu.py.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from support.strategy_examples import BACKENDS, CORRECT, EXAMPLES, ROOT, Row, response, responses, rows

from hkbench.llm import read_answer
from hkbench.llm.extract import extract
from hkbench.records import FORMS, AnswerForm, FailureKind, QuestionKind, Reply

PROBLEMS = sorted(path.stem for path in ROOT.glob("problems/level1/*.py"))
LAST = {"cpp": 8, "cuda": 4}
ASKED_AGAIN = 2
COLLECTIONS = [(strategy, backend) for strategy in ("judge", "staged") for backend in BACKENDS]
ANSWERS = [(backend, row) for backend in BACKENDS for row in rows("judge", backend) if row.judge]


def test_no_folder_is_left_out() -> None:
    assert {tuple(path.relative_to(EXAMPLES).parts) for path in EXAMPLES.glob("*/*")} == set(COLLECTIONS)


@pytest.mark.parametrize(("strategy", "backend"), COLLECTIONS)
def test_the_readme_labels_every_reply_and_no_other(strategy: str, backend: str) -> None:
    table = rows(strategy, backend)
    labelled = [response(strategy, row, backend) for row in table]
    assert len(labelled) == len(set(labelled))
    assert set(labelled) == set(responses(strategy, backend))
    wanted = {name for name in PROBLEMS if int(name.split("_")[0]) <= LAST[backend]}
    assert {row.problem for row in table} == wanted


@pytest.mark.parametrize(
    "path", [*responses("judge"), *responses("staged")], ids=lambda path: "-".join(path.parts[-6:-1])
)
def test_a_reply_has_its_record(path: Path) -> None:
    record = json.loads(path.with_name("exchange.json").read_text(encoding="utf-8"))
    reply = Reply.model_validate({**record, "text": path.read_text(encoding="utf-8")})
    assert reply.model == "hand-written example"
    assert reply.usage.input is None, "nobody was billed for a reply written by hand"


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
    text = response("judge", row, backend).read_text(encoding="utf-8")
    assert read_answer(text, FORMS[question_of(row, backend)]).form.value == row.label


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_judge_is_asked_again_after_an_unusable_answer_only(backend: str) -> None:
    forms = {(row.problem, row.attempt, row.who): row.label for row in rows("judge", backend) if row.judge}
    for problem, attempt, _ in forms:
        again = (problem, attempt, f"judge_{ASKED_AGAIN}") in forms
        assert again == (forms[problem, attempt, "judge_1"] == AnswerForm.UNUSABLE.value)
    assert set(forms.values()) == {form.value for form in AnswerForm}


@pytest.mark.parametrize(("strategy", "backend"), COLLECTIONS)
def test_the_code_in_a_reply_fits_its_label(strategy: str, backend: str) -> None:
    known = {kind.value for kind in FailureKind} | CORRECT
    sources: dict[str, list[str]] = {}
    for row in (row for row in rows(strategy, backend) if not row.judge):
        assert row.label in known
        text = response(strategy, row, backend).read_text(encoding="utf-8")
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
