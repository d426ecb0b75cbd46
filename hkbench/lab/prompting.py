"""Prompts of a run: the template chosen by name, filled with the problem's facts and the device's."""

from __future__ import annotations

from collections.abc import Sequence

from hkbench.analysis.tolerances import tolerances_of
from hkbench.backends import find_backend
from hkbench.categories import CategoryBook, StageGuide
from hkbench.engine import Evaluator
from hkbench.prompts import (
    DeviceSheet,
    PromptBook,
    PromptContext,
    Question,
    Reflection,
    StageSheet,
    SynthesisTask,
    contract,
    pitfall_as_shown,
    render,
)
from hkbench.records import (
    BackendName,
    DeviceFacts,
    EvaluationSettings,
    Pitfall,
    Problem,
    ProblemFacts,
    Prompt,
    QuestionKind,
    ScalarFact,
)

GB = 1e9
KIB, MIB = 1 << 10, 1 << 20


class Prompter:
    """Render prompts for one backend on one device; the facts of a problem are read once.

    `template` names the book's prompt file for all problems, in place of its choice by name.
    """

    def __init__(
        self,
        book: PromptBook,
        backend: BackendName,
        evaluator: Evaluator,
        settings: EvaluationSettings,
        template: str | None = None,
        categories: CategoryBook | None = None,
    ) -> None:
        self.book = book
        self.backend = backend
        self._evaluator = evaluator
        self.settings = settings
        self.categories = categories  #: `None`: the strategy needs none
        self._template = template
        self._facts: dict[str, ProblemFacts] = {}

    @property
    def arch(self) -> str | None:
        """The architecture of the device; `None`: not known."""
        return self._evaluator.device.arch

    async def facts(self, problem: Problem) -> ProblemFacts:
        """Return what the problem's own code says, read once."""
        if problem.name not in self._facts:
            self._facts[problem.name] = await self._evaluator.problem_facts(problem)
        return self._facts[problem.name]

    async def render(
        self,
        problem: Problem,
        reflection: Reflection | None,
        stage: StageGuide | None = None,
        task: SynthesisTask | None = None,
        pitfalls: Sequence[Pitfall] = (),
    ) -> Prompt:
        about = None
        if stage is not None:
            guidance = stage.guidance_for(self.backend, self._evaluator.device.kind)
            about = StageSheet(name=stage.name, focus=stage.focus, guidance=guidance)
        told = {"stage": about, "task": task, "pitfalls": tuple(map(pitfall_as_shown, pitfalls))}
        context = (await self._context(problem, reflection)).model_copy(update=told)
        return render(self.book, self._template or self.book.choose(problem.name, self.backend), context)

    async def question(
        self, problem: Problem, kind: QuestionKind, reflection: Reflection, question: Question
    ) -> Prompt:
        """Return what a model is asked about the kernel of `reflection`."""
        context = await self._context(problem, reflection)
        return render(self.book, self.book.question(kind), context.model_copy(update={"question": question}))

    async def _context(self, problem: Problem, reflection: Reflection | None) -> PromptContext:
        facts = await self.facts(problem)
        device = self._evaluator.device
        used = {fact.dtype for fact in facts.outputs if not isinstance(fact, ScalarFact)}
        known = tolerances_of(self.settings.rules) | self.settings.rtol
        tolerances = {name: rtol for name, rtol in known.items() if name in used}
        return PromptContext(
            problem=problem,
            facts=facts,
            backend=self.backend,
            device=sheet(device),
            track=self.settings.track,
            contract=contract(self.settings, tolerances, device.kind, self.backend, problem.shapes),
            dialect=find_backend(self.backend).dialect(device.arch),
            reflection=reflection,
        )


def sheet(device: DeviceFacts) -> DeviceSheet:
    """Return the device as a prompt describes it."""
    return DeviceSheet(
        name=device.name,
        arch=device.arch,
        kind=device.kind,
        memory_gb=round((device.memory_bytes or 0) / GB, 1),
        bandwidth_gbs=device.bandwidth / GB if device.bandwidth else None,
        peak_tflops={name: flops / 1e12 for name, flops in device.peak_flops.items()},
        lds_kib=device.lds_bytes // KIB if device.lds_bytes else None,
        compute_units=device.compute_units,
        wave_size=device.wave_size,
        llc_mib=device.llc_bytes // MIB if device.llc_bytes else None,
    )
