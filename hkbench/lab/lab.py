"""The lab of one problem. A step that the run folder holds already is read from there instead of done again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any

from hkbench.categories import (
    Category,
    CategoryBook,
    Situation,
    StageGuide,
    key_metrics,
    situation,
)
from hkbench.device_kinds import model_of
from hkbench.engine import Evaluator
from hkbench.errors import HkbenchError, InternalError, RunStopped
from hkbench.experience.facts import traits
from hkbench.headline import plural
from hkbench.lab.advice import Adviser, Answer, Inquiry, with_metrics
from hkbench.lab.experience import Recaller
from hkbench.lab.flight import Begun, Flight, raise_failures
from hkbench.lab.found import found_in
from hkbench.lab.prompting import Prompter
from hkbench.lab.samples import Ask, Attempt, Proposal, Sample, best_of, better, earlier_with_code, tried
from hkbench.lab.stop import CallPermit, Stop
from hkbench.lab.verdicts import Verdicts
from hkbench.llm.client import ModelClient
from hkbench.prompts import (
    Reflection,
    SynthesisTask,
    hints_of,
    reflect_on,
    with_advice,
    with_history,
    with_remedies,
)
from hkbench.records import (
    Advice,
    BackendName,
    Candidate,
    CandidateExtracted,
    Decided,
    Extraction,
    ExtractionRule,
    Failure,
    GenerationFailed,
    GenerationStarted,
    KnownKernel,
    MoveGain,
    Problem,
    Prompt,
    PromptRendered,
    QuestionKind,
    Record,
    Remedy,
    Reply,
    ReplyReceived,
    SampleKey,
    Verdict,
)
from hkbench.store.figures import improvement
from hkbench.store.recorder import Recorder
from hkbench.store.samples import ProblemState

_NOT_TIMED = "no rule on speed-up, gain or roofline holds"
_NOT_HELD = f"{_NOT_TIMED}, nor one on correctness once a kernel compiles"


class Lab:
    """Offer a strategy what it needs for one problem.

    `prompt`, `generate`, `evaluate`, `reflect_on`, one attempt after the other; several side by side by `expand`, which
    tells of them together, and `flight`, which tells of each as it is judged; `propose`, code that no model wrote;
    `consult` where there is a judge, `ask_agent` for agents; `classify` and `situation` where there are categories;
    `decide` notes what was chosen; `known_kernel`, `known_remedies` and `known_moves` ask earlier runs. `samples` are
    all that strategies decide on.
    """

    def __init__(
        self,
        problem: Problem,
        prompter: Prompter,
        client: ModelClient,
        evaluator: Evaluator,
        recorder: Recorder,
        model: str,
        request: dict[str, Any] | None = None,
        stop: Stop | None = None,
        adviser: Adviser | None = None,
        before: ProblemState | None = None,
        describe: Callable[[Attempt], str | None] = lambda _: None,
        recaller: Recaller | None = None,
    ) -> None:
        """Take `before`: what the journal says of the problem when the run is resumed."""
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
        self._begun = 0  # the highest number of an attempt
        self._samples: dict[SampleKey, Sample] = {}
        self._attempts: dict[int, Sample] = {}  # the best sample of each that is closed
        self._before = before or ProblemState()
        self._describe = describe
        self._recaller = recaller
        self._asked: dict[int, QuestionKind] = {}  # by attempt, what the judge was asked before it
        self._verdicts = Verdicts(problem, prompter, evaluator, recorder, self._stop, self._before.order)

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return the judged samples of all attempts that are closed, in the order of their numbers."""
        return tuple(self._samples[key] for key in sorted(self._samples, key=lambda key: (key.attempt, key.sample)))

    @property
    def backend(self) -> BackendName:
        """The language that kernels are written in."""
        return self._prompter.backend

    @property
    def next_attempt(self) -> int:
        """The number of the attempt that `expand` begins next."""
        return self._begun + 1

    @property
    def prompter(self) -> Prompter:
        """What prompts are made from: the prompt files, the backend, the device."""
        return self._prompter

    def keep_search(self, state: str) -> None:
        """Keep what a search stands at, as JSON, for people and programs: a resume does not read it."""
        self._recorder.save_search(self.problem.name, state)

    def random(self, seed: int) -> Random:
        """Return a generator for the problem's choices: the same seed draws the same, in a resume too."""
        return Random(f"{seed}/{self.problem.name}")

    async def prompt(
        self,
        attempt: int,
        reflection: Reflection | None,
        stage: StageGuide | None = None,
        parent: Sample | None = None,
        task: SynthesisTask | None = None,
    ) -> Prompt:
        """Return the prompt of an attempt; the one that was sent, when it was sent before.

        `parent`: the sample that the attempt starts from, where it is not the one that `reflection` tells of.

        Raises:
            RunStopped: the run ends, and the attempt was not begun.
        """
        self._begun = max(self._begun, attempt)
        prompt = self._sent_prompt(attempt)
        if prompt is not None and attempt in self._before.prompts:
            return prompt
        if prompt is None:
            self._stop.check()
            pitfalls = self._recaller.pitfalls() if self._recaller is not None else ()
            made = self._prompter.render(self.problem, reflection, stage, task, pitfalls)
            prompt = await self._stop.run_unless_cancelled(made)
            self._recorder.save_prompt(self.problem.name, attempt, prompt)
        start = parent.key if parent is not None else None
        if start is None and reflection is not None:
            start = SampleKey(problem=self.problem.name, attempt=reflection.attempt, sample=reflection.sample)
        named = stage.name if stage is not None else None
        step = self._describe(Attempt(attempt, start, named, self._asked.get(attempt)))
        metrics, hints = reflection.metrics if reflection is not None else (), hints_of(reflection, task)
        self._recorder.event(PromptRendered.of(self.problem.name, attempt, prompt, start, metrics, step, hints))
        return prompt

    def _sent_prompt(self, attempt: int) -> Prompt | None:
        """Return the recorded prompt of an attempt."""
        name = self.problem.name
        text = self._recorder.prompt(name, attempt)
        if text is None:
            return None
        system = self._recorder.system(name, attempt)
        digest = sha256(((system or "") + text).encode()).hexdigest()
        template = self._prompter.book.choose(name, self._prompter.backend)
        return Prompt(text=text, system=system, template=template, sha256=digest)

    def propose(self, attempt: int, proposal: Proposal) -> Sample:
        """Return the candidate of an attempt without a model's call; the recorded one, where there is one.

        Raises:
            RunStopped: the run ends, and the attempt was not begun.
        """
        self._begun = max(self._begun, attempt)
        key = SampleKey(problem=self.problem.name, attempt=attempt, sample=1)
        known = self._recorder.extraction(key)
        if known is None:
            self._stop.check()
        extraction = known or Extraction(rule=ExtractionRule.PROPOSED, source=proposal.source, note=proposal.by)
        assert extraction.source is not None, "it is proposed with its code"
        digest = sha256(extraction.source.encode()).hexdigest()
        candidate = Candidate(source=extraction.source, sha256=digest, key=key)
        if known is None:
            self._recorder.save_extraction(key, extraction, candidate)
        if known is None or (attempt, 1) not in self._before.named:
            parent = proposal.parent.key if proposal.parent is not None else None
            step = self._describe(Attempt(attempt, parent, rule=proposal.by))
            self._recorder.event(CandidateExtracted.of(key, extraction, candidate, parent, step))
        return Sample(key, None, extraction, candidate, again=proposal.again, profile=proposal.profile)

    async def expand(self, steps: Sequence[Ask | Proposal]) -> list[list[Sample]]:
        """Begin an attempt for each of `steps`, work on all side by side, and return the judged samples of each.

        Attempts are numbered in the order of `steps` from the next free number on, and they count in this order for
        `samples` and `best`, whichever is judged first: a resume finds the same tree. Whoever marks nodes as under way
        (a virtual loss) does so between two of `steps`, before the call.

        Raises:
            HkbenchError: as of `generate` and `evaluate`. Attempts that came to their verdicts are closed.
        """
        begun = [await self._begin(step) for step in steps]
        results = await asyncio.gather(*(one.judge() for one in begun), return_exceptions=True)
        found = [self._decide_on(judged) for judged in results if isinstance(judged, list)]
        if len(found) < len(results):
            raise_failures(results)
        return found

    def flight(self) -> Flight:
        """Return what begins attempts side by side and tells of each as soon as it is judged: `async with`.

        Attempts are numbered in the order in which they are begun, from the next free number on.
        """
        return Flight(self._begin, self._decide_on, self._place)

    async def _begin(self, step: Ask | Proposal) -> Begun:
        number = self._begun + 1
        if isinstance(step, Proposal):
            proposed = self.propose(number, step)
            return Begun(number, 1, lambda: self._evaluate_all([proposed]))
        prompt = await self.prompt(number, step.hint, step.stage, step.parent, step.task)

        async def judge() -> list[Sample]:
            generated = await self.generate(prompt, number, step.samples, step.parent)
            return await self._evaluate_all([replace(sample, profile=step.profile) for sample in generated])

        return Begun(number, step.samples, judge)

    def _place(self, begun: Begun) -> int | None:
        """Return where in the journal the last verdict stands of those that an attempt needs; None: it lacks one."""
        samples = self._before.deciding.get(begun.attempt) or range(1, begun.samples + 1)
        return self._verdicts.place([(begun.attempt, sample) for sample in samples])

    async def generate(self, prompt: Prompt, attempt: int, n: int, parent: Sample | None = None) -> list[Sample]:
        """Generate N samples side by side; each is recorded before it is used.

        Raises:
            HkbenchError: some calls failed for good. The others' replies are kept for the resume.
            RunStopped: the run ends, and some calls were not begun. The others' replies are judged.
        """
        keys = [SampleKey(problem=self.problem.name, attempt=attempt, sample=i + 1) for i in range(n)]
        results = await asyncio.gather(*(self._reply(key, prompt) for key in keys), return_exceptions=True)
        source = parent.candidate.source if parent is not None and parent.candidate is not None else None
        replies = [(key, reply) for key, reply in zip(keys, results, strict=True) if isinstance(reply, Reply)]
        if len(replies) < n:
            if self._stop.requested and not self._stop.cancels_evaluations:
                await self._evaluate_part([await self._extract(key, reply, source) for key, reply in replies])
            raise_failures(results)
        return [await self._extract(key, reply, source) for key, reply in replies]

    async def _reply(self, key: SampleKey, prompt: Prompt) -> Reply:
        known = self._recorder.reply(key, self._model)
        if known is not None:
            self.answered = True
            return known
        try:
            tell = self._recorder.event
            with CallPermit(self._stop, key, tell, lambda: tell(GenerationStarted(key=key))) as turn:
                call = self._client.complete(key, prompt.text, permit=turn, system=prompt.system)
                reply = await self._stop.run_within_grace(call)
        except RunStopped:
            raise
        except HkbenchError as error:
            self._recorder.event(GenerationFailed.of(key, error))
            raise
        self.answered = True
        request = self._request
        if request is not None:
            system = {} if prompt.system is None else {"system": prompt.system}
            request = request | {"prompt_sha256": prompt.sha256} | system
        self._recorder.save_reply(key, reply, request)
        self._recorder.event(ReplyReceived.of(key, reply))
        stored = self._recorder.reply(key, self._model)
        assert stored is not None
        return stored  # as a resume will find it: what UTF-8 cannot hold is escaped in the file

    async def _extract(self, key: SampleKey, reply: Reply, parent_source: str | None) -> Sample:
        known = self._recorder.extraction(key)
        extraction = known or await found_in(reply, parent_source, self.problem, self._prompter)
        candidate = None
        if extraction.source is not None:
            digest = sha256(extraction.source.encode()).hexdigest()
            candidate = Candidate(source=extraction.source, sha256=digest, key=key)
        if known is None:
            self._recorder.save_extraction(key, extraction, candidate)
            self._recorder.event(CandidateExtracted.of(key, extraction, candidate))
        return Sample(key, reply, extraction, candidate)

    async def evaluate(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return the samples of an attempt with their verdicts; builds run side by side, a device times one at a time.

        Where the next attempt is recorded, only those that it was begun after: samples that were added to the run since
        change no decision. A sample that hkbench itself fails at is left out, and `failed` says why; the resume
        evaluates it again.

        Raises:
            HkbenchError: the machine failed, or the run left a sample to the resume. Verdicts reached are kept.
        """
        return self._decide_on(await self._evaluate_all(samples))

    async def _evaluate_all(self, samples: Sequence[Sample]) -> list[Sample]:
        results = await asyncio.gather(*(self._verdicts.reach(sample) for sample in samples), return_exceptions=True)
        lost = [result for result in results if not isinstance(result, Verdict)]
        internal = [failure for failure in lost if isinstance(failure, InternalError)]
        if len(internal) < len(lost) or len(lost) == len(samples):
            raise_failures(lost)
        self.failed = self.failed or next(iter(internal), None)
        found = zip(samples, results, strict=True)
        return [replace(sample, verdict=v) for sample, v in found if isinstance(v, Verdict)]

    def _decide_on(self, judged: Sequence[Sample]) -> list[Sample]:
        """Close an attempt, and return those of its samples that strategies decide on."""
        best = best_of(judged)
        self._close_attempt(best)
        deciding = self._before.deciding.get(best.key.attempt)
        decided = [sample for sample in judged if deciding is None or sample.key.sample in deciding] or [*judged]
        self._samples |= {sample.key: sample for sample in decided}
        self.best = self.best_of_all if deciding is None else better(best_of(decided), self.best)
        return decided

    async def _evaluate_part(self, samples: Sequence[Sample]) -> None:
        """Evaluate the samples of an attempt that the run ends in; where the machine fails leave them to the resume."""
        results = await asyncio.gather(*(self._verdicts.reach(sample) for sample in samples), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, HkbenchError):
                raise result
        found = zip(samples, results, strict=True)
        judged = [replace(sample, verdict=v) for sample, v in found if isinstance(v, Verdict)]
        if judged:
            self._keep_best(best_of(judged))
            self.best = self.best_of_all

    def _keep_best(self, best: Sample) -> None:
        if better(best, self.best_of_all) is best:
            self.best_of_all = best
            self._recorder.copy_best(best.key)

    def _close_attempt(self, best: Sample) -> None:
        assert best.verdict is not None
        self._keep_best(best)
        self._attempts[best.key.attempt] = best
        self._recorder.close_attempt(best.key, best.verdict)

    def reflect_on(self, sample: Sample, stage: StageGuide | None = None) -> Reflection:
        """Return what the next prompt says of this sample: its error, or its profile when it is correct but slow.

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
        if self._recaller is not None and sample.verdict.failure is not None:
            reflection = with_remedies(reflection, self._recaller.to_show(sample.verdict.failure, sample.key))
        first = earlier_with_code(self.samples, sample)
        attempts = [tried(one) for _, one in sorted(self._attempts.items())]
        best = None if self.best is None else tried(self.best)
        reflection = with_history(reflection, attempts, best, first)
        if stage is None:
            return reflection
        profile = sample.verdict.profile
        names = stage.metrics.get(self._evaluator.device.kind, ())
        lines = key_metrics(profile, names) if profile is not None else ()
        return reflection.model_copy(update={"profile": (), "metrics": lines})

    async def consult(self, kind: QuestionKind, sample: Sample, attempt: int) -> Reflection:
        """Return the reflection on this sample with what the judge says of it, for the prompt of `attempt`.

        Without the judge's part where its answers cannot be used.
        """
        self._asked[attempt] = kind
        assert self._adviser is not None, "the strategy asks a judge, and the run has none"
        reflection = with_metrics(self.reflect_on(sample), sample.verdict)
        advice = await self._adviser.ask(kind, self.problem, sample.key, reflection, attempt)
        if advice is None:
            return reflection
        return with_advice(reflection.model_copy(update={"metrics": ()}), advice)

    async def ask_agent(self, kind: QuestionKind, form: type[Advice], sample: Sample, told: Record) -> Answer:
        """Return what an agent says of this sample, for the next attempt; `told` is what it is given besides."""
        assert self._adviser is not None, "the strategy asks agents, and the run has no model for them"
        self._asked[self.next_attempt] = kind
        shown = with_metrics(self.reflect_on(sample), sample.verdict)
        inquiry = Inquiry(kind, form, self.problem, sample.key, shown, self.next_attempt, told)
        return await self._adviser.inquire(inquiry, empty_again=False)

    async def known_kernel(self) -> KnownKernel | None:
        """Return the best kernel of earlier runs for such a problem, device kind and backend, to be judged here."""
        if self._recaller is None:
            return None
        facts = await self._stop.run_unless_cancelled(self._prompter.facts(self.problem))
        return self._recaller.kernel(traits(facts), self._evaluator.device, self._prompter.settings)

    def known_remedies(self, failure: Failure) -> tuple[Remedy, ...]:
        """Return what mended such a failure in earlier runs, the surest first; `reflect_on` shows them by itself."""
        return () if self._recaller is None else self._recaller.remedies(failure)

    def known_moves(self) -> tuple[MoveGain, ...]:
        """Return what moves brought in earlier runs, by class of bottleneck; nothing without an experience."""
        return () if self._recaller is None else self._recaller.moves()

    async def classify(self) -> Category:
        """Return what kind of problem it is; noted in the journal."""
        book = self._book
        facts = await self._stop.run_unless_cancelled(self._prompter.facts(self.problem))
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
        elif (arch := model_of(self._evaluator.device.kind).emulates) is not None:
            self.decide(1, "rules", "without times", f"{arch} is emulated and nothing is timed: {_NOT_TIMED}")
        return category

    async def situation(self, stage: int, name: str | None, before: float | None) -> Situation:
        """Return where the problem stands after `stage` stages, the last of that `name`.

        `before`: the best speed-up when that stage began.
        """
        verdict = self.best.verdict if self.best is not None else None
        speedup = verdict.speedup.value if verdict is not None and verdict.speedup is not None else None
        sol = verdict.sol if verdict is not None else None
        return situation(
            await self._prompter.facts(self.problem),
            self._book.ridge,
            stage=stage,
            stage_name=name,
            speedup=speedup,
            correct=self.best is not None and (None if self.best.compiled else self.best.correct),
            gain=speedup / before if speedup is not None and before is not None else None,
            roof=sol.fraction if sol is not None else None,
            track=self._evaluator.track,
        )

    @property
    def _book(self) -> CategoryBook:
        assert self._prompter.categories is not None, "the strategy needs categories, and the run has none"
        return self._prompter.categories

    def note_result(self, attempt: int, stage: str, before: float | None) -> None:
        """Note whether a stage that ended with `attempt` made the best kernel faster than its speed-up `before`.

        Nothing where no kernel is correct, or nothing is measured.
        """
        verdict = self.best.verdict if self.best is not None else None
        if verdict is None or verdict.speedup is None:
            return
        self.decide(attempt, "result", stage, improvement(before, verdict.speedup.value))

    def decide(
        self, attempt: int, what: str, choice: str, why: str, place: int | None = None, places: int | None = None
    ) -> None:
        """Note a choice of the strategy, from `attempt` on, in the journal; of a stage also its place among them."""
        name = self.problem.name
        self._recorder.event(
            Decided(problem=name, attempt=attempt, what=what, choice=choice, why=why, place=place, places=places)
        )
