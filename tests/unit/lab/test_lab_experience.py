"""What earlier runs know: asked once, recorded, and answered alike by a resume."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.run_folder import FACTS, incorrect, run_config

from hkbench.cli.arguments import PROMPTS
from hkbench.experience.facts import Traits
from hkbench.experience.fingerprint import Fingerprint, fingerprint
from hkbench.lab import Lab, Sample
from hkbench.lab.experience import Recaller
from hkbench.prompts import load_prompts
from hkbench.records import (
    AnyEvent,
    Bottleneck,
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
    ExperienceRecalled,
    Extraction,
    ExtractionRule,
    Failure,
    HintKind,
    KernelSource,
    KnownKernel,
    MoveGain,
    Pitfall,
    Problem,
    ProblemFacts,
    Prompt,
    PromptRendered,
    RecallKind,
    Remedy,
    SampleKey,
    SizeSet,
    Source,
    Status,
    TensorFact,
)
from hkbench.store.events import read_history
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder
from hkbench.store.state import RunState

NAME = "1_ReLU"
PROBLEM = Problem(number=1, name=NAME, level=1, path=Path(NAME), source="", sha256="0" * 64)
SOURCE = Source(run="run_a", problem="2_Tanh", attempt=2, sample=1)
MOVE = MoveGain(bottleneck=Bottleneck.GMEM, move="vectorise", tried=4, failed=1, gained=3, log_gain=0.6)
DEVICE = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU")


class Book:
    """An experience that counts how often it is asked."""

    def __init__(self, texts: Sequence[str] = (), code: str | None = None) -> None:
        self.texts, self.code, self.asked = texts, code, 0

    def kernel(self, problem: Problem, _traits: Traits, *_: object) -> KnownKernel | None:
        self.asked += 1
        assert problem == PROBLEM
        if self.code is None:
            return None
        origin = KernelSource(source=SOURCE, sha256="1" * 64, device_name="a CPU", status=Status.FAST)
        return KnownKernel(code=self.code, origin=origin)

    def remedies(self, _problem: Problem, failure: Fingerprint, _backend: str) -> tuple[Remedy, ...]:
        self.asked += 1
        return tuple(Remedy(text=text, symbol=failure.symbol, source=SOURCE, helped=3, tried=4) for text in self.texts)

    def moves(self, _problem: Problem, _backend: str) -> tuple[MoveGain, ...]:
        self.asked += 1
        return (MOVE,)

    def pitfalls(self, _problem: Problem, _backend: str) -> tuple[Pitfall, ...]:
        self.asked += 1
        known = (Remedy(text=text, source=SOURCE, helped=3, tried=4) for text in self.texts)
        return tuple(Pitfall(error="'relu6' was not declared", problems=2, remedy=one) for one in known)


class Prompts:
    """In place of a prompter: real hints, no rendering."""

    book, backend, settings = load_prompts(PROMPTS), "cpp", EvaluationSettings()

    async def facts(self, _: Problem) -> ProblemFacts:
        tensor = TensorFact(name="x", shape=(4, 4), dtype="float32", strides=(4, 1))
        return ProblemFacts(sizes=SizeSet.CPU, inputs=(tensor,), init_inputs=(), outputs=(tensor,), parameters=())


class Bench:
    """A run folder, opened once or again."""

    def __init__(self, root: Path) -> None:
        self.paths, self.events = RunPaths(root), list[AnyEvent]()
        self.recorder = Recorder(self.paths, self.events.append)
        config = run_config()
        self.recorder.begin(config, FACTS)
        self.recorder.save_reference(PROBLEM)
        self.recalled = RunState.after(read_history(self.paths.journal), config).problems[NAME].recalled

    def lab(self, book: Book | None) -> Lab:
        recaller = None if book is None else Recaller(book, PROBLEM, "cpp", self.recorder, self.recalled)
        evaluator = cast(Any, SimpleNamespace(device=DEVICE))
        return Lab(PROBLEM, cast(Any, Prompts()), cast(Any, None), evaluator, self.recorder, "m", recaller=recaller)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path)
    yield one
    one.recorder.close()


def failed(attempt: int, message: str = "a.cpp:1:2: error: 'relu6' was not declared in this scope") -> Sample:
    key = SampleKey(problem=NAME, attempt=attempt, sample=1)
    extraction = Extraction(rule=ExtractionRule.NONE, source=None)
    return Sample(key, None, extraction, None, incorrect(NAME, message=message))


def failure_of(sample: Sample) -> Failure:
    assert sample.verdict is not None and sample.verdict.failure is not None
    return sample.verdict.failure


async def test_without_an_experience_nothing_is_known_or_written(bench: Bench) -> None:
    lab = bench.lab(None)
    assert await lab.known_kernel() is None
    assert lab.known_remedies(failure_of(failed(1))) == ()
    assert lab.known_moves() == ()
    assert lab.reflect_on(failed(1)).remedies == ()
    assert bench.events == []


async def test_a_resume_is_answered_as_before_although_the_database_has_grown(bench: Bench) -> None:
    lab = bench.lab(Book(["declare it"], "class ModelNew: ..."))
    first = (await lab.known_kernel(), lab.known_remedies(failure_of(failed(1))), lab.known_moves())
    assert [event.found for event in bench.events if isinstance(event, ExperienceRecalled)] == [True] * 3
    bench.recorder.close()
    again, grown = Bench(bench.paths.root), Book(["include it", "declare it"], "class ModelNew: pass")
    lab = again.lab(grown)
    assert (await lab.known_kernel(), lab.known_remedies(failure_of(failed(7))), lab.known_moves()) == first
    assert grown.asked == 0
    bench.recorder = again.recorder


async def test_that_nothing_was_known_is_recorded_too(bench: Bench) -> None:
    book = Book()
    lab = bench.lab(book)
    assert [await lab.known_kernel() for _ in range(2)] == [None, None]
    assert [lab.known_remedies(failure_of(failed(n))) for n in (1, 2)] == [(), ()]
    assert book.asked == len(bench.events) == 2


async def test_the_next_prompt_shows_remedies_and_never_one_that_was_shown_in_vain(bench: Bench) -> None:
    lab = bench.lab(Book(["declare it", "include it"]))
    shown = [[one.text for one in lab.reflect_on(failed(n)).remedies] for n in (1, 1, 2, 3)]
    assert shown == [["declare it"], ["declare it"], ["include it"], []]


async def test_the_journal_says_which_hints_a_prompt_showed(bench: Bench) -> None:
    lab = bench.lab(Book(["declare it"]))
    reflection = lab.reflect_on(failed(1))
    bench.recorder.save_prompt = lambda *_: None  # type: ignore[method-assign]
    cast(Any, lab)._prompter.render = lambda *_: _prompt()
    await lab.prompt(2, reflection)
    [event] = [event for event in bench.events if isinstance(event, PromptRendered)]
    assert [hint.text for hint in event.hints if hint.kind is HintKind.REMEDY] == ["declare it"]
    assert {hint.text for hint in event.hints if hint.kind is HintKind.RULE} == set(reflection.hints) != set()


async def test_each_prompt_is_told_of_the_pitfalls_that_the_first_one_was_told_of(bench: Bench) -> None:
    lab, told = bench.lab(Book(["declare it"])), []
    bench.recorder.save_prompt = lambda *_: None  # type: ignore[method-assign]

    async def rendered(*arguments: object) -> Prompt:
        told.append(arguments[-1])
        return await _prompt()

    cast(Any, lab)._prompter.render = rendered
    for attempt in (1, 2):
        await lab.prompt(attempt, None)
    assert told[0] == told[1] and [one.remedy.text for one in cast(Any, told[0])] == ["declare it"]
    [event] = [event for event in bench.events if isinstance(event, ExperienceRecalled)]
    assert event.found and event.what is RecallKind.PITFALLS


async def _prompt() -> Prompt:
    return Prompt(text="p", template="t", sha256="0" * 64)


def test_the_question_is_of_the_failure_not_of_the_sample() -> None:
    one, other = (fingerprint(failure_of(failed(n, f"a{n}.cpp:{n}:2: error: expected ';'"))) for n in (1, 2))
    assert one == other
