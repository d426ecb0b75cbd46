"""Verdicts on the samples of one problem: one for the same code, and none anew for what the run folder holds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping

from hkbench.binding import note_of, with_note
from hkbench.engine import EvaluationResult, Evaluator
from hkbench.errors import HkbenchError, RunStopped, unexpected
from hkbench.lab.prompting import Prompter
from hkbench.lab.samples import Sample
from hkbench.lab.stop import Stop, Work
from hkbench.problems.sizes import sizes_in_force
from hkbench.records import (
    Conditions,
    EvaluationFailed,
    Extraction,
    Failure,
    FailureKind,
    Problem,
    SampleKey,
    SlotTimes,
    Stage,
    StageEntered,
    Status,
    Verdict,
    VerdictReached,
)
from hkbench.store.recorder import Recorder
from hkbench.store.samples import Place

_log = logging.getLogger(__name__)
#: Kinds of failure that a busy machine can cause.
_BY_LOAD = frozenset({FailureKind.TIMEOUT, FailureKind.BUILD_TIMEOUT, FailureKind.OUT_OF_MEMORY, FailureKind.SUSPECT})


class Verdicts:
    """Reach the verdicts on the samples of one problem, and record them."""

    def __init__(
        self,
        problem: Problem,
        prompter: Prompter,
        evaluator: Evaluator,
        recorder: Recorder,
        stop: Stop,
        order: Mapping[Place, int] | None = None,
    ) -> None:
        """Take `order`: by (attempt, sample), how many verdicts stand in the journal before its first one."""
        self._problem = problem
        self._prompter = prompter
        self._evaluator = evaluator
        self._recorder = recorder
        self._stop = stop
        self._order: dict[Place, int] = dict(order or {})
        # By the candidate's sha256: the sample that was evaluated, with its result.
        self._judged: dict[str, tuple[SampleKey, asyncio.Future[EvaluationResult]]] = {}

    def place(self, samples: Iterable[Place]) -> int | None:
        """Return how many verdicts stand in the journal before the last one of these; None: one has none."""
        places = [self._order.get(place) for place in samples]
        known = [place for place in places if place is not None]
        return max(known) if len(known) == len(places) else None

    async def reach(self, sample: Sample) -> Verdict:
        """Return the verdict on a sample.

        An exception that nobody foresaw ends this sample only: it becomes InternalError.
        """
        try:
            return await self._reached(sample)
        except HkbenchError:
            raise
        except Exception as error:
            failure = unexpected(f"judging {self._problem.name} {sample.key.attempt}.{sample.key.sample}", error)
            # Which raises in turn where the disk is full.
            self._recorder.event(EvaluationFailed.of(sample.key, failure))
            raise failure from error

    async def _reached(self, sample: Sample) -> Verdict:
        known = self._recorder.verdict(sample.key, sample.candidate.sha256 if sample.candidate else None)
        if known is not None:
            self._remember(sample, known)
            if (sample.key.attempt, sample.key.sample) not in self._order:  # the run was cut before its event
                self._tell(sample.key, known, None)
            return known
        turns: SlotTimes | None = None
        if sample.candidate is None:
            verdict = no_code(self._problem, sample.extraction, self._prompter, self._evaluator)
        else:
            verdict, turns = await self._judged_once(sample, sample.candidate.sha256)
            verdict = with_note(verdict, note_of(sample.extraction))
        self._recorder.save_verdict(sample.key, verdict)
        self._tell(sample.key, verdict, turns)
        return verdict

    def _tell(self, key: SampleKey, verdict: Verdict, turns: SlotTimes | None) -> None:
        self._recorder.event(VerdictReached.of(key, verdict, turns))
        self._order.setdefault((key.attempt, key.sample), len(self._order))

    async def _judged_once(self, sample: Sample, sha256: str) -> tuple[Verdict, SlotTimes | None]:
        """Evaluate the same code once, by its first sample in all attempts: models repeat themselves.

        Measuring it again would let the luckier of two measurements count. Only failures that a busy machine can cause
        and times that it has spoilt are judged anew, and what a strategy asks to be measured again.
        """
        if sample.again:
            evaluated = await self._evaluate(sample)
            return _verdict_of(evaluated), evaluated.turns
        if sha256 in self._judged:
            first, judging = self._judged[sha256]
            verdict = _verdict_of(await judging)
            if holds_for_copies(verdict):
                return repeated(verdict, first), None
        self._judged[sha256] = sample.key, asyncio.ensure_future(self._evaluate(sample))
        evaluated = await self._judged[sha256][1]
        return _verdict_of(evaluated), evaluated.turns

    def _remember(self, sample: Sample, verdict: Verdict) -> None:
        if sample.candidate is not None and sample.candidate.sha256 not in self._judged:
            reached: asyncio.Future[EvaluationResult] = asyncio.get_running_loop().create_future()
            reached.set_result(EvaluationResult(verdict))
            self._judged[sample.candidate.sha256] = verdict.copy_of or sample.key, reached

    async def _evaluate(self, sample: Sample) -> EvaluationResult:
        paths, work = self._recorder.sample(sample.key), Work()

        begun, key = time.monotonic(), sample.key
        name = f"{key.problem} {key.attempt}.{key.sample}"

        def entered(stage: Stage, device: int | None) -> None:
            work.measuring = device is not None
            _log.debug("%s: %s after %.1f s", name, stage.value, time.monotonic() - begun)
            self._recorder.event(StageEntered(key=sample.key, stage=stage, device=device))

        try:
            evaluation = self._evaluator.evaluate(
                self._problem, paths.code, paths.build, self._prompter.backend, entered, profile=sample.profile
            )
            evaluated = await self._stop.run_unless_cancelled(evaluation, work)
        except RunStopped:
            raise
        except HkbenchError as error:
            self._recorder.event(EvaluationFailed.of(sample.key, error))
            raise
        if evaluated.assembly is not None:
            self._recorder.save_assembly(sample.key, evaluated.assembly)
        return evaluated


def _verdict_of(evaluated: EvaluationResult) -> Verdict:
    assert evaluated.verdict is not None, "a batch asks for verdicts"
    return evaluated.verdict


def no_code(problem: Problem, extraction: Extraction, prompter: Prompter, evaluator: Evaluator) -> Verdict:
    """Make the verdict on a reply without a candidate: a result like any other."""
    message = extraction.note or "the reply holds no code"
    return Verdict(
        problem=problem.name,
        status=Status.INCORRECT,
        failure=Failure(stage=Stage.EXTRACT, kind=FailureKind.NO_CODE, message=message),
        conditions=Conditions(
            backend=prompter.backend,
            device=evaluator.device.kind,
            device_name=evaluator.device.name,
            sizes=sizes_in_force(evaluator.sizes, problem),
            candidate_sha256=None,
            problem_sha256=problem.sha256,
            track=evaluator.track,
            isolation=evaluator.isolation,  # what would have confined it: nothing was run
        ),
    )


def holds_for_copies(verdict: Verdict) -> bool:
    """Tell whether other samples with the same code get this verdict; else they are judged anew."""
    return not verdict.unsettled and (verdict.failure is None or verdict.failure.kind not in _BY_LOAD)


def repeated(verdict: Verdict, first: SampleKey) -> Verdict:
    """Make the verdict of `first` that of another sample with the same code; it took no work."""
    if verdict.copy_of is not None:
        return verdict
    said = f"same code as {first.attempt}.{first.sample}, whose verdict this is"
    conditions = verdict.conditions.model_copy(update={"warnings": (*verdict.conditions.warnings, said)})
    return verdict.model_copy(update={"conditions": conditions, "copy_of": first, "stages": ()})
