"""Generations: each is recorded before it is used, and none is asked for twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from support import doors
from support.run_folder import FACTS, run_config

from hkbench.errors import HkbenchError, ModelUnavailable, ReplayMissing
from hkbench.lab import Lab
from hkbench.llm.client import ALWAYS, Permit
from hkbench.records import (
    Advice,
    AnyEvent,
    CallKey,
    ExtractionRule,
    GenerationFailed,
    GenerationStarted,
    Problem,
    ProblemFacts,
    Prompt,
    Reply,
    SampleKey,
    SizeSet,
    TensorFact,
)
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder

NAME = "1_ReLU"
PROMPT = Prompt(text="write", template="t", sha256="0" * 64)


class Client:
    """Answers as told, and counts."""

    def __init__(self, answer: Callable[[SampleKey], str]) -> None:
        self.answer = answer
        self.asked: list[int] = []

    async def complete(
        self,
        key: CallKey,
        prompt: str,
        form: type[Advice] | None = None,
        permit: Permit = ALWAYS,
        system: str | None = None,
    ) -> Reply:
        assert isinstance(key, SampleKey)
        assert prompt == PROMPT.text
        permit.begin()
        self.asked.append(key.sample)
        return Reply(text=self.answer(key), model="m")

    async def close(self) -> None:
        pass


class Prompting:
    """Knows the problem's tensors, as a prompter does."""

    backend = "cpp"

    async def facts(self, _problem: Problem) -> ProblemFacts:
        x, output = (TensorFact(name=name, shape=(8, 4), dtype="float32", strides=(4, 1)) for name in ("x", "output"))
        return ProblemFacts(sizes=SizeSet.FULL, inputs=(x,), init_inputs=(), outputs=(output,), parameters=())


class Bench:
    def __init__(self, root: Path) -> None:
        self.events: list[AnyEvent] = []
        self.recorder = Recorder(RunPaths(root), self.events.append)
        self.recorder.begin(run_config(), FACTS)

    def lab(self, client: Client) -> Lab:
        problem = Problem(number=1, name=NAME, level=1, path=Path(NAME), source="", sha256="0" * 64)
        return Lab(problem, cast(Any, Prompting()), client, cast(Any, None), self.recorder, "m")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path)
    yield one
    one.recorder.close()


async def test_a_reply_that_utf8_cannot_hold_is_the_same_now_and_after_a_resume(bench: Bench) -> None:
    """JSON may bring a lone surrogate; files cannot."""
    client = Client(lambda _: doors.fenced(doors.candidate("return x  # \ud83d")))
    (first,) = await bench.lab(client).generate(PROMPT, 1, 1)
    (again,) = await bench.lab(client).generate(PROMPT, 1, 1)
    assert client.asked == [1]
    assert first.candidate is not None
    assert first.candidate == again.candidate
    code = bench.recorder.sample(first.key).code.read_bytes()
    assert first.candidate.sha256 == sha256(code).hexdigest()


async def test_what_was_answered_is_kept_when_another_call_fails(bench: Bench) -> None:
    down = True

    def answer(key: SampleKey) -> str:
        if key.sample == 2 and down:
            raise ModelUnavailable("HTTP 503")
        return "a reply"

    client = Client(answer)
    lab = bench.lab(client)
    with pytest.raises(ModelUnavailable, match="HTTP 503"):
        await lab.generate(PROMPT, 1, 3)
    assert lab.answered
    assert sorted(client.asked) == [1, 2, 3]
    failed = [event for event in bench.events if isinstance(event, GenerationFailed)]
    assert [(event.key.sample, event.error) for event in failed] == [(2, "ModelUnavailable")]
    down = False
    samples = await bench.lab(client).generate(PROMPT, 1, 3)
    assert [sample.reply and sample.reply.text for sample in samples] == ["a reply"] * 3
    assert sorted(client.asked) == [1, 2, 2, 3]
    started = [event for event in bench.events if isinstance(event, GenerationStarted)]
    assert len(started) == 4


async def test_a_service_that_is_down_is_named_before_other_failures(bench: Bench) -> None:
    errors: dict[int, HkbenchError] = {1: ReplayMissing("no reply"), 2: ModelUnavailable("HTTP 401")}

    def answer(key: SampleKey) -> str:
        raise errors[key.sample]

    lab = bench.lab(Client(answer))
    with pytest.raises(ModelUnavailable):
        await lab.generate(PROMPT, 1, 2)
    assert not lab.answered


async def test_a_fault_of_hkbench_itself_goes_first(bench: Bench) -> None:
    def answer(key: SampleKey) -> str:
        raise ModelUnavailable("HTTP 401") if key.sample == 1 else KeyError("fault")

    with pytest.raises(KeyError):
        await bench.lab(Client(answer)).generate(PROMPT, 1, 2)


async def test_a_diff_applies_to_the_parent(bench: Bench) -> None:
    parent_client = Client(lambda _: doors.fenced(doors.fast(1)))
    (parent,) = await bench.lab(parent_client).generate(PROMPT, 1, 1)
    diff = (
        "```diff\n@@ -5,3 +5,3 @@\n class ModelNew(nn.Module):\n     def forward(self, x):\n-        return x * 2 + 1\n"
    )
    client = Client(lambda _: diff + "+        return x * 2 + 5\n```\n")
    (child,) = await bench.lab(client).generate(PROMPT, 2, 1, parent)
    assert child.candidate is not None, child.extraction
    assert child.candidate.source == doors.fast(5)


async def test_a_kernel_without_the_class_is_bound_and_recorded_so(bench: Bench) -> None:
    kernel = "void relu(const float* x, float* out, int64_t n) {\n  for (int64_t i = 0; i < n; ++i) out[i] = x[i];\n}"
    client = Client(lambda _: f"```cpp\n{kernel}\n```\n")
    (first,) = await bench.lab(client).generate(PROMPT, 1, 1)
    (again,) = await bench.lab(client).generate(PROMPT, 1, 1)
    assert client.asked == [1]
    assert first.extraction.rule is again.extraction.rule is ExtractionRule.BOUND
    assert first.candidate is not None and first.candidate == again.candidate
    assert kernel in first.candidate.source and "class ModelNew" in first.candidate.source


async def test_a_kernel_that_cannot_be_bound_stays_without_code_and_says_why(bench: Bench) -> None:
    client = Client(lambda _: "```cpp\nvoid relu(float* x, int64_t n) {}\n```\n")
    (sample,) = await bench.lab(client).generate(PROMPT, 1, 1)
    assert (sample.extraction.rule, sample.candidate) == (ExtractionRule.NONE, None)
    assert "store through one pointer" in str(sample.extraction.note)
