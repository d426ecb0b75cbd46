"""The hand-written HipKittens candidates compile for their architecture, without an AMD GPU and without a spill.

HipKittens is that of scripts/install_hipkittens.py, or a checkout that HIPKITTENS_CDNA3_ROOT or HIPKITTENS_CDNA4_ROOT
names for its dialect. Nothing is run.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.kittens import kittens_or_skip

from hkbench.compile_only.build_only import compile_only
from hkbench.problems.load import load_problem
from hkbench.records import EvaluationSettings, Status
from hkbench.toolchain.hipkittens import VARIABLES, WITH_CARD, Dialect

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples" / "hipkittens"
CANDIDATES = sorted(path.relative_to(EXAMPLES) for path in EXAMPLES.glob("cdna*/*.py"))


def test_both_dialects_answer_the_same_problems() -> None:
    names = {dialect: {path.name for path in CANDIDATES if path.parts[0] == dialect} for dialect in WITH_CARD}
    assert names[Dialect.CDNA3] == names[Dialect.CDNA4]
    assert len(names[Dialect.CDNA3]) == 8
    assert all((REPOSITORY / "problems" / "level1" / name).is_file() for name in names[Dialect.CDNA3])


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("candidate", CANDIDATES, ids=str)
def test_it_compiles_without_a_spill(candidate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect = Dialect(candidate.parts[0])
    hip_or_skip(f"{candidate} was not compiled")
    root = kittens_or_skip(dialect, f"{candidate} was not compiled")
    for name in VARIABLES:
        monkeypatch.setenv(name, str(root))
    problem = load_problem(REPOSITORY / "problems" / "level1" / candidate.name)
    settings = EvaluationSettings(build_timeout=400, shapes=0)
    verdict = asyncio.run(
        compile_only(problem, EXAMPLES / candidate, tmp_path / "scratch", "hipkittens", dialect.arch, settings)
    )
    assert (verdict.status, verdict.failure, verdict.conditions.warnings) == (Status.COMPILED, None, ())
    assert verdict.language is not None and verdict.language.backend == "hipkittens"
    (kernel,) = verdict.resources
    assert (kernel.vgpr_spills, kernel.sgpr_spills, kernel.scratch_bytes_per_lane) == (0, 0, 0)
