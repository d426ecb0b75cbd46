"""The default strategy against a lab that notes what it is asked for."""

from __future__ import annotations

from typing import cast

from support.noted_lab import NAME, NotedLab
from support.run_folder import compiled, correct, incorrect

from hkbench.lab import Lab
from hkbench.records import Verdict
from hkbench.strategies import STRATEGIES, Reflect

FAILED, SLOW, FAST = incorrect(NAME), correct(NAME, 0.5), correct(NAME, 2.0)


async def played(*verdicts: tuple[Verdict, ...], exhaust: bool = False) -> NotedLab:
    lab = NotedLab(verdicts)
    options = Reflect.Options(samples=len(verdicts[0]), attempts=len(verdicts), exhaust=exhaust)
    await Reflect().run(cast(Lab, lab), options)
    return lab


async def test_ends_at_the_first_success() -> None:
    lab = await played((FAILED, FAST), (FAST, FAST))
    assert lab.generations == [("prompt 1", 1, 2, None)]


async def test_a_correct_but_slow_kernel_is_no_success() -> None:
    lab = await played((SLOW,), (FAST,), (FAST,))
    assert [attempt for _, attempt, _, _ in lab.generations] == [1, 2]


async def test_ends_at_the_first_kernel_that_compiles_where_nothing_is_run() -> None:
    lab = await played((FAILED,), (compiled(NAME),), (compiled(NAME),))
    assert [attempt for _, attempt, _, _ in lab.generations] == [1, 2]
    exhausted = await played((compiled(NAME),), (compiled(NAME),), exhaust=True)
    assert exhausted.prompts == [(1, None), (2, "reflection on 1.1")]


async def test_exhaust_uses_every_attempt() -> None:
    lab = await played((FAST,), (FAILED,), (FAST,), exhaust=True)
    assert [attempt for _, attempt, _, _ in lab.generations] == [1, 2, 3]


async def test_gives_up_after_the_last_attempt() -> None:
    lab = await played((FAILED,), (FAILED,))
    assert [attempt for _, attempt, _, _ in lab.generations] == [1, 2]


async def test_the_best_sample_is_the_parent_and_is_reflected_on() -> None:
    lab = await played((FAILED, SLOW, FAILED), (FAILED, FAILED, correct(NAME, 0.7)), (FAST, FAILED, FAILED))
    assert lab.prompts == [(1, None), (2, "reflection on 1.2"), (3, "reflection on 2.3")]
    parents = [parent for _, _, _, parent in lab.generations]
    assert parents[0] is None
    assert [(parent.key.attempt, parent.key.sample) for parent in parents[1:] if parent] == [(1, 2), (2, 3)]
    assert [sample.verdict for sample in lab.reflected] == [SLOW, correct(NAME, 0.7)]


def test_it_is_the_default_of_a_run() -> None:
    from support.run_folder import run_config

    assert isinstance(STRATEGIES[run_config().strategy.name], Reflect)
