"""The agent pipeline: a kernel is written, compiled, checked and profiled; what fails goes to the agent for it.

The steps are those of `hkbench.agents.flow`: each ends with one of its branches, which leads to the next step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import Field, model_validator

from hkbench.agents import compile_reasoner, correctness_reasoner, diversity, performance
from hkbench.agents.compile_reasoner import BUILD_FAILURES, CompileAdvice, CompileTask
from hkbench.agents.correctness_reasoner import Change, CorrectnessAdvice, CorrectnessTask, Trial, signature
from hkbench.agents.diversity import DiversityTask, Past
from hkbench.agents.flow import ENDS, Branch, Step
from hkbench.agents.performance import Measured, PerformanceAdvice, Target
from hkbench.agents.planner import Plan, PlanTask, plan
from hkbench.agents.research import Research, ResearchTask, research
from hkbench.agents.shelves import shelves
from hkbench.backends import find_backend
from hkbench.experience.fingerprint import fingerprint
from hkbench.lab import Ask, Attempt, Lab, Proposal, Sample, best_of
from hkbench.lab.advice import CALLS, Answer
from hkbench.moves import key_of
from hkbench.moves.launch_values import constants
from hkbench.prompts import AgentHint, HintTopic, SynthesisTask
from hkbench.records import Failure, Flag
from hkbench.store.sanitize import one_line
from hkbench.strategies.base import Attempts, Options, Strategy

TARGET = 1.2  #: speed-up
MEMORY = "memory"
TUNED = "tuned"
_SHOWN = 300  #: characters of a hint in the journal


class AgentsOptions(Options):
    attempts: Attempts = 5

    target: Annotated[float | None, Field(gt=0), Flag("X")] = None
    """speed-up that ends a problem (default: 1.2)"""

    target_roof: Annotated[float | None, Field(gt=0, le=1), Flag("F")] = None
    """fraction of the device's roofline that ends a problem, in place of --target"""

    max_tuning: Annotated[int, Field(ge=0), Flag("N")] = 2
    """changes of a wrong kernel that are tried before it is given up"""

    @model_validator(mode="before")
    @classmethod
    def _one_target(cls, told: dict[str, Any]) -> dict[str, Any]:
        if told.get("target") is not None and told.get("target_roof") is not None:
            raise ValueError("--target and --target-roof both say when a problem ends: give one of them")
        return told


class Agents(Strategy[AgentsOptions]):
    """Plan, look into the memory, then write kernels until one meets its target, with an agent for each failure."""

    name = "agents"
    summary = "agents that write, compile, check and profile, each failure with a reasoner of its own"
    Options = AgentsOptions
    stepwise = asks_judge = uses_categories = profiles_fast = True

    async def run(self, lab: Lab, options: AgentsOptions) -> None:
        pipeline = _Pipeline(lab, options)
        step = Step.PLAN
        while step not in ENDS:
            step = pipeline.take(step, await pipeline.steps[step]())
        pipeline.end(step)

    def describe(self, attempt: Attempt) -> str | None:
        if attempt.rule is not None:
            return MEMORY if attempt.rule == MEMORY else TUNED
        return attempt.question or ("seed" if attempt.parent is None else "again")

    def ends_early(self, options: AgentsOptions) -> bool:
        del options
        return True

    def max_calls(self, options: AgentsOptions) -> int:
        asked = options.attempts - 1 + options.attempts * options.max_tuning
        return options.samples * options.attempts + CALLS * asked


