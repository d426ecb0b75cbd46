"""A lab that notes what a strategy asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hkbench.categories import Category, Situation, StageGuide
from hkbench.lab import Sample, best_of
from hkbench.records import Extraction, ExtractionRule, Prompt, QuestionKind, Reply, SampleKey, Verdict

NAME = "1_ReLU"


@dataclass
class NotedLab:
    """Evaluate as told: one tuple of verdicts an attempt."""

    verdicts: Sequence[tuple[Verdict, ...]]
    prompts: list[tuple[int, object]] = field(default_factory=list)
    generations: list[tuple[str, int, int, Sample | None]] = field(default_factory=list)
    reflected: list[Sample] = field(default_factory=list)
    stages: list[str | None] = field(default_factory=list)
    consulted: list[tuple[QuestionKind, tuple[int, int], int]] = field(default_factory=list)
    decisions: list[tuple[int, str, str, str]] = field(default_factory=list)
    results: list[tuple[int, str, float | None]] = field(default_factory=list)  #: of stages
    places: list[tuple[int | None, int | None]] = field(default_factory=list)  #: of the decisions
    best: Sample | None = None
    category: Category | None = None
    situations: list[tuple[int, str | None, float | None]] = field(default_factory=list)

    async def prompt(self, attempt: int, reflection: object, stage: StageGuide | None = None) -> Prompt:
        self.prompts.append((attempt, reflection))
        self.stages.append(stage.name if stage is not None else None)
        return Prompt(text=f"prompt {attempt}", template="t", sha256="0")

    async def generate(self, prompt: Prompt, attempt: int, n: int, parent: Sample | None = None) -> list[Sample]:
        self.generations.append((prompt.text, attempt, n, parent))
        return [
            Sample(
                key=SampleKey(problem=NAME, attempt=attempt, sample=number),
                reply=Reply(text="", model="m"),
                extraction=Extraction(rule=ExtractionRule.NONE, source=None),
                candidate=None,
            )
            for number in range(1, n + 1)
        ]

    async def evaluate(self, samples: Sequence[Sample]) -> list[Sample]:
        verdicts = self.verdicts[samples[0].key.attempt - 1]
        judged = [replace(sample, verdict=verdict) for sample, verdict in zip(samples, verdicts, strict=True)]
        self.best = best_of([*judged, self.best] if self.best is not None else judged)
        return judged

    def reflect_on(self, sample: Sample, _stage: StageGuide | None = None) -> str:
        self.reflected.append(sample)
        return f"reflection on {sample.key.attempt}.{sample.key.sample}"

    async def consult(self, kind: QuestionKind, sample: Sample, attempt: int) -> str:
        self.consulted.append((kind, (sample.key.attempt, sample.key.sample), attempt))
        return f"advice on {sample.key.attempt}.{sample.key.sample}"

    async def classify(self) -> Category:
        assert self.category is not None
        return self.category

    async def situation(self, stage: int, name: str | None, before: float | None) -> Situation:
        verdict = self.best.verdict if self.best is not None else None
        speedup = verdict.speedup.value if verdict is not None and verdict.speedup is not None else None
        self.situations.append((stage, name, before))
        gain = speedup / before if speedup is not None and before is not None else None
        return Situation(stage=stage, stage_name=name, correct=speedup is not None, speedup=speedup, gain=gain)

    def note_result(self, attempt: int, stage: str, before: float | None) -> None:
        self.results.append((attempt, stage, before))

    def decide(
        self, attempt: int, what: str, choice: str, why: str, place: int | None = None, places: int | None = None
    ) -> None:
        self.decisions.append((attempt, what, choice, why))
        self.places.append((place, places))
