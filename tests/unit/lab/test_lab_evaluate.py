"""Verdicts: the same code is judged once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support import doors
from support.run_folder import FACTS, correct, incorrect, run_config

from hkbench.engine.completion import EvaluationResult
from hkbench.engine.slots import Devices
from hkbench.errors import BudgetReached, InternalError, Interrupted, WorkerLost
from hkbench.lab import Lab, Proposal, Stop, ranked
from hkbench.llm.client import ALWAYS, Permit
from hkbench.records import (
    Advice,
    AnyEvent,
    AttemptClosed,
    CallKey,
    Decided,
    EvaluationFailed,
    FailureKind,
    GenerationFailed,
    GenerationStarted,
    Problem,
    Prompt,
    Reply,
    SampleKey,
    SlotTimes,
    Stage,
    VerdictReached,
)
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder

NAME = "1_ReLU"
PROMPT = Prompt(text="write", template="t", sha256="0" * 64)
CODES = ("return x", "return x + 0", "return x")


class Client:
    def __init__(self, codes: Sequence[str] = CODES) -> None:
        self.codes = codes

    async def complete(
        self,
        key: CallKey,
        _prompt: str,
        _form: type[Advice] | None = None,
        permit: Permit = ALWAYS,
        system: str | None = None,
    ) -> Reply:
        assert isinstance(key, SampleKey)
        permit.begin()
        return Reply(text=doors.fenced(doors.candidate(self.codes[key.sample - 1])), model="m")

    async def close(self) -> None:
        pass


class Judge:
    """Gives each candidate another speed-up, and counts; fails as often as told."""

    def __init__(self, failures: int = 0, slowest: float = 1.5, late: int = 0) -> None:
        self.codes: list[str] = []
        self.late = late  # candidates that run out of time, the first ones
        self.failures = failures
        self.slowest = slowest

    async def evaluate(self, problem: Problem, code: Path, *_: object, **__: object) -> EvaluationResult:
        self.codes.append(code.read_text())
        number = len(self.codes)
        await asyncio.sleep(0.01)
        if number <= self.failures:
            raise WorkerLost("gone")
        found = correct(problem.name, self.slowest * number)
        if number <= self.late:
            found = incorrect(problem.name, FailureKind.TIMEOUT, Stage.RUN)
        digest = sha256(code.read_bytes()).hexdigest()
        conditions = found.conditions.model_copy(update={"candidate_sha256": digest})
        turns = SlotTimes(asked=1.0, building=2.0, loaded=3.0, device=0, lent=4.0, returned=4.0 + number)
        return EvaluationResult(found.model_copy(update={"conditions": conditions}), turns=turns)


class Bench:
    def __init__(self, root: Path) -> None:
        self.events: list[AnyEvent] = []
        self.recorder = Recorder(RunPaths(root), self.events.append)
        self.recorder.begin(run_config(samples=3), FACTS)

    def lab(self, judge: Judge, stop: Stop | None = None, codes: Sequence[str] = CODES) -> Lab:
        problem = Problem(number=1, name=NAME, level=1, path=Path(NAME), source="", sha256="0" * 64)
        prompter = SimpleNamespace(backend="cpp")
        return Lab(problem, cast(Any, prompter), Client(codes), cast(Any, judge), self.recorder, "m", stop=stop)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    one = Bench(tmp_path)
    yield one
    one.recorder.close()


async def test_the_same_code_is_judged_once_and_says_so(bench: Bench) -> None:
    judge = Judge()
    lab = bench.lab(judge)
    first, other, again = await lab.evaluate(await lab.generate(PROMPT, 1, 3))
    assert len(judge.codes) == 2
    assert first.verdict is not None and other.verdict is not None and again.verdict is not None
    assert first.verdict.speedup == again.verdict.speedup != other.verdict.speedup
    assert again.verdict.conditions.warnings == ("same code as 1.1, whose verdict this is",)
    assert again.verdict.copy_of == first.key and first.verdict.copy_of is None
    assert not first.verdict.conditions.warnings
    returned = [event.turns and event.turns.returned for event in bench.events if isinstance(event, VerdictReached)]
    assert sorted(returned, key=lambda end: end or 0.0) == [None, 5.0, 6.0]  # the repeated one had no device


async def test_a_later_attempt_and_a_resume_know_it_too(bench: Bench) -> None:
    lab = bench.lab(Judge())
    await lab.evaluate(await lab.generate(PROMPT, 1, 3))
    judge = Judge()
    resumed = bench.lab(judge)
    await resumed.evaluate(await resumed.generate(PROMPT, 1, 3))
    (later,) = await resumed.evaluate(await resumed.generate(PROMPT, 2, 1))
    assert judge.codes == []
    assert later.verdict is not None and later.verdict.copy_of == SampleKey(problem=NAME, attempt=1, sample=1)
    assert len(later.verdict.conditions.warnings) == 1


class Broken(Judge):
    """Fails at one candidate's code in a way that nobody foresaw."""

    async def evaluate(self, problem: Problem, code: Path, *rest: object, **named: object) -> EvaluationResult:
        if "x + 0" in code.read_text():
            raise RecursionError("\ud800 in the message")
        return await super().evaluate(problem, code, *rest, **named)


