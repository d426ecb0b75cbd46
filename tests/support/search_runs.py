"""Run folders of a search over a tree of kernels."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.records import CandidateExtracted, ExtractionRule, Layout, RunStrategy, SampleKey, Verdict

NAME = "1_Sum"
BLOCKS = "change_block_sizes (BLOCK: 64 -> 128)"


def searched(root: Path, *verdicts: tuple[Verdict, int | None, str]) -> RunFolder:
    """Return a run whose attempts were proposed: verdict, the attempt that it was made from, and by what."""
    config = run_config((NAME,), samples=1, attempts=len(verdicts))
    strategy = RunStrategy(name="graph", layout=Layout.TREE)
    run = RunFolder(root, config.model_copy(update={"strategy": strategy}))
    run.start()
    run.begin(NAME)
    for attempt, (verdict, parent, step) in enumerate(verdicts, start=1):
        key = SampleKey(problem=NAME, attempt=attempt, sample=1)
        above = None if parent is None else SampleKey(problem=NAME, attempt=parent, sample=1)
        run.emit(
            CandidateExtracted(
                time=run.tick(), key=key, rule=ExtractionRule.PROPOSED, sha256="0" * 64, parent=above, step=step
            )
        )
        run.judged(key, verdict)
        run.paths.problem(NAME).sample(attempt, 1).code.write_text(f"number = {attempt}\n")
    run.decided(NAME, len(verdicts), "exit", "all attempts are used")
    run.end(NAME)
    run.close()
    return run


def search_run(root: Path) -> RunFolder:
    """Return a run of five attempts, whose best came about in two steps."""
    return searched(
        root,
        (correct(NAME, 1.0), None, "start"),
        (correct(NAME, 2.0), 1, BLOCKS),
        (incorrect(NAME), 2, "softmax_math_fusion (expf: expf -> __expf)"),
        (correct(NAME, 2.05), 2, "confirm"),
        (correct(NAME, 4.0), 2, "change_block_sizes (BLOCK: 128 -> 256)"),
    )
