"""A search over edits, against a lab that times a kernel by what its source says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from pydantic import ValidationError
from support.noted_lab import NAME
from support.run_folder import compiled, correct, incorrect

from hkbench.errors import UsageError
from hkbench.lab import Ask, Attempt, Lab, Proposal, Sample
from hkbench.moves import MOVES
from hkbench.records import Candidate, Extraction, ExtractionRule, Interval, MoveGain, MoveGains, SampleKey, Verdict
from hkbench.search import SearchMismatch
from hkbench.strategies import Graph

START = """
import triton.language as tl
kernel[(1,)](BLOCK=128, num_warps=8, num_stages=3)
"""


def time_of(source: str) -> float:
    """Return a time that is least at BLOCK 512, two warps and five stages."""
    names = ("BLOCK", "num_warps", "num_stages")
    block, warps, stages = (int(re.findall(rf"{name}=(\d+)", source)[0]) for name in names)
    return 1.0 + abs(block.bit_length() - 10) + 0.5 * abs(warps.bit_length() - 2) + 0.2 * abs(stages - 5)


class TimedLab:
    """What `Graph` needs of a lab: attempts are judged at once, and those in flight are told of in a drawn order."""

    backend = "triton"

    def __init__(self, judge: Callable[[str], Verdict], start: str | None = START, written: Sequence[str] = ()) -> None:
        self.problem = type("Problem", (), {"start": start, "name": NAME})()
        self.judge = judge
        self.steps: list[Ask | Proposal] = []
        self.samples: list[Sample] = []
        self.decisions: list[tuple[str, str]] = []
        self.moves: tuple[MoveGain, ...] = ()
        self.widths: list[int] = []  #: how many were in flight whenever the next was waited for
        self._written = list(written)
        self._in_flight: list[Sample] = []
        self._draw = Random(0)

    async def expand(self, steps: Sequence[Ask | Proposal]) -> list[list[Sample]]:
        return [[self._made(step)] for step in steps]

    @asynccontextmanager
    async def flight(self) -> AsyncIterator[TimedLab]:
        yield self
        assert not self._in_flight

    async def begin(self, step: Ask | Proposal) -> int:
        self._in_flight.append(self._made(step))
        return self._in_flight[-1].key.attempt

    async def next_judged(self) -> tuple[int, list[Sample]]:
        self.widths.append(len(self._in_flight))
        sample = self._in_flight.pop(self._draw.randrange(len(self._in_flight)))
        return sample.key.attempt, [sample]

    def _made(self, step: Ask | Proposal) -> Sample:
        self.steps.append(step)
        return self._judged(step.source if isinstance(step, Proposal) else self._written.pop(0))

    def _judged(self, source: str) -> Sample:
        key = SampleKey(problem=NAME, attempt=len(self.samples) + 1, sample=1)
        extraction = Extraction(rule=ExtractionRule.PROPOSED, source=source)
        candidate = Candidate(source=source, sha256=str(hash(source)), key=key)
        self.samples.append(Sample(key, None, extraction, candidate, self.judge(source)))
        return self.samples[-1]

    def reflect_on(self, sample: Sample) -> None:
        del sample

    def decide(self, _attempt: int, what: str, choice: str, _why: str) -> None:
        self.decisions.append((what, choice))

    def known_moves(self) -> tuple[MoveGain, ...]:
        return self.moves

    def keep_search(self, state: str) -> None:
        assert state.startswith("{")


async def searched(lab: TimedLab, **options: Any) -> TimedLab:
    await Graph().run(cast(Lab, lab), Graph.Options(**{"moves": "rules", "attempts": 60, **options}))
    return lab


def noisy(source: str) -> Verdict:
    """Return a verdict whose interval is ten per cent to either side."""
    return correct(NAME, 1.0 / time_of(source))


def timed(source: str) -> Verdict:
    """Return a verdict without any doubt."""
    gain = 1.0 / time_of(source)
    return noisy(source).model_copy(update={"speedup": Interval(value=gain, low=gain, high=gain)})


async def test_it_finds_the_fastest_and_measures_no_state_twice() -> None:
    lab = await searched(TimedLab(timed))
    sources = [step.source for step in lab.steps if isinstance(step, Proposal) and not step.again]
    assert sources[0] == START and len(set(sources)) == len(sources)
    assert min(map(time_of, sources)) == 1.0
    assert lab.decisions[0] == ("space", "175 states by rule")


async def test_the_same_seed_asks_the_same_again_and_another_one_does_not() -> None:
    first, again, other = [
        [step.source for step in (await searched(TimedLab(timed), seed=seed)).steps if isinstance(step, Proposal)]
        for seed in (0, 0, 1)
    ]
    assert first == again != other


async def test_it_ends_early_unless_the_whole_budget_is_to_be_used() -> None:
    early, whole = [
        len((await searched(TimedLab(timed), attempts=80, whole_budget=whole)).steps) for whole in (False, True)
    ]
    assert early < whole == 80


async def test_a_new_best_is_measured_again() -> None:
    lab = await searched(TimedLab(noisy))
    again = [step for step in lab.steps if isinstance(step, Proposal) and step.again]
    assert again
    for step in again:
        assert step.by == "confirm" and step.parent is not None and step.parent.candidate is not None
        assert step.parent.candidate.source == step.source


async def test_failures_are_no_end_and_are_not_offered_again() -> None:
    def fails(source: str) -> Verdict:
        return timed(source) if "num_warps=8" in source else incorrect(NAME)

    lab = await searched(TimedLab(fails), whole_budget=True)
    best = max(lab.samples, key=lambda sample: sample.gain or (0.0, None, None))
    assert best.candidate is not None and "num_warps=8" in best.candidate.source
    assert "BLOCK=512" in best.candidate.source


async def test_several_in_flight_are_other_states() -> None:
    lab = await searched(TimedLab(timed), in_flight=4, attempts=41, whole_budget=True)
    sources = [step.source for step in lab.steps if isinstance(step, Proposal)]
    assert len(sources) <= 41 and len(set(sources)) == len(sources)
    assert min(map(time_of, sources)) <= 1.5
    assert lab.widths == [4] * 37 + [3, 2, 1], "the next is begun as soon as one is judged"


async def test_a_new_best_is_confirmed_before_the_search_ends() -> None:
    lab = await searched(TimedLab(noisy), in_flight=3, attempts=80)
    assert len(lab.steps) < 80
    judged = {sample.candidate.sha256: 0 for sample in lab.samples if sample.candidate is not None}
    for sample in lab.samples:
        assert sample.candidate is not None
        judged[sample.candidate.sha256] += 1
    best = max(lab.samples, key=lambda sample: sample.gain or (0.0, None, None))
    assert best.candidate is not None and judged[best.candidate.sha256] == 2


async def test_a_model_is_told_the_move_and_what_it_wrote_is_a_state() -> None:
    changed = [START.replace("num_warps=8", f"num_warps={2**number}") + f"# {number}\n" for number in range(5)]
    lab = await searched(TimedLab(timed, written=changed), moves="model", attempts=6)
    asked = [step for step in lab.steps if isinstance(step, Ask)]
    assert len(asked) == 5
    for step in asked:
        assert step.parent is not None and step.stage is not None and step.stage.guidance
    assert str(Graph().describe(Attempt(2, stage="change-block-sizes"))) in MOVES


async def test_what_only_compiles_is_judged_by_its_figures() -> None:
    lab = await searched(TimedLab(lambda _source: compiled(NAME)), attempts=10)
    assert len(lab.steps) >= 2


async def test_without_a_kernel_to_start_from() -> None:
    with pytest.raises(UsageError, match="START"):
        await searched(TimedLab(timed, start=None))
    lab = await searched(TimedLab(lambda _source: incorrect(NAME)))
    assert len(lab.steps) == 1 and lab.decisions == [("exit", "no start")]


async def test_a_recorded_attempt_with_another_kernel_ends_the_search() -> None:
    class Recorded(TimedLab):
        def _judged(self, source: str) -> Sample:
            return super()._judged(source if not self.samples else source + "other = 1\n")

    with pytest.raises(SearchMismatch, match="attempt 2"):
        await searched(Recorded(timed))


async def test_a_weak_prediction_is_not_tried() -> None:
    lab = await searched(TimedLab(timed), attempts=80, whole_budget=True, min_pred_gain=0.5)
    assert len(lab.steps) < 80
    assert lab.decisions[-1] == ("exit", "no edit promises a gain of 50.0%")


@pytest.mark.parametrize(("every", "profiled"), [(1, [1, 2, 3, 4, 5, 6]), (3, [1, 4]), (0, [1])])
async def test_every_nth_kernel_is_profiled(every: int, profiled: list[int]) -> None:
    lab = await searched(TimedLab(timed), attempts=6, whole_budget=True, profile_every=every)
    assert [number for number, step in enumerate(lab.steps, start=1) if step.profile] == profiled


async def test_what_earlier_runs_gained_is_tried_first(tmp_path: Path) -> None:
    tried, other = "softmax_math_fusion", "cache_policy_cg"
    moves = [
        MoveGain(move=name, tried=50, failed=0, gained=50, log_gain=gain)
        for name, gain in ((tried, 20.0), (other, 0.0))
    ]
    left = tmp_path / "global_tactic_graph.json"
    left.write_text(MoveGains(moves=tuple(moves)).model_dump_json())
    options = Graph.Options(moves="model", learn_from=left)
    kept = Graph().record(options).options
    assert "learn_from" not in kept, "the gains are kept, whatever becomes of the file"
    again = Graph.Options.model_validate({"moves": "model", "learnt": kept["learnt"]})
    assert again.learnt == options.learnt == tuple(moves)
    lab = await searched(TimedLab(timed, written=[START] * 12), moves="model", learn_from=left, attempts=13)
    names = [step.stage.name for step in lab.steps if isinstance(step, Ask) and step.stage is not None]
    assert names[0] == tried.replace("_", "-") and names.index(other.replace("_", "-")) > len(MOVES) // 2


async def test_an_experience_tells_the_same() -> None:
    lab = TimedLab(timed, written=[START] * 3)
    lab.moves = tuple(
        MoveGain(move=name, tried=50, failed=0, gained=50, log_gain=20.0 * (name == "pad_tail_and_mask"))
        for name in MOVES
    )
    await searched(lab, moves="model", attempts=3)
    asked = next(step for step in lab.steps if isinstance(step, Ask))
    assert asked.stage is not None and asked.stage.name == "pad-tail-and-mask"


@pytest.mark.parametrize("text", [None, "{", '{"moves": [{"move": "pad"}]}'])
def test_a_file_that_no_search_left_is_told(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "gains.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValidationError, match=r"gains\.json"):
        Graph.Options(learn_from=path)


def test_calls() -> None:
    rules, both = Graph.Options(moves="rules"), Graph.Options(attempts=10, samples=2)
    assert not Graph().asks_model(rules) and Graph().max_calls(rules) == 0
    assert (Graph().min_calls(both), Graph().max_calls(both)) == (2, 11)
