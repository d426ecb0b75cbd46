"""The judge loop against a lab that notes what it is asked for."""

from __future__ import annotations

from typing import cast

from support.noted_lab import NAME, NotedLab
from support.run_folder import compiled, correct, incorrect

from hkbench.lab import Lab
from hkbench.records import QuestionKind, Verdict
from hkbench.strategies import STRATEGIES, Judge

FAILED, SLOW, FAST, FASTER = incorrect(NAME), correct(NAME, 0.5), correct(NAME, 2.0), correct(NAME, 3.0)
REPAIR, OPTIMISE = QuestionKind.REPAIR, QuestionKind.OPTIMISE


async def played(*verdicts: Verdict, from_best: bool = False) -> NotedLab:
    lab = NotedLab([(verdict,) for verdict in verdicts])
    options = Judge.Options(attempts=len(verdicts), start="best" if from_best else "last")
    await Judge().run(cast(Lab, lab), options)
    return lab


async def test_repairs_what_fails_and_optimises_what_is_correct() -> None:
    lab = await played(FAILED, SLOW, FAST, FAILED, FASTER)
    assert lab.consulted == [(REPAIR, (1, 1), 2), (OPTIMISE, (2, 1), 3), (OPTIMISE, (3, 1), 4), (REPAIR, (4, 1), 5)]


async def test_optimises_what_compiles_where_nothing_is_run() -> None:
    lab = await played(FAILED, compiled(NAME), FAILED, compiled(NAME), from_best=True)
    assert lab.consulted == [(REPAIR, (1, 1), 2), (OPTIMISE, (2, 1), 3), (OPTIMISE, (2, 1), 4)]


async def test_each_prompt_after_the_seed_has_the_advice_on_the_kernel_before() -> None:
    lab = await played(FAILED, SLOW, FAST)
    assert lab.prompts == [(1, None), (2, "advice on 1.1"), (3, "advice on 2.1")]
    assert [parent and parent.key.attempt for _, _, _, parent in lab.generations] == [None, 1, 2]


async def test_a_success_does_not_end_it_and_nothing_is_asked_after_the_last_round() -> None:
    lab = await played(FAST, FAST)
    assert [attempt for _, attempt, _, _ in lab.generations] == [1, 2]
    assert len(lab.consulted) == 1


async def test_from_the_best_kernel_once_there_is_a_correct_one() -> None:
    lab = await played(FAILED, FAILED, SLOW, FAILED, FAST, SLOW, FAST, from_best=True)
    about = [(kind, place[0]) for kind, place, _ in lab.consulted]
    assert about == [(REPAIR, 1), (REPAIR, 2), (OPTIMISE, 3), (OPTIMISE, 3), (OPTIMISE, 5), (OPTIMISE, 5)]
    assert [parent and parent.key.attempt for _, _, _, parent in lab.generations] == [None, 1, 2, 3, 3, 5, 5]


def test_fast_kernels_are_profiled_for_it() -> None:
    assert STRATEGIES["judge"].profiles_fast and not STRATEGIES["reflect"].profiles_fast
