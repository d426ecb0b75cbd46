"""The lab of one problem. A step that the run folder holds already is read from there instead of done again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from hkbench.categories import (
    Category,
    CategoryBook,
    Situation,
    StageGuide,
    key_metrics,
    metric_names,
    situation,
)
from hkbench.engine import Evaluated, Evaluating
from hkbench.errors import HkbenchError, InternalError, ModelUnavailable, RunStopped, unexpected
from hkbench.headline import plural
from hkbench.lab.advice import Adviser
from hkbench.lab.prompting import Prompter
from hkbench.lab.samples import Sample, best_of, replaces
from hkbench.lab.stop import Stop, Turn, Work
from hkbench.lab.unjudged import holds_for_copies, no_code, repeated
from hkbench.llm.client import ModelClient
from hkbench.llm.extract import extract
from hkbench.prompts import Reflection, StageSheet, Tried, reflect_on, with_advice, with_history
from hkbench.records import (
    AttemptClosed,
    Candidate,
    CandidateExtracted,
    Decided,
    EvaluationFailed,
    GenerationFailed,
    GenerationStarted,
    Problem,
    Prompt,
    PromptRendered,
    QuestionKind,
    Reply,
    ReplyReceived,
    SampleKey,
    Stage,
    StageEntered,
    Turns,
    Verdict,
    VerdictReached,
)
from hkbench.store.figures import speedup
from hkbench.store.recorder import Recorder

_NOT_HELD = "no rule on speed-up, gain or roofline holds, nor one on correctness once a kernel compiles"


@dataclass(frozen=True)
class Plan:
    """How much a strategy may do for one problem."""

    samples: int
    attempts: int
    exhaust: bool
    from_best: bool = False  #: strategy judge: a round starts from the best kernel so far


class Lab:
    """Offers a strategy what it needs for one problem.

    `prompt`, `generate`, `evaluate`, `reflect_on`; `consult` where there is a judge, `classify` and `situation` where
    there are categories; `decide` notes what was chosen.
    """

    def __init__(
        self,
        problem: Problem,
        prompter: Prompter,
        client: ModelClient,
        evaluator: Evaluating,
        recorder: Recorder,
        model: str,
        request: dict[str, Any] | None = None,
        stop: Stop | None = None,
        adviser: Adviser | None = None,
        deciding: Mapping[int, frozenset[int]] | None = None,
    ) -> None:
        """`deciding` has, by attempt, the samples that the recorded prompt of the next attempt was made after."""
        self.problem = problem
        self.best: Sample | None = None  #: that strategies decide on: the best of the samples so far
        self.best_of_all: Sample | None = None  #: also of samples that were added to an attempt after its decision
        self.category: str | None = None  #: once it is classified
        self.answered = False  #: whether there is a reply, of this session or recorded in the folder
        self.failed: InternalError | None = None  #: the first that left a sample without a verdict while others went on
        self._prompter = prompter
        self._client = client
        self._evaluator = evaluator
        self._recorder = recorder
        self._model = model
        self._request = request
        self._stop = stop or Stop()
        self._adviser = adviser
        self._attempts: dict[int, Sample] = {}  # the best sample of each that is closed
        self._sent: dict[str, SampleKey] = {}  # by the candidate's sha256, the first sample that held it
        self._deciding = deciding or {}
        self._judged: dict[str, tuple[SampleKey, asyncio.Future[Evaluated]]] = {}  # by the candidate's sha256

    async def prompt(self, attempt: int, reflection: Reflection | None, stage: StageGuide | None = None) -> Prompt:
        """The prompt of an attempt; the one that was sent, when it was sent before.

        Raises:
            RunStopped: the run ends, and the attempt was not begun.
        """
        book, name = self._prompter.book, self.problem.name
        text = self._recorder.prompt(name, attempt)
        if text is not None:
            template = book.choose(name, self._prompter.backend)
            system = self._recorder.system(name, attempt)
            digest = sha256(((system or "") + text).encode()).hexdigest()
            return Prompt(text=text, system=system, template=template, sha256=digest)
        self._stop.check()
        about = None
        if stage is not None:
            guidance = stage.guidance_for(self._prompter.backend, self._evaluator.device.kind)
            about = StageSheet(name=stage.name, focus=stage.focus, guidance=guidance)
        prompt = await self._stop.unless_left(self._prompter.render(self.problem, reflection, about))
        self._recorder.save_prompt(name, attempt, prompt)
        parent = None
        if reflection is not None:
            parent = SampleKey(problem=name, attempt=reflection.attempt, sample=reflection.sample)
        self._recorder.event(
            PromptRendered(
                time=time.time(),
                problem=name,
                attempt=attempt,
                template=prompt.template,
                sha256=prompt.sha256,
                parent=parent,
                metrics=reflection.metrics if reflection is not None else (),
            )
        )
        return prompt

    async def generate(self, prompt: Prompt, attempt: int, n: int, parent: Sample | None = None) -> list[Sample]:
        """N generations side by side, each recorded before it is used.

        Raises:
            HkbenchError: some calls failed for good. The others' replies are kept for the resume.
            RunStopped: the run ends, and some calls were not begun. The others' replies are judged.
        """
        keys = [SampleKey(problem=self.problem.name, attempt=attempt, sample=i + 1) for i in range(n)]
        results = await asyncio.gather(*(self._reply(key, prompt) for key in keys), return_exceptions=True)
        source = parent.candidate.source if parent is not None and parent.candidate is not None else None
        replies = [(key, reply) for key, reply in zip(keys, results, strict=True) if isinstance(reply, Reply)]
        if len(replies) < n:
            if self._stop.told and not self._stop.leaves_evaluations:
                await self._judge_part([self._extract(key, reply, source) for key, reply in replies])
            _raise_failures(results)
        return [self._extract(key, reply, source) for key, reply in replies]

    async def _reply(self, key: SampleKey, prompt: Prompt) -> Reply:
        known = self._recorder.reply(key, self._model)
        if known is not None:
            self.answered = True
            return known
        try:
            tell = self._recorder.event
            with Turn(self._stop, key, tell, lambda: tell(GenerationStarted(time=time.time(), key=key))) as turn:
                call = self._client.complete(key, prompt.text, permit=turn, system=prompt.system)
                reply = await self._stop.unless_cut(call)
        except RunStopped:
            raise
        except HkbenchError as error:
            failed = GenerationFailed(time=time.time(), key=key, error=type(error).__name__, message=str(error))
            self._recorder.event(failed)
            raise
        self.answered = True
        request = self._request
        if request is not None:
            system = {} if prompt.system is None else {"system": prompt.system}
            request = request | {"prompt_sha256": prompt.sha256} | system
        self._recorder.save_reply(key, reply, request)
        self._recorder.event(
            ReplyReceived(
                time=time.time(),
                key=key,
                model=reply.model,
                usage=reply.usage,
                seconds=reply.seconds,
                tries=reply.tries,
                replayed=reply.replayed,
                finish_reason=reply.finish_reason,
            )
        )
        stored = self._recorder.reply(key, self._model)
        assert stored is not None
        return stored  # as a resume will find it: what UTF-8 cannot hold is escaped in the file

    def _extract(self, key: SampleKey, reply: Reply, parent_source: str | None) -> Sample:
        known = self._recorder.extraction(key)
        extraction = known or extract(reply.text, parent_source)
        candidate = None
        if extraction.source is not None:
            digest = sha256(extraction.source.encode()).hexdigest()
            candidate = Candidate(source=extraction.source, sha256=digest, key=key)
        if known is None:
            self._recorder.save_extraction(key, extraction, candidate)
            self._recorder.event(
                CandidateExtracted(
                    time=time.time(),
                    key=key,
                    rule=extraction.rule,
                    sha256=candidate.sha256 if candidate else None,
                )
            )
        return Sample(key, reply, extraction, candidate)

    async def evaluate(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples with their verdicts; builds run side by side, measurements one at a time.

        Where the next attempt is recorded, only those that it was begun after: samples that were added to the run since
        change no decision. A sample that hkbench itself fails at is left out, and `failed` says why; the resume judges
        it again.

        Raises:
            HkbenchError: the machine failed, or the run left a sample to the resume. Verdicts reached are kept.
        """
        results = await asyncio.gather(*(self._verdict(sample) for sample in samples), return_exceptions=True)
        lost = [result for result in results if not isinstance(result, Verdict)]
        internal = [failure for failure in lost if isinstance(failure, InternalError)]
        if len(internal) < len(lost) or len(lost) == len(samples):
            _raise_failures(lost)
        self.failed = self.failed or next(iter(internal), None)
        found = zip(samples, results, strict=True)
        judged = [replace(sample, verdict=v) for sample, v in found if isinstance(v, Verdict)]
        best = best_of(judged)
        self._close_attempt(best)
        deciding = self._deciding.get(best.key.attempt)
        decided = [sample for sample in judged if deciding is None or sample.key.sample in deciding] or judged
        self.best = self.best_of_all if deciding is None else _better(best_of(decided), self.best)
        return decided

    async def _judge_part(self, samples: Sequence[Sample]) -> None:
        """The samples of an attempt that the run ends in. Where the machine fails they are left to the resume."""
        results = await asyncio.gather(*(self._verdict(sample) for sample in samples), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, HkbenchError):
                raise result
        found = zip(samples, results, strict=True)
        judged = [replace(sample, verdict=v) for sample, v in found if isinstance(v, Verdict)]
        if judged:
            self._keep_best(best_of(judged))
            self.best = self.best_of_all

    async def _verdict(self, sample: Sample) -> Verdict:
        """The verdict on a sample. An exception that nobody foresaw ends this sample only: it becomes InternalError."""
        try:
            return await self._reached(sample)
        except HkbenchError:
            raise
        except Exception as error:
            failure = unexpected(f"judging {self.problem.name} {sample.key.attempt}.{sample.key.sample}", error)
            # Which raises in turn where the disk is full.
            self._recorder.event(EvaluationFailed.of(time.time(), sample.key, failure))
            raise failure from error

    async def _reached(self, sample: Sample) -> Verdict:
        if sample.candidate is not None:
            self._sent.setdefault(sample.candidate.sha256, sample.key)
        known = self._recorder.verdict(sample.key, sample.candidate.sha256 if sample.candidate else None)
        if known is not None:
            self._remember(sample, known)
            return known
        turns: Turns | None = None
        if sample.candidate is None:
            verdict = no_code(self.problem, sample.extraction, self._prompter, self._evaluator)
        else:
            verdict, turns = await self._judged_once(sample, sample.candidate.sha256)
        self._recorder.save_verdict(sample.key, verdict)
        self._recorder.event(VerdictReached.of(time.time(), sample.key, verdict, turns))
        return verdict

    async def _judged_once(self, sample: Sample, sha256: str) -> tuple[Verdict, Turns | None]:
        """Models repeat themselves: the same code has one verdict, that of its first sample, in all attempts.

        Measuring it again would let the luckier of two measurements count. Only failures that a busy machine can cause
        are judged anew.
        """
        if sha256 in self._judged:
            first, judging = self._judged[sha256]
            verdict = _verdict_of(await judging)
            if holds_for_copies(verdict):
                return repeated(verdict, first), None
        self._judged[sha256] = sample.key, asyncio.ensure_future(self._judge(sample))
        evaluated = await self._judged[sha256][1]
        return _verdict_of(evaluated), evaluated.turns

    def _remember(self, sample: Sample, verdict: Verdict) -> None:
        if sample.candidate is not None and sample.candidate.sha256 not in self._judged:
            reached: asyncio.Future[Evaluated] = asyncio.get_running_loop().create_future()
            reached.set_result(Evaluated(verdict))
            self._judged[sample.candidate.sha256] = verdict.copy_of or sample.key, reached

    async def _judge(self, sample: Sample) -> Evaluated:
        paths, work = self._recorder.sample(sample.key), Work()

        def entered(stage: Stage, device: int | None) -> None:
            work.measuring = device is not None
            self._recorder.event(StageEntered(time=time.time(), key=sample.key, stage=stage, device=device))

        try:
            return await self._stop.unless_left(
                self._evaluator.evaluate(self.problem, paths.code, paths.build, self._prompter.backend, entered), work
            )
        except RunStopped:
            raise
        except HkbenchError as error:
            self._recorder.event(EvaluationFailed.of(time.time(), sample.key, error))
            raise

    def _keep_best(self, best: Sample) -> None:
        if _better(best, self.best_of_all) is best:
            self.best_of_all = best
            self._recorder.copy_best(best.key, "best", with_prompt=True)

    def _close_attempt(self, best: Sample) -> None:
        assert best.verdict is not None
        self._keep_best(best)
        self._attempts[best.key.attempt] = best
        self._recorder.copy_best(best.key, "attempt", with_prompt=False)
        self._recorder.event(
            AttemptClosed(
                time=time.time(),
                problem=self.problem.name,
                attempt=best.key.attempt,
                best_sample=best.key.sample,
                status=best.verdict.status,
                speedup=best.verdict.speedup.value if best.verdict.speedup else None,
            )
        )

    def reflect_on(self, sample: Sample, stage: StageGuide | None = None) -> Reflection:
        """What the next prompt says of this sample: its error, or its profile when it is correct but slow.

        And what all attempts so far came to, with the best kernel where that is another one. For a stage, only those
        figures of the profile that the stage is about.
        """
        assert sample.verdict is not None
        reflection = reflect_on(
            sample.verdict,
            sample.candidate.source if sample.candidate else None,
            sample.key.attempt,
            self._prompter.book,
            self._prompter.backend,
            sample=sample.key.sample,
        )
        first = None if sample.candidate is None else self._sent.get(sample.candidate.sha256)
        if first is not None and first.attempt >= sample.key.attempt:
            first = None
        attempts = [_tried(one) for _, one in sorted(self._attempts.items())]
        best = None if self.best is None else _tried(self.best)
        reflection = with_history(reflection, attempts, best, first)
        if stage is None:
            return reflection
        profile = sample.verdict.profile
        names = stage.metrics.get(self._evaluator.device.kind, ())
        lines = key_metrics(profile, names) if profile is not None else ()
        return reflection.model_copy(update={"profile": (), "metrics": lines})

    async def consult(self, kind: QuestionKind, sample: Sample, attempt: int) -> Reflection:
        """The reflection on this sample with what the judge says of it, for the prompt of `attempt`.

        Without the judge's part where its answers cannot be used.
        """
        assert self._adviser is not None, "the strategy asks a judge, and the run has none"
        reflection = self.reflect_on(sample)
        profile = sample.verdict.profile if sample.verdict is not None else None
        if profile is not None:
            reflection = reflection.model_copy(update={"metrics": key_metrics(profile, metric_names(profile))})
        advice = await self._adviser.ask(kind, self.problem, sample.key, reflection, attempt)
        if advice is None:
            return reflection
        return with_advice(reflection.model_copy(update={"metrics": ()}), advice)

    async def classify(self) -> Category:
        """What kind of problem it is; noted in the journal."""
        book = self._book
        facts = await self._stop.unless_left(self._prompter.facts(self.problem))
        found = book.classify(self.problem, facts)
        doubt = f"; doubtful: {found.doubtful}" if found.doubtful is not None else ""
        category = book.category(found.category)
        self.category = category.name
        operators = sum(facts.graph.classes.values()) if facts.graph is not None else None
        counted = f"{plural(operators, 'operator')}, " if operators is not None else ""
        about = f"{category.title}; {counted}{plural(len(category.stages), 'stage')}"
        self.decide(1, "category", found.category, f"{about}; by {found.by}: {found.why}{doubt}")
        if (arch := self._evaluator.compiled_for) is not None:
            self.decide(1, "rules", "without scores", f"{arch} is compiled for and nothing is measured: {_NOT_HELD}")
        return category

    async def situation(self, stage: int, name: str | None, before: float | None) -> Situation:
        """Where the problem stands after `stage` stages, the last of that `name`.

        `before`: the best speed-up when that stage began.
        """
        verdict = self.best.verdict if self.best is not None else None
        speedup = verdict.speedup.value if verdict is not None and verdict.speedup is not None else None
        roof = None
        if verdict is not None and verdict.floor is not None and verdict.candidate is not None:
            roof = min(1.0, verdict.floor.seconds / verdict.candidate.median.value)
        return situation(
            await self._prompter.facts(self.problem),
            self._book.ridge,
            stage=stage,
            stage_name=name,
            speedup=speedup,
            compiled=self.best is not None and self.best.compiled,
            gain=speedup / before if speedup is not None and before is not None else None,
            roof=roof,
            track=self._evaluator.track,
        )

    @property
    def _book(self) -> CategoryBook:
        assert self._prompter.categories is not None, "the strategy needs categories, and the run has none"
        return self._prompter.categories

    def note_result(self, attempt: int, stage: str, before: float | None) -> None:
        """Notes whether a stage that ended with `attempt` made the best kernel faster than its speed-up `before`.

        Nothing where no kernel is correct, or nothing is measured.
        """
        verdict = self.best.verdict if self.best is not None else None
        if verdict is None or verdict.speedup is None:
            return
        after = verdict.speedup.value
        why = f"no improvement on {speedup(after)}"
        if before is None:
            why = f"first correct kernel, {speedup(after)}"
        elif after > before:
            why = f"improved {speedup(before)} -> {speedup(after)}"
        self.decide(attempt, "result", stage, why)

    def decide(
        self, attempt: int, what: str, choice: str, why: str, place: int | None = None, places: int | None = None
    ) -> None:
        """Notes a choice of the strategy, from `attempt` on, in the journal; of a stage also its place among them."""
        self._recorder.event(
            Decided(
                time=time.time(),
                problem=self.problem.name,
                attempt=attempt,
                what=what,
                choice=choice,
                why=why,
                place=place,
                places=places,
            )
        )


def _tried(sample: Sample) -> Tried:
    assert sample.verdict is not None
    return Tried(key=sample.key, candidate=sample.candidate, verdict=sample.verdict)


def _better(sample: Sample, best: Sample | None) -> Sample:
    """The better of two judged samples; `best` where they are equals."""
    assert sample.verdict is not None
    if best is None or best.verdict is None or replaces(sample.verdict, best.verdict):
        return sample
    return best


def _verdict_of(evaluated: Evaluated) -> Verdict:
    assert evaluated.verdict is not None, "a batch asks for verdicts"
    return evaluated.verdict


def _raise_failures(results: Sequence[object]) -> None:
    """Raises what went wrong; a cancellation or a fault of hkbench itself goes first, alone."""
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures:
        if not isinstance(failure, HkbenchError):
            raise failure
    service = [failure for failure in failures if isinstance(failure, ModelUnavailable)]
    raise (service or failures)[0]
