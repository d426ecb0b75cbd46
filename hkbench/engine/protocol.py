"""What a batch needs of whoever reaches verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from hkbench.engine.evaluator import Evaluated, OnStage
from hkbench.records import (
    Backend,
    DeviceFacts,
    DevicePlace,
    Isolation,
    Problem,
    ProblemFacts,
    SizeSet,
    Track,
)


class Evaluating(Protocol):
    """`Evaluator`, which builds and measures, or `BuildEvaluator`, which only builds."""

    @property
    def device(self) -> DeviceFacts:
        """What measures, or what is compiled for."""

    @property
    def devices(self) -> tuple[DeviceFacts, ...]:
        """All that measure; empty where nothing is measured."""

    @property
    def places(self) -> tuple[DevicePlace, ...]: ...

    @property
    def track(self) -> Track: ...

    @property
    def sizes(self) -> SizeSet: ...

    @property
    def isolation(self) -> Isolation: ...

    @property
    def compiled_for(self) -> str | None:
        """The architecture, where nothing is measured."""

    async def require(self, backend: Backend) -> None: ...

    async def problem_facts(self, problem: Problem, seconds: float | None = None) -> ProblemFacts: ...

    async def evaluate(
        self, problem: Problem, code: Path, folder: Path, backend: Backend, on_stage: OnStage = ...
    ) -> Evaluated: ...
