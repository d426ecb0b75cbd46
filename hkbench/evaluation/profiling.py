"""The best profiler of the machine around a candidate that is correct but slow; torch's own where that one fails.

A maker's profiler has to be the parent of the process that it looks at. So it runs in a cage of its own, forked for it
by the engine: same layers and limits as the candidate's runner, what that one built, and the problem file to read. It
gets nothing of the evaluator's: model and inputs are made there (hkbench/runner/profiled.py). What it writes is
untrusted.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from hkbench.backends import find_backend
from hkbench.errors import DeviceUnavailable, InputMissing
from hkbench.evaluation.job import PROFILE_FOLDER, EvaluateJob
from hkbench.evaluation.link import ProtocolError, RunnerExited, RunnerLink, RunnerTimeout, read_answer
from hkbench.evaluation.session import Session
from hkbench.problems import constants_in_force
from hkbench.profile import (
    Choice,
    Plan,
    Profiler,
    ProfileUnreadable,
    Step,
    choose,
    explain,
    kernel_profile,
    meaning,
    passes,
    plan,
    printed,
    read_profile,
)
from hkbench.profile.keep import Kept
from hkbench.protocol import messages
from hkbench.protocol.codec import encode
from hkbench.records import DeviceFacts, KernelProfile, Owner
from hkbench.sandbox import folders
from hkbench.sandbox.cage import NAMESPACES, SECCOMP

WARMUPS = 2  #: the first pass may compile and tune
PACKAGE = Path(__file__).resolve().parents[2]


class NotProfiled(Exception):
    """The profiler gave no profile; the text says why and what to do."""


@dataclass(frozen=True)
class ProfilerHandle:
    """A runner that the engine starts when it is asked, and that then starts what it is told."""

    link: RunnerLink
    start: Callable[[], None]


def chosen(job: EvaluateJob, facts: DeviceFacts) -> Choice:
    """Return the profiler for this device and this cage; torch's where no other one would work."""
    choice = choose(facts.kind, facts.arch, further=find_backend(job.backend).profiler)
    layers = " ".join(job.isolation.layers)
    if choice.profiler is Profiler.NCU and SECCOMP in layers and NAMESPACES not in layers:
        reason = "ncu talks to its target by a socket, which a cage without namespaces denies; see `hkbench doctor`"
        return Choice(Profiler.TORCH, passed_over=(*choice.passed_over, reason))
    return choice


def profiled(
    job: EvaluateJob,
    session: Session,
    spare: ProfilerHandle,
    facts: DeviceFacts,
    owner_of: Callable[[str], Owner],
    tell: Callable[[str], None],
) -> KernelProfile | None:
    """Profile by the best profiler of the machine, else by torch's. A failing profiler costs only the profile."""
    choice = chosen(job, facts)
    tell(f"profile by {choice.profiler.value}")
    if choice.profiler is not Profiler.TORCH:
        # The baseline's runner is not needed any more, and the profiled process wants memory.
        session.baseline.request(messages.Reset())
        torch.cuda.empty_cache()
        try:
            return Profiling(job, spare, facts, str(session.reference.device)).profile(choice, owner_of)
        except NotProfiled as error:
            session.notes.append(f"{error}; torch's profiler was used in its place")
    profile = _by_torch(session, owner_of)
    return profile and profile.model_copy(update={"notes": (*choice.passed_over, *profile.notes)})


def _by_torch(session: Session, owner_of: Callable[[str], Owner]) -> KernelProfile | None:
    """Profile in the candidate's own runner; without a profile the verdict has its times alone."""
    try:
        answer = session.profile()
    except (RunnerExited, RunnerTimeout, ProtocolError) as error:
        session.notes.append(f"torch's profiler did not finish: {error}")
        return None
    if isinstance(answer, messages.Raised):
        session.notes.append(f"torch's profiler failed: {answer.message}")
        return None
    return kernel_profile(encode(answer), owner_of)


