"""Strategy agents on recorded replies, with an evaluator that reads its verdicts in the candidates.

The first line of a candidate is `# VERDICT` and one of: `time SPEEDUP` (`profiled` behind it), `build MESSAGE`,
`wrong SHARE`, `raise MESSAGE`, `emulated`. A line `# IF LINE: VERDICT` holds instead where the candidate has that line.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from support.run_folder import FACTS, correct, emulated, incorrect, run_config

from hkbench.categories import load_categories
from hkbench.engine.completion import EvaluationResult
from hkbench.lab import Lab
from hkbench.lab.advice import Adviser
from hkbench.lab.prompting import Prompter
from hkbench.llm.client import ModelClient
from hkbench.prompts import load_prompts
from hkbench.records import (
    AnyEvent,
    Decided,
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
    Failure,
    FailureKind,
    KernelProfile,
    KernelSource,
    KnownKernel,
    Mismatch,
    Problem,
    ProblemFacts,
    Remedy,
    SizeSet,
    Source,
    Stage,
    Status,
    TensorFact,
    Track,
    Verdict,
)
from hkbench.store.events import read_history
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder
from hkbench.store.state import RunState
from hkbench.strategies import Agents

ROOT = Path(__file__).resolve().parents[2]
ELEMENTS = 1000
_TENSOR = TensorFact(name="x", shape=(64, 64), dtype="float32", strides=(64, 1))
_FACTS = ProblemFacts(sizes=SizeSet.CPU, inputs=(_TENSOR,), init_inputs=(), outputs=(_TENSOR,), parameters=())
BOOK = load_prompts(ROOT / "prompts")
CATEGORIES = load_categories(ROOT / "prompts" / "categories.toml")
FROM = Source(run="earlier", problem="1_Other", attempt=2, sample=1)


class Told:
    """An evaluator for which candidates write their verdicts."""

    device = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a CPU", arch="x86_64")
    sizes, track, compiled_for = SizeSet.CPU, Track.ANY, None

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.isolation = incorrect("1_ReLU").conditions.isolation

    async def problem_facts(self, _problem: Problem) -> ProblemFacts:
        return _FACTS

    async def evaluate(self, problem: Problem, code: Path, *_: object, **__: object) -> EvaluationResult:
        source = code.read_text()
        self.judged.append(source)
        found = verdict(problem.name, line_of(source))
        digest = sha256(source.encode()).hexdigest()
        return EvaluationResult(
            found.model_copy(update={"conditions": found.conditions.model_copy(update={"candidate_sha256": digest})})
        )


def line_of(source: str) -> str:
    """Return what a candidate says of its verdict: that of the first condition that holds, else of its first line."""
    first, *rest = source.splitlines()
    conditions = [line.removeprefix("# IF ").partition(": ") for line in rest if line.startswith("# IF ")]
    met = [said for condition, _, said in conditions if condition in rest]
    return met[0] if met else first.removeprefix("# VERDICT ")


def verdict(problem: str, line: str) -> Verdict:
    """Return the verdict that a candidate's first line asks for."""
    kind, _, rest = line.partition(" ")
    match kind:
        case "time":
            figure, _, profiled = rest.partition(" ")
            profile = KernelProfile(source="a profiler", kernels=(), seconds=1e-3) if profiled else None
            return correct(problem, float(figure)).model_copy(update={"profile": profile})
        case "build":
            return incorrect(problem, FailureKind.BUILD_ERROR, Stage.BUILD, rest)
        case "raise":
            return incorrect(problem, FailureKind.RUNTIME_ERROR, Stage.RUN, rest)
        case "emulated":
            return emulated(problem)
    wrong = int(float(rest) * ELEMENTS)
    where = {"output": "output", "index": (0,), "expected": 1.0, "got": 2.0}
    place = Mismatch(**where, max_abs_error=1.0, max_rel_error=1.0, wrong_elements=wrong, elements=ELEMENTS)
    failure = Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message="wrong", mismatch=place)
    return incorrect(problem).model_copy(update={"failure": failure})


class Recalling(Lab):
    """A lab with an experience that a test writes."""

    known: str | None = None
    remedies: tuple[Remedy, ...] = ()

    async def known_kernel(self) -> KnownKernel | None:
        if self.known is None:
            return None
        origin = KernelSource(source=FROM, sha256="0" * 64, device_name="a CPU", status=Status.FAST)
        return KnownKernel(code=self.known, origin=origin)

    def known_remedies(self, failure: Failure) -> tuple[Remedy, ...]:
        return self.remedies if failure.kind is FailureKind.BUILD_ERROR else ()


class Played:
    """One problem of a run, played until its end; played again in the same folder, it is resumed."""

    def __init__(self, root: Path, client: ModelClient, known: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.client = client
        self.known = known or {}
        self.remedies: tuple[Remedy, ...] = ()
        self.stop_after: int | None = None  #: events, from which on the run is dead
        self.told = Told()
        self.events: list[AnyEvent] = []

    async def run(
        self, name: str, options: Mapping[str, Any] | None = None, kill: type[BaseException] = KeyboardInterrupt
    ) -> None:
        """Play the problem to its end, or until `stop_after` events, where `kill` is raised."""
        config = run_config((name,), strategy="agents", samples=1)

        def tell(event: AnyEvent) -> None:
            self.events.append(event)
            if len(self.events) == self.stop_after:
                raise kill

        recorder = Recorder(RunPaths(self.root), tell)
        recorder.begin(config, FACTS)
        evaluator = cast(Any, self.told)
        prompter = Prompter(BOOK, "cpp", evaluator, EvaluationSettings(), categories=CATEGORIES)
        adviser = Adviser(self.client, "reasoner", prompter, recorder)
        problem = Problem(number=1, name=name, level=1, path=Path(name), source="", sha256="0" * 64)
        parts = (problem, prompter, self.client, evaluator, recorder, "m")
        before = RunState.after(read_history(recorder.paths.journal), config).problems[name]
        lab = Recalling(*parts, adviser=adviser, before=before, describe=Agents().describe)
        lab.known, lab.remedies = self.known.get(name), self.remedies
        try:
            await Agents().run(lab, Agents.Options(**(options or {})))
        finally:
            recorder.close()

    def decided(self, what: str) -> list[str]:
        """Return the choices of this kind, in order."""
        return [event.choice for event in self.events if isinstance(event, Decided) and event.what == what]

    def prompt(self, name: str, attempt: int) -> str:
        return RunPaths(self.root).problem(name).prompt(attempt).read_text(encoding="utf-8")
