"""A correct candidate at further shapes of its problem, drawn once it was loaded: right at which, and how fast.

Each shape has a fresh reference, a fresh ModelNew and fresh inputs, and its answers are compared and watched as those
of the problem's own shape are, in fewer trials and timed runs. The candidate's process goes on, so that nothing is
built again; where a shape ends it, or may have broken its device, the next one gets a process that imports the
candidate anew, with what the first one built.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

from hkbench.analysis.drawn_model import NOTE, draw_model, says_little
from hkbench.analysis.input_distributions import summarise
from hkbench.analysis.integer_inputs import has_integers
from hkbench.analysis.reference import Reference
from hkbench.analysis.shapes import Shape, Shapes as FurtherShapes
from hkbench.device_kinds import model_of
from hkbench.errors import ProblemError
from hkbench.evaluation import failures
from hkbench.evaluation.emulated_device import EmulatedDevice
from hkbench.evaluation.emulated_session import EmulatedSession, make_session
from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.link import ProtocolError, RunnerExited, RunnerLink, RunnerTimeout
from hkbench.evaluation.measure import Measurement
from hkbench.evaluation.reach import not_own_there
from hkbench.evaluation.runner_end import RunnerEnd
from hkbench.evaluation.session import Session, draw_seed
from hkbench.evaluation.sharing import DeviceShare
from hkbench.evaluation.side import BaselineClient, RunnerClient
from hkbench.evaluation.timing import Effort, Timing
from hkbench.evaluation.trust import CandidateContext, assess, compare_clocks, name_kernels
from hkbench.profile.names import BuildFolder
from hkbench.profile.ownership import judgement
from hkbench.protocol import messages
from hkbench.protocol.wire import leaves
from hkbench.records import DeviceFacts, Failure, FailureKind, ShapeResult, Shapes, Stage, Track
from hkbench.sandbox.client import memory_file

TRIALS = 2  #: the problem's own inputs with parameters that hide no missing term, and shifted ones
#: Pairs of timed calls on a GPU, as many as the clocks' noise can be judged by; on a CPU, where evicting the caches
#: takes most of a call's 0.15 s, the fewest that a median is taken of.
PAIRS, PAIRS_ON_HOST = 10, 5
WARMUPS = 1
PAIRS_SECONDS = 2.0  #: after which no pair is begun
MAX_SECONDS = 120.0  #: for all shapes together, after which none is begun
MEMORY_PART = 16  #: of the device's memory, that a drawn shape may take if the problem's own takes less
MAX_HOST_BYTES = 1 << 28  #: of inputs that are tried on the host
MAX_REFERENCE_SECONDS = 10.0  #: of one forward pass
DRAWS = 4  #: of the parameters, where outputs say little: most problems take one
#: Refusals for the time alone. On a CPU a few calls tell little of its noise: then the shape has no speed-up.
CLOCK = (FailureKind.SUSPECT, FailureKind.IMPOSSIBLE)
#: Failures after which the candidate's process, or what it has of the device, may be broken.
BREAKING = frozenset({FailureKind.CRASH, FailureKind.DEVICE_ERROR, FailureKind.OUT_OF_MEMORY})


class ShapeChecks:
    """The further shapes of one correct candidate, with the device to ourselves."""

    def __init__(
        self,
        job: EvaluateJob,
        facts: DeviceFacts,
        links: tuple[RunnerLink, RunnerLink],
        another: Callable[[], RunnerLink],
        memory_bytes: int,
        text: str,
        built: BuildFolder,
        share: DeviceShare,
        emulated: EmulatedDevice | None,
    ) -> None:
        """Take the `links` to candidate and baseline, and who forks `another` runner of the candidate's.

        `emulated` executes its kernels where no GPU does, `share` is what the evaluation has of one that others use.
        """
        self._job, self._facts = job, facts
        self._model = model_of(facts.kind)
        asked = job.settings.shapes
        self._count = self._model.default_shapes if asked is None else asked
        self._device = torch.device(self._model.torch_device(facts.index))
        self._link: RunnerLink | None
        self._link, self._baseline = links
        self._another = another
        self._memory_bytes = memory_bytes
        self._text, self._built, self._emulated = text, built, emulated
        self._share = share
        self.tell: Callable[[str], None] = lambda _: None  #: told of each shape, for whoever waits
        pairs = PAIRS_ON_HOST if self._model.on_host else PAIRS
        self._effort = Effort(rounds=(pairs,), traced=1, seconds=0.3)
        update = {"trials": TRIALS, "warmups": WARMUPS, "timing_seconds": PAIRS_SECONDS, "busy_wait": 0.0}
        self._settings = job.settings.model_copy(update=update)
        self._weights_seed = 0  # of the reference at the shape at hand
        self.held: messages.MemoryHeld | None = None  #: by the baseline's runner, after the last shape

    def check(self) -> Shapes:
        """Look at the candidate at as many further shapes as the settings ask for.

        Raises:
            WorkerLost, DeviceUnavailable: the machine failed, not the candidate.
        """
        seed, ends = draw_seed(), time.monotonic() - self._share.waited + MAX_SECONDS
        results: list[ShapeResult] = []
        why: list[str] = []
        for number, tries in enumerate(self._planned(seed, why), 1):
            if time.monotonic() - self._share.waited > ends:
                why.append(f"the {MAX_SECONDS:g} s for further shapes were over after {number - 1}")
                break
            if self._link is None and self._emulated is not None:
                why.append(f"after {results[-1].described}: the emulated GPU serves one process, which ended there")
                break
            found = self._first_usable(tries)
            if isinstance(found, str):
                why.append(found)
                continue
            shape, reference = found
            result = ShapeResult(constants={**shape.constants}, kind=shape.kind)
            self.tell(f"further shape {number} of {self._count}: {result.described}")
            try:
                results.append(self._at(reference, result))
            except ProblemError as error:  # by the baseline, which has less memory than the evaluator had
                why.append(f"{result.described}: {error}")
            finally:
                reference.forget()
        self._retire()
        required = self._job.settings.require_shapes
        return Shapes(seed=seed, required=required, results=tuple(results), not_checked=tuple(why))

    def _planned(self, seed: int, why: list[str]) -> Iterator[Iterable[Shape]]:
        """Yield for one shape after the other what may be tried: half visible ones, where the problem names any."""
        rng, count = random.Random(seed), self._count
        memory = self._facts.memory_bytes
        most = None if memory is None else memory // MEMORY_PART
        with self._share.unused():
            shapes = FurtherShapes(self._job.problem, self._job.sizes, self._model.max_growth, most)
        visible = shapes.visible(count - count // 2, rng)
        yield from ([shape] for shape in visible)
        hidden = shapes.hidden(rng)
        for _ in range(count - len(visible)):
            tries = next(hidden, None)
            if tries is None:
                why.append(f"hidden shapes: {shapes.why}")
                return
            yield tries

    def _first_usable(self, tries: Iterable[Shape]) -> tuple[Shape, Reference] | str:
        """Return the first shape that the reference takes on this device; else why there is none."""
        why = "a hidden shape: none of those that were drawn suits the reference"
        for shape in self._drawn(tries):
            try:
                reference, unfit = self._fitting(shape)
            except (ProblemError, torch.OutOfMemoryError) as error:
                why = f"{dict(shape.constants)}: {error}"
                continue
            if unfit is None:
                return shape, reference
            why = f"{dict(shape.constants)}: {unfit}"
            reference.forget()
        return why

    def _fitting(self, shape: Shape) -> tuple[Reference, str | None]:
        """Return the reference at a shape, and why nothing can be judged there; parameters are drawn until it can."""
        make, unfit = partial(self._reference, shape, self._device), partial(self._unfit, shape)
        reference, self._weights_seed, why = draw_model(make, draw_seed, unfit, DRAWS)
        return reference, None if why == NOTE else why

    def _drawn(self, tries: Iterable[Shape]) -> Iterator[Shape]:
        """Yield what may be tried. Others may be timed while it is drawn, which calls the reference on the host."""
        drawing = iter(tries)
        while True:
            with self._share.unused():
                shape = next(drawing, None)
            if shape is None:
                return
            yield shape

    def _reference(self, shape: Shape, device: torch.device, seed: int) -> Reference:
        job, on_host = self._job, self._share.unused
        return Reference(job.problem, job.sizes, device, seed, shape.constants, on_host)

    def _unfit(self, shape: Shape, reference: Reference) -> str | None:
        """Return why nothing can be judged at a shape. Raises ProblemError, torch.OutOfMemoryError.

        A shape of constants that the file does not name is tried on the host first where indices are among the inputs:
        one that is out of range ends a GPU's context.
        """
        inputs = reference.inputs(draw_seed())
        if self._device.type == "cuda" and not self._job.problem.shapes and has_integers(inputs):
            if sum(leaf.nbytes for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor)) > MAX_HOST_BYTES:
                return "whether its indices are in range takes the host too long"
            on_host = self._reference(shape, torch.device("cpu"), draw_seed())
            on_host.native(on_host.inputs(draw_seed()))
        begin = time.monotonic()
        made = summarise(reference.native(inputs))
        if time.monotonic() - begin > MAX_REFERENCE_SECONDS:
            return f"the reference takes longer than {MAX_REFERENCE_SECONDS:g} s"
        if any(one.finite < 1.0 for one in made.values()):
            return "the reference's own outputs are not finite"
        return NOTE if says_little(made) else None

    def _at(self, reference: Reference, shape: ShapeResult) -> ShapeResult:
        """Compare, time and watch the candidate at one shape."""
        with _memory_files() as files:
            session: Session | None = None
            try:
                told = self._facts, self._settings, files, self._weights_seed, self._share, self._emulated
                session = make_session(reference, self._sides(), *told)
                if self._model.on_host:
                    session.plant_nothing()
                session.prepare()
                session.trials(further=True)
                return self._timed(session, shape)
            except (failures.CandidateFailed, RunnerTimeout, RunnerExited, ProtocolError) as error:
                return shape.model_copy(update={"failure": self._failure(error)})
            finally:
                if session is not None:
                    self.held = session.release()

    def _sides(self) -> tuple[RunnerClient, BaselineClient]:
        """Return candidate and baseline, neither with a model. Raises what a request of the candidate raises."""
        job = self._job
        if self._link is None:
            self._link = self._another()
            self._link.away = self._share.away
            side = RunnerClient(self._link, self._settings)
            try:
                side.ask(Stage.LOAD, messages.Load(path=job.code, class_="ModelNew", capture=False, overrides={}))
            except failures.CandidateFailed:
                self._retire()
                raise
        else:
            side = RunnerClient(self._link, self._settings)
            side.ask(Stage.LOAD, messages.Reset(keep_class=True))
            side.forget_segments()
        self._link.ends = time.monotonic() + self._settings.evaluation_timeout
        side.has_files = False
        return side, BaselineClient(self._baseline, self._settings, str(job.problem.path))

    def _timed(self, session: Session, shape: ShapeResult) -> ShapeResult:
        evidence = CandidateContext(session, self._job, self._text, self._built)
        if isinstance(session, EmulatedSession):
            _, session.foreign = name_kernels(evidence, session.kernels)
            refused = session.not_own() if self._job.settings.track is Track.OWN else None
            return shape.model_copy(update={"failure": refused})
        session.prepare_baseline()
        measured, refused = self._assessed(session, evidence)
        if refused is not None:
            session.forget_suspicions()
            measured, refused = self._assessed(session, evidence)
        if refused is not None and self._model.on_host and refused.kind in CLOCK:
            return shape.model_copy(update={"untimed": refused.message})
        if refused is not None:
            return shape.model_copy(update={"failure": refused})
        figures = {
            "speedup": measured.speedup,
            "baseline_seconds": measured.baseline.median.value,
            "candidate_seconds": measured.candidate.median.value,
        }
        return shape.model_copy(update=figures)

    def _assessed(self, session: Session, evidence: CandidateContext) -> tuple[Measurement, Failure | None]:
        """Return the measurement and why it does not count; whose work it was comes before what the clocks say."""
        timing = Timing(session, self._effort)
        with self._share.alone():
            measured, seen = timing.measure(), timing.witness()
        trusted = assess(evidence, measured, seen, compare_clocks(evidence, measured, seen))
        theirs = None if trusted.work is None else judgement(trusted.work, self._job.settings.track)
        if theirs is None:
            return measured, trusted.refusal
        return measured, failures.failed(Stage.TIME, FailureKind.NOT_OWN, theirs).failure

    def _failure(self, error: Exception) -> Failure:
        """Return what went wrong as a failure, and end a process that is not to be trusted with another shape."""
        if isinstance(error, failures.CandidateFailed):
            if error.failure.kind in BREAKING and self._emulated is None:
                self._retire()
            return not_own_there(error.failure, self._job.reach)
        link = self._link
        assert link is not None
        self._link = None
        if isinstance(error, RunnerExited):
            failure = failures.from_end(Stage.SHAPES, self._gone(link), self._memory_bytes).failure
        else:
            kind = FailureKind.TIMEOUT if isinstance(error, RunnerTimeout) else FailureKind.PROTOCOL
            failure = failures.failed(Stage.SHAPES, kind, str(error)).failure
            self._gone(link)
        return failure

    def _retire(self) -> None:
        """End the candidate's process, if there is one."""
        if self._link is not None:
            self._gone(self._link)
            self._link = None

    def _gone(self, link: RunnerLink) -> RunnerEnd:
        return failures.ended(link, self._job.code)


@contextmanager
def _memory_files() -> Iterator[tuple[int, int]]:
    """Yield two files for the inputs and outputs of a shape; those of the evaluation have their size for good."""
    files = memory_file("inbox"), memory_file("outbox")
    try:
        yield files
    finally:
        for file in files:
            os.close(file)


def not_right(shapes: Shapes | None) -> Failure | None:
    """Return why a candidate is not correct that has to be right at all further shapes, and is not."""
    if shapes is None or not shapes.required or not shapes.failed:
        return None
    first = shapes.failed[0]
    assert first.failure is not None
    where = f"{first.described}: {first.failure.kind}: {first.failure.message}"
    message = f"{shapes.described}, where all are required. At {where}"
    update = {"stage": Stage.SHAPES, "kind": FailureKind.SHAPES, "message": message}
    return first.failure.model_copy(update=update)
