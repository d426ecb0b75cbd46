"""The judge: what is asked and kept, a second request, going without, resuming."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support import doors
from support.run_folder import FACTS, incorrect, run_config

from hkbench.errors import ModelUnavailable
from hkbench.lab import Lab, Sample
from hkbench.lab.advice import Adviser
from hkbench.llm.client import ALWAYS, Permit
from hkbench.prompts import Question, Reflection, load_prompts
from hkbench.records import (
    Advice,
    AdviceAsked,
    AdviceFailed,
    AdviceRead,
    AdviceReceived,
    AnswerForm,
    AnyEvent,
    CallKey,
    Candidate,
    Decided,
    Extraction,
    ExtractionRule,
    Problem,
    Prompt,
    QuestionKind,
    RepairAdvice,
    Reply,
    SampleKey,
)
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder

NAME = "1_ReLU"
PROBLEM = Problem(number=1, name=NAME, level=1, path=Path(NAME), source="", sha256="0" * 64)
GOOD = json.dumps({"critical_issue": "a", "why_it_matters": "b", "minimal_fix_hint": "c"})
KEY = SampleKey(problem=NAME, attempt=1, sample=1)


class Judge:
    """Answers in turn, or fails."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[CallKey, str, type[Advice] | None]] = []

    async def complete(
        self,
        key: CallKey,
        prompt: str,
        form: type[Advice] | None = None,
        permit: Permit = ALWAYS,
        system: str | None = None,
    ) -> Reply:
        permit.begin()
        self.asked.append((key, prompt, form))
        if not self.answers:
            raise ModelUnavailable("gone")
        return Reply(text=self.answers.pop(0), model="sage", finish_reason="length")

    async def close(self) -> None:
        pass


class Prompter:
    """Shows what it was given."""

    backend = "cpp"
    book = load_prompts(doors.ROOT / "prompts")

    async def question(
        self, problem: Problem, kind: QuestionKind, reflection: Reflection, question: Question
    ) -> Prompt:
        shown = {"kind": kind, "code": reflection.code, "unusable": question.unusable, "because": question.because}
        return Prompt(text=json.dumps(shown), template="t", sha256="0" * 64)


class Bench:
    def __init__(self, root: Path) -> None:
        self.events: list[AnyEvent] = []
        self.recorder = Recorder(RunPaths(root), self.events.append)
        self.recorder.begin(run_config(), FACTS)

    def lab(self, judge: Judge) -> Lab:
        prompter = cast(Any, Prompter())
        adviser = Adviser(judge, "sage", prompter, self.recorder, {"temperature": 0.5})
        return Lab(PROBLEM, prompter, judge, cast(Any, SimpleNamespace()), self.recorder, "m", None, None, adviser)

    async def consulted(self, judge: Judge) -> Reflection:
        return await self.lab(judge).consult(QuestionKind.REPAIR, sample(), 2)


def sample() -> Sample:
    candidate = Candidate(source="the code", sha256="0" * 64)
    extraction = Extraction(rule=ExtractionRule.ONLY_BLOCK, source="the code")
    return Sample(KEY, Reply(text="", model="m"), extraction, candidate, incorrect(NAME))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path)
    yield one
    one.recorder.close()


async def test_the_advice_goes_with_the_verdict_of_the_same_kernel(bench: Bench) -> None:
    judge = Judge(GOOD)
    reflection = await bench.consulted(judge)
    assert reflection.advice == {"The critical issue": "a", "Why it matters": "b", "The smallest fix": "c"}
    assert (reflection.code, reflection.attempt, reflection.sample) == ("the code", 1, 1)
    ((key, prompt, form),) = judge.asked
    assert (key.attempt, key.folder, form) == (2, "judge_1", RepairAdvice)
    assert json.loads(prompt) == {"kind": "repair", "code": "the code", "unusable": None, "because": None}


async def test_question_and_answer_are_kept_with_what_was_sent(bench: Bench) -> None:
    await bench.consulted(Judge(GOOD))
    folder = bench.recorder.paths.root / NAME / "attempt_2" / "judge_1"
    assert json.loads((folder / "prompt.txt").read_text())["code"] == "the code"
    assert (folder / "response.txt").read_text() == GOOD
    assert json.loads((folder / "exchange.json").read_text())["request"] == {"temperature": 0.5, "model": "sage"}
    read = AdviceRead.model_validate_json((folder / "advice.json").read_text())
    assert (read.kind, read.about, read.said) == (QuestionKind.REPAIR, KEY, json.loads(GOOD))
    asked, received = bench.events
    assert isinstance(asked, AdviceAsked) and asked.about == KEY
    assert isinstance(received, AdviceReceived) and (received.form, received.model) == (AnswerForm.JSON, "sage")


async def test_an_unusable_answer_is_asked_for_once_more(bench: Bench) -> None:
    judge = Judge("I think it is fine.", GOOD)
    assert (await bench.consulted(judge)).advice
    again = json.loads(judge.asked[1][1])
    assert again["unusable"] == "I think it is fine." and "no JSON object" in again["because"]
    assert "length" in again["because"], "a cut reply says so"
    forms = [event.form for event in bench.events if isinstance(event, AdviceReceived)]
    assert forms == [AnswerForm.UNUSABLE, AnswerForm.JSON]


async def test_without_a_usable_answer_the_verdict_alone_goes_on_and_the_journal_says_so(bench: Bench) -> None:
    reflection = await bench.consulted(Judge("no", "no"))
    assert not reflection.advice and reflection.message
    (decided,) = [event for event in bench.events if isinstance(event, Decided)]
    assert decided.what == "advice" and "no JSON object" in decided.why


async def test_a_resume_asks_nothing_again_and_reads_the_same(bench: Bench) -> None:
    first = await bench.consulted(Judge("no", GOOD))
    before = len(bench.events)
    assert await bench.consulted(Judge()) == first
    assert len(bench.events) == before


async def test_a_resume_between_the_calls_goes_on_with_the_second(bench: Bench) -> None:
    with pytest.raises(ModelUnavailable):
        await bench.consulted(Judge("no"))
    assert isinstance(bench.events[-1], AdviceFailed)
    judge = Judge(GOOD)
    assert (await bench.consulted(judge)).advice
    assert [key.folder for key, _, _ in judge.asked] == ["judge_2"]