async def test_an_unforeseen_exception_ends_its_sample_only(bench: Bench) -> None:
    lab = bench.lab(Broken())
    judged = await lab.evaluate(await lab.generate(PROMPT, 1, 3))
    assert [sample.key.sample for sample in judged] == [1, 3]
    assert isinstance(lab.failed, InternalError)
    (event,) = [event for event in bench.events if isinstance(event, EvaluationFailed)]
    assert (event.key.sample, event.error) == (2, "InternalError")
    resumed = bench.lab(Judge())
    assert len(await resumed.evaluate(await resumed.generate(PROMPT, 1, 3))) == 3
    assert resumed.failed is None


async def test_where_no_sample_is_left_the_failure_is_raised(bench: Bench) -> None:
    lab = bench.lab(Broken(), codes=("return x + 0",))
    with pytest.raises(InternalError, match="RecursionError"):
        await lab.evaluate(await lab.generate(PROMPT, 1, 1))


async def test_a_failure_of_the_machine_is_no_verdict_for_either(bench: Bench) -> None:
    lab = bench.lab(Judge(failures=2))
    with pytest.raises(WorkerLost):
        await lab.evaluate(await lab.generate(PROMPT, 1, 3))
    judge = Judge()
    resumed = bench.lab(judge)
    judged = await resumed.evaluate(await resumed.generate(PROMPT, 1, 3))
    assert len(judge.codes) == 2 and all(sample.verdict is not None for sample in judged)


async def test_a_slow_one_has_one_verdict_too(bench: Bench) -> None:
    """A second measurement would let the luckier of the two count."""
    judge = Judge(slowest=0.25)
    lab = bench.lab(judge)
    first, _, again = await lab.evaluate(await lab.generate(PROMPT, 1, 3))
    assert len(judge.codes) == 2
    assert first.verdict is not None and again.verdict is not None
    assert first.verdict.speedup == again.verdict.speedup
    copied = [event for event in bench.events if isinstance(event, VerdictReached) and event.copy_of is not None]
    assert [(event.key, event.copy_of) for event in copied] == [(again.key, first.key)]


async def test_what_a_busy_machine_can_have_caused_is_judged_anew(bench: Bench) -> None:
    judge = Judge(late=1)
    lab = bench.lab(judge)
    first, _, again = await lab.evaluate(await lab.generate(PROMPT, 1, 3))
    assert len(judge.codes) == 3
    assert first.verdict is not None and first.verdict.failure is not None
    assert again.verdict is not None and again.verdict.failure is None and again.verdict.copy_of is None


