"""What can be read as a judge's answer, and what cannot."""

from __future__ import annotations

import json

import jsonschema
import pytest

from hkbench.llm.structured import read_answer, schema_of, shape_of
from hkbench.records import AnswerForm, OptimisationAdvice, RepairAdvice

FIELDS = {"critical_issue": "the last row is left out", "why_it_matters": "it stays NaN", "minimal_fix_hint": "use <="}
GOOD = RepairAdvice(**FIELDS)
OBJECT = json.dumps(FIELDS)


@pytest.mark.parametrize(
    "text",
    [
        OBJECT,
        f"```json\n{OBJECT}\n```",
        f"```\n{OBJECT}\n```\nThat is all.",
        f"The kernel {{like this}} is wrong.\n\n{OBJECT}\n\nGood luck!",
        f'<think>{{"critical_issue": "a first thought"}}</think>{OBJECT}',
        json.dumps(FIELDS | {"confidence": 0.9}),
        json.dumps({"Critical Issue": FIELDS["critical_issue"], **dict(list(FIELDS.items())[1:])}),
        f"{json.dumps(FIELDS | {'critical_issue': 'the first draft'})}\nOn reflection:\n{OBJECT}",
    ],
    ids=["bare", "fenced", "no language", "prose", "thought", "more fields", "other names", "the last of two"],
)
def test_read_as_json(text: str) -> None:
    read = read_answer(text, RepairAdvice)
    assert (read.advice, read.form, read.note) == (GOOD, AnswerForm.JSON, None)


@pytest.mark.parametrize(
    "text",
    [
        OBJECT.replace('"', "'"),
        OBJECT[:-1] + ",}",
        OBJECT[:-1],
        f"```json\n{OBJECT[:-2]}",
        OBJECT.replace('": ', '": // here\n', 1),
    ],
    ids=["single quotes", "trailing comma", "no end", "cut in a block", "comment"],
)
def test_mended(text: str) -> None:
    read = read_answer(text, RepairAdvice)
    assert (read.advice, read.form) == (GOOD, AnswerForm.MENDED)
    assert read.note == "its JSON was mended"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "no JSON object"),
        ("The kernel is fine.", "no JSON object"),
        ('{"critical_issue": "the last row"}', "why_it_matters: field required"),
        (json.dumps(FIELDS | {"why_it_matters": "  "}), "why_it_matters: string should have at least 1 character"),
        (json.dumps(FIELDS | {"minimal_fix_hint": 7}), "minimal_fix_hint: input should be a valid string"),
        ("for (int i = 0; i < n; ++i) { y[i] = x[i]; }", ""),
        ("{" * 5000, ""),
    ],
)
def test_unusable(text: str, note: str) -> None:
    read = read_answer(text, RepairAdvice)
    assert read.advice is None and read.form is AnswerForm.UNUSABLE
    assert read.note is not None and note in read.note


def test_a_plan_of_steps_and_either_spelling() -> None:
    text = json.dumps({"bottleneck": "memory", "optimization_method": "tile", "modification_plan": ["load", "store"]})
    read = read_answer(text, OptimisationAdvice)
    assert read.advice == OptimisationAdvice(
        bottleneck="memory", optimisation_method="tile", modification_plan="load\nstore"
    )


def test_the_schema_holds_what_the_form_does() -> None:
    schema = schema_of(OptimisationAdvice)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(dict.fromkeys(OptimisationAdvice.model_fields, "x"), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"bottleneck": "x"}, schema)
    assert set(json.loads(shape_of(OptimisationAdvice))) == set(OptimisationAdvice.model_fields)