class _Pipeline:
    """The steps of one problem, and what is carried from one to the next."""

    def __init__(self, lab: Lab, options: AgentsOptions) -> None:
        self._lab = lab
        self._options = options
        self._target = Target(speedup=options.target or TARGET, roof=options.target_roof)
        self._plan: Plan | None = None
        self._kernel: Sample | None = None  # that the step is about
        self._written = 0  # attempts of the synthesis
        self._hints: list[AgentHint] = []  # for the next one
        self._diverse = 0  # hints of that kind so far
        self._past: list[Past] = []  # the synthesis' attempts
        self._errors: list[str] = []  # fingerprints of failed builds
        self._research: Research | None = None  # on the last of them
        self._measured: Measured | None = None
        self._advice: Answer | None = None  # the correctness reasoner's
        self._change: Change | None = None  # that it proposes
        self._tried: list[Trial] = []  # on the kernel
        self._base: Sample | None = None  # that is tuned
        self._why = ""
        self.steps: dict[Step, Callable[[], Awaitable[Branch]]] = {
            Step.PLAN: self.plan,
            Step.MEMORY: self.memory,
            Step.SYNTHESIS: self.synthesis,
            Step.COMPILE: self.compile,
            Step.RESEARCH: self.research,
            Step.COMPILE_REASONER: self.compile_reasoner,
            Step.CHECK: self.check,
            Step.CORRECTNESS_REASONER: self.correctness_reasoner,
            Step.TUNING: self.tuning,
            Step.PROFILE: self.profile,
            Step.TARGET: self.target,
            Step.PERFORMANCE: self.performance,
            Step.DIVERSITY: self.diversity,
            Step.FALLBACK: self.fallback,
        }

    def take(self, step: Step, branch: Branch) -> Step:
        """Note the branch that a step ended with, and return the next one."""
        assert branch.source is step, f"{branch.name} does not begin at {step}"
        why = f"{branch.source} -> {branch.target}: {branch.when}" + (f", {self._why}" if self._why else "")
        self._lab.decide(self._attempt, "branch", branch.name.lower(), why)
        self._why = ""
        return branch.target

    def end(self, step: Step) -> None:
        """Note the end state."""
        best = self._lab.best
        why = "no kernel is right"
        if best is not None and best.sound:
            why = f"best: {best.key.attempt}.{best.key.sample}, {self._measure(best).described}"
        self._lab.decide(self._attempt, "end", step.value, why)

    async def plan(self) -> Branch:
        category = await self._lab.classify()
        situation = await self._lab.situation(0, None, None)
        self._plan = plan(PlanTask(category=category, situation=situation, target=self._target.described))
        self._why = self._plan.category
        return Branch.PLANNED

    async def memory(self) -> Branch:
        known = await self._lab.known_kernel()
        if known is None:
            return Branch.NOTHING_KNOWN
        self._why = known.origin.source.described
        [[sample]] = await self._lab.expand([Proposal(known.code, MEMORY)])
        if not sample.sound:
            return Branch.KNOWN_WRONG
        self._kernel = sample
        return Branch.KNOWN_GOOD if self._measure(sample).met else Branch.KNOWN_SLOW

    async def synthesis(self) -> Branch:
        task = SynthesisTask(plan=self._plan.lines if self._plan is not None else (), hints=tuple(self._hints))
        for hint in self._hints:
            said = f"{hint.origin}: {one_line(hint.text, _SHOWN)}"
            self._lab.decide(self._lab.next_attempt, "hint", hint.topic, said)
        parent = self._kernel
        reflection = self._lab.reflect_on(parent) if parent is not None else None
        best = self._lab.best
        [samples] = await self._lab.expand([Ask(parent, reflection, self._options.samples, task=task)])
        self._kernel = best_of(samples)
        self._written += 1
        self._hints, self._research, self._base, self._tried = [], None, None, []
        self._past.append(self._remembered(self._kernel, better=self._lab.best is not best))
        return Branch.NO_CODE if self._kernel.candidate is None else Branch.CODE

    async def compile(self) -> Branch:
        failure = self._failure
        if failure is None or failure.kind not in BUILD_FAILURES:
            return Branch.COMPILES
        mark = fingerprint(failure)
        self._why = one_line(mark.text, _SHOWN)
        seen = mark.digest in self._errors
        self._errors.append(mark.digest)
        if not self._attempts_left:
            return Branch.LAST_ERROR
        return Branch.SAME_ERROR if seen else Branch.NEW_ERROR

    async def research(self) -> Branch:
        lab, failure = self._lab, self._failure
        assert failure is not None
        book, arch = lab.prompter.book, lab.prompter.arch
        where = shelves(find_backend(lab.backend), arch, book.folder)
        task = ResearchTask(failure, lab.backend, book, lab.known_remedies(failure), where)
        self._research = await asyncio.to_thread(research, task)
        self._why = ", ".join(one.where for one in self._research.findings)
        if not self._research.findings:
            return Branch.NOTHING_FOUND
        self._hints.append(AgentHint(topic=HintTopic.RESEARCH, text=self._research.text, origin="research"))
        return Branch.FOUND

    async def compile_reasoner(self) -> Branch:
        assert self._kernel is not None
        task = CompileTask(seen=self._errors.count(self._errors[-1]), research=self._research)
        answer = await self._lab.ask_agent(compile_reasoner.QUESTION, CompileAdvice, self._kernel, task)
        hint = compile_reasoner.hint(answer.advice, answer.text)
        return self._advised(hint, answer, Branch.BUILD_ADVICE, Branch.NO_BUILD_ADVICE)

    async def check(self) -> Branch:
        assert self._kernel is not None
        if self._kernel.sound:
            return Branch.RIGHT
        self._why = str(self._failure.kind) if self._failure is not None else ""
        if not self._attempts_left and not self._options.max_tuning:
            return Branch.LAST_WRONG
        return Branch.WRONG

    async def correctness_reasoner(self) -> Branch:
        assert self._kernel is not None and self._kernel.candidate is not None
        self._base = self._base or self._kernel
        source, backend = self._kernel.candidate.source, self._lab.backend
        left = self._options.max_tuning - len(self._tried)
        task = CorrectnessTask(constants=constants(source, backend), tried=tuple(self._tried), left=left)
        self._advice = await self._lab.ask_agent(correctness_reasoner.QUESTION, CorrectnessAdvice, self._kernel, task)
        advice, refused = self._advice.advice, None
        if isinstance(advice, CorrectnessAdvice) and left > 0:
            self._change, refused = correctness_reasoner.change(advice, source, backend)
            if self._change is not None:
                self._why = self._change.by
                return Branch.CONSTANTS if self._change.by_constants else Branch.PATCH
        hint = correctness_reasoner.hint(advice, self._advice.text, self._tried, refused)
        return self._advised(hint, self._advice, Branch.REWRITE, Branch.NO_CORRECTNESS_ADVICE)

    async def tuning(self) -> Branch:
        assert self._change is not None and self._kernel is not None
        before = self._failure
        [[sample]] = await self._lab.expand([Proposal(self._change.source, self._change.by, self._kernel)])
        if sample.sound:
            self._kernel = sample
            return Branch.TUNED
        failure = sample.verdict.failure if sample.verdict is not None else None
        assert failure is not None and before is not None
        self._tried.append(Trial(change=self._change.by, outcome=f"{failure.kind}: {one_line(failure.message, 200)}"))
        self._why = self._tried[-1].outcome
        if signature(failure) == signature(before):
            return self._given_up(Branch.TUNED_IN_VAIN)
        if len(self._tried) >= self._options.max_tuning:
            return self._given_up(Branch.TUNED_ENOUGH)
        self._kernel = sample
        return Branch.ANOTHER_ERROR

    def _given_up(self, branch: Branch) -> Branch:
        """Go back to the kernel that was written, with what was tried on it as a hint."""
        assert self._advice is not None
        hint = correctness_reasoner.hint(self._advice.advice, self._advice.text, self._tried)
        self._hints += [hint] if hint is not None else []
        self._kernel = self._base
        return branch

    async def profile(self) -> Branch:
        assert self._kernel is not None and self._kernel.verdict is not None
        verdict = self._kernel.verdict
        if verdict.speedup is None:
            self._why = verdict.status
            return Branch.NOT_TIMED
        self._measured = self._measure(self._kernel)
        if verdict.profile is None:
            self._why = "; ".join(verdict.conditions.not_checked)
            return Branch.TIMING_ALONE
        self._why = verdict.profile.source
        return Branch.PROFILED

    async def target(self) -> Branch:
        assert self._measured is not None
        self._why = f"{self._measured.described}; wanted is {self._measured.target}"
        if self._measured.met:
            return Branch.MET
        return Branch.MISSED if self._attempts_left else Branch.LAST_MISSED

    async def performance(self) -> Branch:
        assert self._kernel is not None and self._measured is not None
        answer = await self._lab.ask_agent(performance.QUESTION, PerformanceAdvice, self._kernel, self._measured)
        hint = performance.hint(self._measured, answer.advice, answer.text)
        if self._lab.best is not None and self._lab.best.sound:
            self._kernel = self._lab.best
        branch = self._advised(hint, answer, Branch.SPEED_ADVICE, Branch.NO_SPEED_ADVICE)
        return branch if answer.text.strip() else Branch.NO_SPEED_ADVICE

    async def diversity(self) -> Branch:
        if not self._attempts_left:
            return Branch.NO_ATTEMPT
        why = diversity.repeats(self._past)
        if why is None:
            return Branch.GOES_ON
        approaches = self._plan.approaches if self._plan is not None else ()
        task = DiversityTask(past=tuple(self._past), approaches=approaches, given=self._diverse)
        self._hints.append(diversity.hint(task, why))
        self._diverse += 1
        self._why = why
        return Branch.REPEATS

    async def fallback(self) -> Branch:
        best = self._lab.best
        return Branch.BEST if best is not None and best.sound else Branch.NONE

    def _advised(self, hint: AgentHint | None, answer: Answer, advised: Branch, not_advised: Branch) -> Branch:
        """Keep a hint for the next kernel; an answer that could not be read is noted."""
        if hint is not None:
            self._hints.append(hint)
        if answer.advice is None:
            self._why = answer.note or ""
            if answer.text.strip():
                self._lab.decide(self._lab.next_attempt, "advice", "the answer as it stands", answer.note or "")
        return advised if hint is not None else not_advised

    def _remembered(self, sample: Sample, *, better: bool) -> Past:
        failure = sample.verdict.failure if sample.verdict is not None else None
        return Past(
            attempt=sample.key.attempt,
            key=key_of(sample.candidate.source) if sample.candidate is not None else None,
            error=signature(failure) if failure is not None else None,
            outcome=str(failure.kind) if failure is not None else self._measure(sample).described,
            gained=better,
        )

    def _measure(self, sample: Sample) -> Measured:
        assert sample.verdict is not None
        return performance.measure(sample.verdict, self._target)

    @property
    def _failure(self) -> Failure | None:
        return self._kernel.verdict.failure if self._kernel is not None and self._kernel.verdict is not None else None

    @property
    def _attempts_left(self) -> int:
        return self._options.attempts - self._written

    @property
    def _attempt(self) -> int:
        return max(1, self._lab.next_attempt - 1)