class EndsAfter(Stop):
    """A run that is asked to stop after so many calls were begun."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def check(self) -> None:
        if not self.left:
            self.request(lambda: BudgetReached("spent"))
        self.left -= 1
        super().check()


async def test_at_a_budget_what_was_answered_is_judged_and_the_rest_not_begun(bench: Bench) -> None:
    judge = Judge()
    with pytest.raises(BudgetReached):
        await bench.lab(judge, EndsAfter(2)).generate(PROMPT, 1, 3)
    assert len(judge.codes) == 2
    started = [event.key.sample for event in bench.events if isinstance(event, GenerationStarted)]
    assert started == [1, 2]
    assert not any(isinstance(event, GenerationFailed | AttemptClosed) for event in bench.events)
    paths = bench.recorder.paths.problem(NAME)
    assert paths.best_code.read_text() == judge.codes[1]  # the later the quicker, of this judge
    judged = await bench.lab(judge).evaluate(await bench.lab(judge).generate(PROMPT, 1, 3))
    assert len(judge.codes) == 2 and len(judged) == 3  # the third has the first one's code


async def test_a_machine_that_fails_at_a_budget_leaves_the_sample_to_the_resume(bench: Bench) -> None:
    with pytest.raises(BudgetReached):
        await bench.lab(Judge(failures=1), EndsAfter(2)).generate(PROMPT, 1, 3)
    assert [event.key.sample for event in bench.events if isinstance(event, EvaluationFailed)] == [1]
    assert [event.key.sample for event in bench.events if isinstance(event, VerdictReached)] == [2]


class OneDevice(Judge):
    """Lends its device to one candidate after the other, as an Evaluator does; the first one waits for `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.device, self.lent, self.go_on = Devices([0]), asyncio.Event(), asyncio.Event()

    async def evaluate(self, problem: Problem, code: Path, *more: object, **named: object) -> EvaluationResult:
        entered = cast(Callable[[Stage, int | None], None], more[-1])
        entered(Stage.BUILD, None)
        async with self.device.one() as slot:
            entered(Stage.RUN, slot.device)
            self.lent.set()
            await self.go_on.wait()
            return await super().evaluate(problem, code, *more, **named)


async def test_at_a_time_limit_queued_evaluations_are_left_to_the_resume(bench: Bench) -> None:
    judge, stop = OneDevice(), Stop()
    codes = [f"return x + {i}" for i in range(30)]
    lab = bench.lab(judge, stop, codes)
    evaluation = asyncio.create_task(lab.evaluate(await lab.generate(PROMPT, 1, len(codes))))
    await judge.lent.wait()
    stop.expire(lambda: BudgetReached("late"))
    judge.go_on.set()
    with pytest.raises(BudgetReached):
        await evaluation
    verdicts = [event.key.sample for event in bench.events if isinstance(event, VerdictReached)]
    assert verdicts == [1] and len(judge.codes) == 1
    assert not any(isinstance(event, EvaluationFailed | AttemptClosed) for event in bench.events)

    later = Judge()
    resumed = bench.lab(later, None, codes)
    judged = await resumed.evaluate(await resumed.generate(PROMPT, 1, len(codes)))
    assert len(later.codes) == len(codes) - 1 and all(sample.verdict is not None for sample in judged)


async def test_a_measurement_beyond_the_grace_of_a_time_limit_is_left_too(bench: Bench) -> None:
    judge, stop = OneDevice(), Stop(grace=0.01)
    lab = bench.lab(judge, stop)
    evaluation = asyncio.create_task(lab.evaluate(await lab.generate(PROMPT, 1, 3)))
    await judge.lent.wait()
    stop.expire(lambda: BudgetReached("late"))
    with pytest.raises(BudgetReached):
        await evaluation
    assert not any(isinstance(event, VerdictReached | EvaluationFailed) for event in bench.events)


class Endless(Judge):
    """Begins, and comes to no verdict."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def evaluate(self, *_: object, **__: object) -> EvaluationResult:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_cancelled_evaluation_is_no_failure_of_the_machine(bench: Bench) -> None:
    stop, judge = Stop(), Endless()
    lab = bench.lab(judge, stop)
    evaluation = asyncio.create_task(lab.evaluate(await lab.generate(PROMPT, 1, 3)))
    await judge.begun.wait()
    stop.cancel(lambda: Interrupted("interrupted"))
    with pytest.raises(Interrupted):
        await evaluation
    assert not any(isinstance(event, EvaluationFailed | VerdictReached) for event in bench.events)
    assert stop.calls == 0


async def test_a_stage_says_whether_it_made_the_best_kernel_faster(bench: Bench) -> None:
    lab = bench.lab(Judge())
    lab.note_result(1, "none is correct", None)
    await lab.evaluate(await lab.generate(PROMPT, 1, 1))
    for stage, before in (("first", None), ("better", 1.0), ("as before", 1.5)):
        lab.note_result(2, stage, before)
    said = [(event.choice, event.why) for event in bench.events if isinstance(event, Decided)]
    assert said == [
        ("first", "first correct kernel, 1.50x"),
        ("better", "improved 1.00x -> 1.50x"),
        ("as before", "no improvement on 1.50x"),
    ]


class FirstIsLast(Judge):
    """Lets the first candidate wait until all others are judged."""

    def __init__(self, others: int) -> None:
        super().__init__()
        self._left = others
        self._done = asyncio.Event()

    async def evaluate(self, problem: Problem, code: Path, *rest: object, **named: object) -> EvaluationResult:
        if "first" in code.read_text():
            await self._done.wait()
        found = await super().evaluate(problem, code, *rest, **named)
        self._left -= 1
        if not self._left:
            self._done.set()
        return found


async def test_side_by_side_they_count_in_the_order_of_their_numbers(bench: Bench) -> None:
    lab = bench.lab(FirstIsLast(2))
    found = await lab.expand([Proposal(f"# {name}", "a rule") for name in ("first", "second", "third")])
    assert [one.key.attempt for (one,) in found] == [1, 2, 3]
    judged = [event.key.attempt for event in bench.events if isinstance(event, VerdictReached)]
    assert judged[-1] == 1, "which was judged last"
    assert [event.attempt for event in bench.events if isinstance(event, AttemptClosed)] == [1, 2, 3]
    assert [one.key.attempt for one in lab.samples] == [1, 2, 3]
    assert lab.best is not None and lab.best == ranked(lab.samples)[0]
    assert all(one.reply is None for one in lab.samples) and not lab.answered


async def test_a_resume_finds_the_tree_and_the_draws(bench: Bench) -> None:
    lab = bench.lab(Judge())
    (seed,) = (await lab.expand([Proposal("# seed", "a rule")]))[0]
    drawn = lab.random(7).random()
    await lab.expand([Proposal(f"# {drawn}", "a rule", seed)])
    judge = Judge()
    resumed = bench.lab(judge)
    (again,) = (await resumed.expand([Proposal("# another seed", "a rule")]))[0]
    assert again == seed, "as it lies in the folder"
    assert resumed.random(7).random() == drawn != resumed.random(8).random()
    await resumed.expand([Proposal(f"# {drawn}", "a rule", again)])
    assert judge.codes == [] and resumed.samples == lab.samples


async def test_the_same_code_is_measured_again_where_a_strategy_asks_for_it(bench: Bench) -> None:
    judge = Judge()
    lab = bench.lab(judge)
    ((first,), (copy,), (again,)) = await lab.expand(
        [Proposal("# same", "a rule"), Proposal("# same", "a rule"), Proposal("# same", "confirm", again=True)]
    )
    assert len(judge.codes) == 2
    assert copy.verdict is not None and copy.verdict.copy_of == first.key
    assert again.verdict is not None and again.verdict.copy_of is None
