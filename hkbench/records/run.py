"""The settings of a run, and the facts that it begins with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from hkbench.records.base import BackendName, DeviceKind, Flag, FolderName, Record
from hkbench.records.device import DeviceFacts, NodeFacts
from hkbench.records.experience import ExperienceFacts
from hkbench.records.generation import (
    Price,
)
from hkbench.records.problem import SizeSet
from hkbench.records.strategy import RunStrategy, older_strategy
from hkbench.records.trust import IsolationLevel, Races, RuleSet, Track
from hkbench.records.verdict import BaselineName

Seconds = Annotated[float, Field(gt=0), Flag("S", unit="number of seconds")]


class EvaluationSettings(Record):
    """How strictly and how long a candidate is judged."""

    #: A field with a docstring is an option of the commands that evaluate; the docstring is the option's help.
    model_config = ConfigDict(use_attribute_docstrings=True)

    trials: Annotated[int, Field(ge=1), Flag("N")] = 5
    """correctness trials, each with fresh inputs"""

    timing_runs: Annotated[int | None, Field(ge=1), Flag("N")] = None
    """timed runs of each side, interleaved; up to three times as many while it is not settled which is faster
    (default: on a GPU 10 to 300, until the interval is narrow; 30 to 90 on a CPU)"""

    baseline: Annotated[str, Flag("NAMES")] = "eager"
    """time also these baselines: eager (always; it decides), compile (torch.compile, warm), best (the problem's class
    ModelBest, a library's call); as eager,compile,best"""

    timing_seconds: Seconds = 30.0
    """no timed run is begun after S seconds (on a CPU: of each of up to three rounds), once each side has five"""

    busy_wait: Annotated[float, Field(ge=0), Flag("S")] = 60.0
    """on a CPU with other work, wait up to S seconds in all for it to be quiet and time again (no longer at once than
    the timed calls took); 0: time once, and say that the verdict is unsettled"""

    warmups: Annotated[int, Field(ge=0), Flag("N", "--warmup")] = 3
    """calls of each side before the timed ones"""

    build_timeout: Seconds = 600.0
    """limit of a candidate's builds"""

    load_timeout: Seconds = 120.0
    """limit of importing a candidate, builds apart"""

    run_timeout: Seconds = 60.0
    """limit of one forward pass"""

    evaluation_timeout: Seconds = 1200.0
    """limit of all trials, timed runs and checks of a candidate together, builds apart"""

    memory_gib: Annotated[float | None, Field(gt=0), Flag("G", unit="number of GiB")] = None
    """memory limit of a candidate's processes (default: 80 % of the machine's)"""

    profile_slow: Annotated[bool, Flag(name="--no-profile")] = True
    """profile correct but slow candidates"""

    profile_fast: bool = False  #: correct candidates that are not slower than the baseline are profiled, too
    keep_assembly: bool = False  #: a batch keeps what the compiler made of each candidate, as text
    profile_timeout: Seconds = 300.0
    """limit of ncu or rocprof on one candidate, after which torch's profiler is used"""

    keep_profile: Annotated[str | None, Flag("DIR")] = None
    """keep what ncu or rocprof wrote and printed, in folders below DIR"""

    track: Track = Track.OWN
    """own: the candidate's own kernels have to do the work; any: library calls may"""

    evaluations_per_gpu: Annotated[int, Field(ge=1, le=8), Flag("N")] = 2
    """candidates that use a GPU side by side; while one is timed, the others have no work on it"""

    rules: RuleSet = RuleSet.HKBENCH
    """whose contract a candidate has to hold to; kernelbench: KernelBench's own (static output buffers, results in
    place and kept parameters pass), and the verdict says which of hkbench's rules it breaks (docs/rules.md)"""

    shapes: Annotated[int | None, Field(ge=0), Flag("N")] = None
    """further shapes at which a correct candidate is looked at: half of them of the problem's own SHAPES, the others
    drawn; 0: none (default: 4 on a GPU, 2 on a CPU or an emulated GPU)"""

    require_shapes: bool = False
    """count only what is right at every further shape as correct"""

    races: Races = Races.FAIL
    """on an emulated GPU, what a missing wait or barrier is; fail: a failure; warn: a warning, and the values decide"""

    rtol: Annotated[dict[str, float], Flag("DTYPE=VALUE")] = {}
    """another tolerance, as float32=1e-5 (default: docs/method.md)"""

    require_isolation: IsolationLevel = IsolationLevel.LIMITS
    """evaluate nothing where candidates cannot be confined this far; `hkbench doctor` says how far they can"""

    stock_builds: bool = False
    """build as torch alone does, without precompiled headers"""

    prepare_builds: bool = False
    """precompile what the candidates' builds could have used: eval.py at its end (up to a minute), a batch beside its
    work, which it also does without being asked, on a CPU for what two builds could have used"""

    host_copies: bool = False
    """pass inputs and outputs through host memory (for containers without shared GPU memory)"""

    @field_validator("baseline")
    @classmethod
    def _known(cls, names: str) -> str:
        unknown = [name for name in names.split(",") if name not in list(BaselineName)]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no baseline; they are {', '.join(BaselineName)}")
        return names

    @property
    def further_baselines(self) -> tuple[BaselineName, ...]:
        """Return the baselines beside eager, in the order in which they are timed."""
        return tuple(
            one for one in BaselineName if one is not BaselineName.EAGER and one.value in self.baseline.split(",")
        )


class RunConfig(Record):
    """What defines a run: the same settings resume it, other ones are refused."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    schema_version: Literal[1] = 1
    strategy: RunStrategy
    problems: tuple[FolderName, ...]
    problem_hashes: tuple[str, ...]
    level: int | None
    backend: BackendName
    device: DeviceKind
    compiled_for: str | None = None  #: the architecture, where nothing is measured: candidates are compiled for it only
    sizes: SizeSet
    samples: int = 3
    attempts: int = 3
    model: str
    base_url: str | None = None
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = None
    max_tokens: int | None = None  #: of one reply
    reasoning_effort: str | None = None
    replay: str | None = None
    judge_model: str | None = None  #: `None`: the strategy asks no judge
    prompts_sha256: str
    categories_sha256: str | None = None  #: `None`: the strategy needs none
    experience: str | None = None  #: the database that earlier runs are asked by; `None`: none is
    hold_out: str | None = None  #: regular expression on names of problems of which nothing is recalled
    evaluation: EvaluationSettings = Field(EvaluationSettings(), alias="judge")  #: `judge` in JSON, its first name

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, found: Any) -> Any:
        return older_strategy(found) if isinstance(found, dict) else found

    def settings(self) -> dict[str, Any]:
        """Return the settings by name, as JSON has them, with the strategy's name and its options among them."""
        found = self.model_dump(mode="json")
        strategy = found.pop("strategy")
        return {"strategy": strategy["name"], **strategy["options"], **found}


class RunFacts(Record):
    """Where and with what a run was made (written to run.json beside the settings)."""

    started: str  #: ISO 8601, UTC
    hkbench: str
    versions: dict[str, str]
    hardware: dict[str, str]
    problem_set: str | None = None  #: the name of the collection: "KernelBench", "hkbench"; `None`: an older run
    device: DeviceFacts | None = None  #: the first of the devices, with the source of each fact; `None`: an older run
    #: By problem of the plan, the null controls that pass its check (empty: none does); a problem that is missing here
    #: was not audited. `None`: the run is older than the audit.
    weak: dict[str, tuple[str, ...]] | None = None
    price: Price | None = None  #: of the model; `None`: not known. That of the last session which knew one
    judge_price: Price | None = None  #: of the judge's model, where a judge is asked
    experience: ExperienceFacts | None = None  #: `None`: the run asks none, or an older run
    nodes: tuple[NodeFacts, ...] = ()  #: of a cluster, at the start; empty: the run's own host measured


class RunSources(Record):
    """Where what a run was begun with lay, as absolute paths: its folder alone is enough to resume it."""

    problems: tuple[str, ...]  #: the folders of the problems' files
    prompts: str
    categories: str | None = None  #: a file; `None`: the strategy needs none
