"""What a batch needs of an evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from hkbench.engine.completion import EvaluationResult
from hkbench.engine.evaluator import OnStage
from hkbench.records import (
    BackendName,
    DeviceFacts,
    DevicePlace,
    Isolation,
    Problem,
    ProblemFacts,
    SizeSet,
    Track,
)


class Evaluator(Protocol):
    """`LocalEvaluator`, which builds and measures, or `CompileOnlyEvaluator`, which only builds."""

    @property
    def device(self) -> DeviceFacts:
        """What measures, or what is compiled for."""

    @property
    def devices(self) -> tuple[DeviceFacts, ...]:
        """All that measure; empty where nothing is measured."""

    @property
    def places(self) -> tuple[DevicePlace, ...]: ...

    @property
    def capacity(self) -> int:
        """How many candidates it has use for at a time, to be built and to be measured."""

    @property
    def track(self) -> Track: ...

    @property
    def sizes(self) -> SizeSet: ...

    @property
    def isolation(self) -> Isolation: ...

    @property
    def compiled_for(self) -> str | None:
        """The architecture, where nothing is measured."""

    async def require(self, backend: BackendName) -> None: ...

    async def problem_facts(self, problem: Problem, seconds: float | None = None) -> ProblemFacts: ...

    async def evaluate(
        self,
        problem: Problem,
        code: Path,
        folder: Path,
        backend: BackendName,
        on_stage: OnStage = ...,
        *,
        profile: bool = True,
    ) -> EvaluationResult:
        """Return the verdict; without `profile` a correct candidate is not profiled, whatever the settings say."""
