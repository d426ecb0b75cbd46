"""The prompts of the agents: each question renders for every backend, with what the agent is given."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from prompts_samples import DEVICES, PROMPTS, ROOT, context, problem, timed, verdict_of

from hkbench.agents.compile_reasoner import CompileAdvice, CompileTask
from hkbench.agents.correctness_reasoner import CorrectnessAdvice, CorrectnessTask, Trial
from hkbench.agents.performance import PerformanceAdvice, Target, measure
from hkbench.agents.research import Finding, Research
from hkbench.llm.structured import shape_of
from hkbench.prompts import AgentHint, HintTopic, Question, SynthesisTask, load_prompts, reflect_on, render
from hkbench.records import Advice, BackendName, FailureKind, QuestionKind, Record, Verdict
from hkbench.registry import backend_names

BOOK = load_prompts(PROMPTS)
ONE = problem(ROOT / "problems" / "level1" / "4_RMSNorm_fp32.py")


@dataclass(frozen=True)
class Asked:
    verdict: Verdict
    form: type[Advice]
    told: Record
    shown: tuple[str, ...]


FOUND = Research(symbols=("mma",), findings=(Finding(where="kittens.cuh:12", text="template<int N> void mma();"),))
ASKED = {
    QuestionKind.MEND_BUILD: Asked(
        verdict_of(FailureKind.BUILD_ERROR),
        CompileAdvice,
        CompileTask(seen=2, research=FOUND),
        ("came 2 times", "kittens.cuh:12", "template<int N>"),
    ),
    QuestionKind.MEND_ANSWERS: Asked(
        verdict_of(FailureKind.WRONG_VALUES),
        CorrectnessAdvice,
        CorrectnessTask(constants={"BLOCK": 64}, tried=(Trial(change="patch", outcome="crash"),), left=1),
        ("BLOCK=64", "patch: crash", "1 more change"),
    ),
    QuestionKind.MEET_TARGET: Asked(
        timed(0.5),
        PerformanceAdvice,
        measure(timed(0.5), Target(speedup=1.2, roof=0.7)),
        ("Speed-up 0.5", "70% of the roofline", "is not known"),
    ),
}


@pytest.mark.parametrize("backend", backend_names())
@pytest.mark.parametrize("kind", ASKED)
def test_every_question_of_an_agent_renders(kind: QuestionKind, backend: BackendName) -> None:
    asked, device = ASKED[kind], DEVICES[backend][0]
    about = context(ONE, backend, device, reflect_on(asked.verdict, "class ModelNew: pass", 2, BOOK, backend))
    question = Question(shape=shape_of(asked.form), told=asked.told.model_dump(mode="json"))
    text = render(BOOK, BOOK.question(kind), about.model_copy(update={"question": question})).text
    assert ONE.name in text and "class ModelNew: pass" in text and question.shape in text
    assert all(shown in text for shown in asked.shown)
    assert not re.search(r"\{%|%\}", text)


def test_plan_and_hints_are_in_the_next_prompt() -> None:
    hints = tuple(AgentHint(topic=topic, text=f"the hint on {topic}", origin="rule") for topic in HintTopic)
    task = SynthesisTask(plan=("first a kernel that is right",), hints=hints)
    about = context(ONE, "cpp", DEVICES["cpp"][0]).model_copy(update={"task": task})
    text = render(BOOK, BOOK.choose(ONE.name, "cpp"), about).text
    assert "first a kernel that is right" in text and all(hint.text in text for hint in hints)
    without = render(BOOK, BOOK.choose(ONE.name, "cpp"), about.model_copy(update={"task": None})).text
    assert "What the other agents say" not in without