class Profiling:
    """One candidate under one profiler."""

    def __init__(self, job: EvaluateJob, spare: ProfilerHandle, facts: DeviceFacts, device: str) -> None:
        self._job = job
        self._link = spare.link
        self._start = spare.start
        self._facts = facts
        self._device = device
        self._deadline = time.monotonic() + job.settings.profile_timeout
        self._private = Path(job.folder).with_name(PROFILE_FOLDER)
        self._kept = Kept.of(job.settings.keep_profile, job.problem.name, Path(job.code).read_bytes())
        self._said: dict[str, str] = {}  # by a step's name, what it printed

    def profile(self, choice: Choice, owner_of: Callable[[str], Owner]) -> KernelProfile:
        """Run every step of the profiler and read what they wrote.

        Raises:
            NotProfiled: it failed, ran out of time, or wrote what cannot be used.
            DeviceUnavailable: a process of it could not be killed.
        """
        self._private.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self._private))
        forwards = passes(choice.profiler)
        planned = plan(choice, self._facts.arch, folder, self._wrapped(folder, forwards), forwards)
        for step in planned.steps:  # before any code of the candidate's could put a link in the way
            for path in step.folders:
                path.mkdir()
            for path, text in step.inputs.items():
                path.write_text(text)
        self._start()
        try:
            failed = self._run(planned)
        finally:
            self._end(planned)
        first = planned.steps[0].name
        if first in failed:
            raise NotProfiled(failed[first])
        try:
            return read_profile(planned, owner_of, self._facts, failed)
        except (ProfileUnreadable, InputMissing) as error:
            what = str(error).replace(f"{folder}/", "").split("; ")[0]
            known = meaning(self._said[first]) or "--keep-profile keeps its files to look at"
            raise NotProfiled(f"{choice.profiler}: {what}; {known}") from error

    def _wrapped(self, folder: Path, forwards: int) -> tuple[str, ...]:
        """Return the command that loads the candidate.

        One plain word tells it all: rocprof splits its command at blanks.
        """
        problem = self._job.problem
        asked = {
            "code": self._job.code,
            "problem": str(problem.path.resolve()),
            "overrides": {**constants_in_force(self._job.sizes, problem)},
            "device": self._device,
            "seed": 0,
            "warmups": WARMUPS,
            "forwards": forwards,
        }
        path = folder / "passes.json"
        path.write_text(json.dumps(asked))
        return (sys.executable, str(PACKAGE / "hkbench" / "runner" / "profiled.py"), str(path))

    def _run(self, planned: Plan) -> dict[str, str]:
        """Run the steps; return why a step gave nothing, by its name.

        No step is tried after one that took the processes with it.
        """
        failed: dict[str, str] = {}
        over = ""
        for step in planned.steps:
            if over:
                failed[step.name] = f"{planned.profiler} ({step.name}) was not run: {over}"
                continue
            began = time.monotonic()
            code, output, over = self._step(step)
            output = self._said[step.name] = printed(planned, step, output)
            if self._kept is not None:
                self._kept.step(step, code, time.monotonic() - began, output)
            if code is None or (not over and (code != 0 or not folders.matching(planned.folder, step.expected[0]))):
                failed[step.name] = explain(planned.profiler, step.name, code, output)
            elif over:
                failed[step.name] = f"{planned.profiler} ({step.name}): {over}"
            if step is planned.steps[0] and step.name in failed:
                break
        return failed

    def _step(self, step: Step) -> tuple[int | None, str, str]:
        """Run a step; return its exit status (None: no end in time), its output, and why no further step can run."""
        seconds = max(1.0, self._deadline - time.monotonic())
        command = messages.Command(
            command=list(step.command), environment=dict(step.environment), folder=str(self._private)
        )
        try:
            answer = read_answer(command, self._link.request(command, seconds))
        except RunnerTimeout:
            return None, "", f"the {self._job.settings.profile_timeout:g} s of --profile-timeout are over"
        except RunnerExited:
            end = self._link.end()
            return -9, end.output, f"its processes ended or were ended ({end.reason})"
        except ProtocolError as error:
            return -9, "", str(error)
        if isinstance(answer, messages.Raised):
            return 127, answer.message, ""
        return answer.returncode, answer.output, ""

    def _end(self, planned: Plan) -> None:
        end = self._link.end()
        if self._kept is not None:
            self._kept.files(planned)
        if end.survivors:
            raise DeviceUnavailable(
                f"{end.survivors} processes of {planned.profiler} around {self._job.code} cannot be killed; "
                "the device needs a reset before anything else is measured on it"
            )
