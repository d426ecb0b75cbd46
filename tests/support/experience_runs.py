"""Run folders that earlier runs left: a failure, a hint, and a kernel that was mended by it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from support.run_folder import FACTS, RunFolder, correct, incorrect, run_config

from hkbench.experience.facts import Traits
from hkbench.records import Hint, HintKind, Problem, PromptRendered, RunFacts, SampleKey, Verdict

BROKEN = "import torch\n\nx = relu6(1)\ny = 2\n"
MENDED = "import torch\n\nx = torch.relu(1)\ny = 2\n"
UNDECLARED = "/tmp/hkb_17/main.cpp:3:5: error: 'relu6' was not declared in this scope"
ADVICE = "The smallest fix: call torch.relu"


def problem(name: str, source: str = "") -> Problem:
    """Return a problem whose digest is that of `run_config`, or of a source of its own."""
    digest = sha256(source.encode()).hexdigest() if source else "0" * 64
    return Problem(number=1, name=name, level=1, path=Path(name), source=source, sha256=digest)


def traits(digest: str = "facts", **classes: int) -> Traits:
    return Traits(digest, classes or {"elementwise": 1}, "float32", 4096)


def mended_run(
    root: Path,
    name: str = "1_ReLU",
    *,
    at: float = 0.0,
    outcomes: Sequence[bool] = (True,),
    hint: str = ADVICE,
    speedup: float = 1.5,
    message: str = UNDECLARED,
    step: str | None = None,
    kind: HintKind = HintKind.ADVICE,
) -> RunFolder:
    """Return a run that failed, was told `hint`, and came further in those samples of its second attempt.

    `at`: seconds after which it began, by which two runs differ.
    """
    run = RunFolder(root, run_config((name,), samples=len(outcomes)), facts=facts_at(at))
    run.now += at
    run.start()
    run.begin(name)
    failed = judged(run, name, 1, 1, incorrect(name, message=message), BROKEN)
    run.emit(
        PromptRendered(
            time=run.tick(), problem=name, attempt=2, template="t", sha256="0" * 64, parent=failed, step=step,
            hints=(Hint(kind=kind, text=hint),),
        )
    )  # fmt: skip
    for number, helped in enumerate(outcomes, start=1):
        verdict = correct(name, speedup) if helped else incorrect(name, message=message)
        judged(run, name, 2, number, verdict, MENDED if helped else BROKEN)
    run.end(name, solved=any(outcomes))
    run.close()
    return run


def facts_at(at: float) -> RunFacts:
    return FACTS.model_copy(update={"started": f"2026-01-02T03:04:05Z+{at}"})


def judged(run: RunFolder, name: str, attempt: int, sample: int, verdict: Verdict, code: str) -> SampleKey:
    """Return a sample with its code."""
    key = run.sample(name, attempt, sample, verdict)
    run.paths.problem(name).sample(attempt, sample).code.write_text(code)
    return key
