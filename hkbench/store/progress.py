"""How far a run has come, from its folder alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hkbench.records import RunClosed, RunConfig
from hkbench.store.events import read_last_event
from hkbench.store.layout import RunPaths
from hkbench.store.reader import advice_folders, read_run_file, sample_folders


@dataclass(frozen=True)
class Progress:
    """What a run folder holds of its plan."""

    most: int  #: samples if every problem takes every attempt
    judged: int  #: samples with a verdict
    waiting: int  #: samples with a reply and without a verdict
    complete: bool  #: the last session reached the end of the plan
    answered: bool  #: there is a reply, of the model or of a judge


def progress_of(paths: RunPaths, config: RunConfig) -> Progress:
    """Return how far the run with the settings `config` has come; reads no verdict and no reply."""
    judged = waiting = 0
    advised = False
    for name in config.problems:
        problem = paths.problem(name)
        for attempt, sample in sample_folders(problem.root):
            place = problem.sample(attempt, sample)
            if place.result.exists():
                judged += 1
            elif place.response.exists():
                waiting += 1
        advised = advised or any(
            problem.advice(key.attempt, key.call, key.role).response.exists()
            for key in advice_folders(problem.root, problem.root.name)
        )
    most = len(config.problems) * config.samples * config.attempts
    return Progress(most, judged, waiting, is_complete(paths), judged + waiting > 0 or advised)


def describe_folder(folder: Path, config: RunConfig | None = None) -> str:
    """Say what running into `folder` means.

    Examples: "new: FOLDER" and "resumes FOLDER: 12 of up to 36 samples judged, 8 replies that are not judged yet".

    For the plan that a dry run prints, and for the line that a resumed run begins with. `config` has the settings to
    resume with, where they are more than the recorded ones. Reads only names of files, run.json and the journal's last
    line. Errors as of `read_run_file`, for a run.json that cannot be read.
    """
    paths = RunPaths(folder)
    if not paths.run.is_file():
        return f"new: {folder}"
    found = progress_of(paths, config or read_run_file(paths).config)
    if not found.answered:
        return f"begins again: {folder}, which holds no reply"
    done = ", complete" if found.complete else ""
    replies = "1 reply that is" if found.waiting == 1 else f"{found.waiting} replies that are"
    waiting = f", {replies} not judged yet" if found.waiting else ""
    return f"resumes {folder}: {found.judged} of up to {found.most} samples judged{waiting}{done}"


def is_complete(paths: RunPaths) -> bool:
    """Return whether the last session came to the end of the plan."""
    last = read_last_event(paths.journal)
    return isinstance(last, RunClosed) and last.complete
