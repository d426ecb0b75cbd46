"""Which files a run folder has, as paths below it: the index in summary.json."""

from __future__ import annotations

from pathlib import Path

from hkbench.store.layout import RunPaths


def run_files(paths: RunPaths) -> dict[str, str]:
    """Return what there is of the run as a whole; summary.json itself is left out."""
    return _there(
        paths,
        {
            "settings": paths.run,
            "journal": paths.journal,
            "log": paths.log,
            "problems": paths.summary_csv,
            "samples": paths.samples,
            "calls": paths.usage,
            "report": paths.report_json,
            "report_text": paths.report_text,
            "report_page": paths.report_page,
        },
    )


def problem_files(paths: RunPaths, name: str) -> dict[str, str]:
    """Return what there is of a problem.

    Its samples are in samples.csv, each with the path of its folder and its code.
    """
    problem = paths.problem(name)
    return _there(
        paths,
        {
            "folder": problem.root,
            "reference": problem.reference,
            "best_prompt": problem.best_prompt,
            "best_code": problem.best_code,
            "best_result": problem.best_result,
            "evaluations": problem.evaluation(0).parent,
            "score": problem.score,
        },
    )


def _there(paths: RunPaths, named: dict[str, Path]) -> dict[str, str]:
    return {name: str(path.relative_to(paths.root)) for name, path in named.items() if path.exists()}
