"""A sample of what `scripts/emulator_mutants.py --source` does: mistakes in the shipped kernels' sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.emulated_cases import PROBLEMS, source_file
from support.source_mutants import NOT_CAUGHT, RULES, Mutant, judge, mutants, reason, sample

from hkbench.toolchain.hipkittens import WITH_CARD

pytestmark = pytest.mark.hipcc
KERNELS, EACH, SEED = 2, 3, 25


def test_every_rule_changes_some_kernel_and_every_kernel_has_mutants() -> None:
    found = mutants()
    assert {mutant.rule for mutant in found} == set(RULES)
    assert {(mutant.problem, mutant.dialect) for mutant in found} == {(p, d) for p in PROBLEMS for d in WITH_CARD}
    assert all(mutant.source != source_file(mutant.problem, mutant.dialect).read_text() for mutant in found)
    assert len(found) >= 100


def test_every_reason_is_one_of_a_mutant() -> None:
    found = mutants()
    for one in NOT_CAUGHT:
        assert any(one.holds(mutant) for mutant in found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "group", sample(KERNELS, EACH, SEED), ids=lambda group: f"{group[0].problem}-{group[0].dialect}"
)
def test_mistakes_are_seen(group: list[Mutant], tmp_path: Path) -> None:
    hip_or_skip("no source mutant was compiled")
    judged = judge(group, tmp_path)
    assert [str(one.mutant) for one in judged if not one.caught and not reason(one)] == []
