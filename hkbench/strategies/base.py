"""What a strategy is: a class with its options, a coroutine over a lab, and words for its attempts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import ConfigDict, Field

from hkbench.lab import Attempt, Lab
from hkbench.lab.advice import CALLS
from hkbench.records import Flag, Layout, Record, RunConfig, RunStrategy

Samples = Annotated[int, Field(ge=1), Flag("N")]
Attempts = Annotated[int, Field(ge=1), Flag("K")]


class Options(Record):
    """What every strategy is told. A field and its docstring are an option of run_batch.py and its help.

    A strategy's own class gives these two their defaults, and may add fields. An added field that is excluded from
    the record only sets others; all the rest are kept in run.json, and another value of one is another run.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    samples: Samples = 1
    """generations of each attempt"""

    attempts: Attempts = 1
    """attempts a problem"""


class Seeded(Options):
    """The options of a strategy that draws at random: `lab.random(options.seed)` is its generator."""

    seed: Annotated[int, Flag("S")] = 0
    """the same seed draws the same"""


OptionsT = TypeVar("OptionsT", bound=Options)


class Strategy(ABC, Generic[OptionsT]):
    """Decide what is tried next for a problem, and nothing else: the lab does and records it.

    A run of the same options, seed, replies and verdicts has to ask the same of the lab again: a resume runs the
    coroutine from its beginning, and finds what was done in the run folder.
    """

    name: ClassVar[str]  #: of --strategy and run.json
    summary: ClassVar[str]  #: for the help of --strategy
    Options: type[OptionsT]
    layout: ClassVar[Layout] = Layout.ATTEMPTS  #: how reports and displays draw its attempts
    stepwise: ClassVar[bool] = False  #: see `RunStrategy`
    asks_judge: ClassVar[bool] = False  #: before each attempt but the first
    uses_categories: ClassVar[bool] = False  #: of problems
    profiles_fast: ClassVar[bool] = False  #: correct kernels that are fast are profiled, too
    keeps_assembly: ClassVar[bool] = False  #: what the compiler made of each kernel is kept

    @abstractmethod
    async def run(self, lab: Lab, options: OptionsT) -> None:
        """Work on the lab's problem until the strategy's own end."""

    def describe(self, attempt: Attempt) -> str | None:
        """Name the step that an attempt is, in one or two words, for reports and displays; `None`: just a try."""
        del attempt
        return None

    def ends_early(self, options: OptionsT) -> bool:
        """Tell whether a problem may end at its first success."""
        del options
        return False

    def asks_model(self, options: OptionsT) -> bool:
        """Tell whether a model is asked at all."""
        del options
        return True

    def min_calls(self, options: OptionsT) -> int:
        """Count the model calls of one problem when all goes well."""
        if self.ends_early(options):
            return options.samples
        return options.samples * options.attempts + (options.attempts - 1) * self.asks_judge

    def max_calls(self, options: OptionsT) -> int:
        """Count the model calls of one problem at the most: each answer of a judge is unusable at first."""
        return options.samples * options.attempts + (options.attempts - 1) * CALLS * self.asks_judge

    def record(self, options: OptionsT) -> RunStrategy:
        """Return what run.json keeps, beside `samples` and `attempts`."""
        return RunStrategy(
            name=self.name,
            options=options.model_dump(mode="json", exclude={"samples", "attempts"}),
            layout=self.layout,
            stepwise=self.stepwise,
            ends_early=self.ends_early(options),
        )

    def recorded(self, config: RunConfig) -> OptionsT:
        """Return the options of a run of this strategy.

        Raises:
            pydantic.ValidationError: the run was made with other options than the strategy has.
        """
        values: dict[str, Any] = {"samples": config.samples, "attempts": config.attempts}
        return self.Options.model_validate(values | config.strategy.options)
