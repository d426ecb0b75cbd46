"""The rules in force: what breaks them, and what is noted beside the verdict where they do not ask for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hkbench.analysis.input_distributions import OWN, Drawn, TrialPlan, Variator, trial_plan
from hkbench.analysis.reference import Leaves, Reference
from hkbench.evaluation.checker import AllCloseChecker, Checker
from hkbench.evaluation.failures import CandidateFailed
from hkbench.records import Failure, FailureKind, RuleSet

#: Where the parameters stay as `ModelNew` makes them.
SAME_SEED = (
    "KernelBench makes Model and ModelNew under one seed and loads nothing: draw the parameters in the order of Model's"
)


class Drawing(Protocol):
    """Draw a trial's inputs; `Variator` is ours."""

    @property
    def unseen(self) -> tuple[int, ...]: ...

    @property
    def not_taken(self) -> Collection[str]: ...

    def inputs(self, seed: int) -> list[Any]: ...

    def draw(self, name: str, seed: int, integers: str | None = None) -> Drawn: ...

    def plain(self, seed: int) -> Drawn: ...


@dataclass(frozen=True)
class PlainInputs:
    """Draw the problem's own inputs as they are, which is all that KernelBench asks for."""

    reference: Reference
    unseen: tuple[int, ...] = ()
    not_taken: tuple[str, ...] = ()

    def inputs(self, seed: int) -> list[Any]:
        """Return the problem's own inputs. Deterministic in `seed`."""
        return self.reference.inputs(seed)

    def draw(self, name: str, seed: int, integers: str | None = None) -> Drawn:  # noqa: ARG002
        """Draw them with eager's answer; `name` is always "own"."""
        return self.plain(seed)

    def plain(self, seed: int) -> Drawn:
        """Draw them with eager's answer."""
        inputs = self.reference.inputs(seed)
        native = self.reference.native(inputs)
        return Drawn(inputs, native, native, OWN, {})


class Contract:
    """What one candidate is held to."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self._kept: dict[FailureKind, Failure] = {}

    @property
    def loads_parameters(self) -> bool:
        """Whether the reference's parameters are loaded into the candidate."""
        return self.rules is RuleSet.HKBENCH

    @property
    def kept(self) -> tuple[Failure, ...]:
        """What other rules than those in force would have refused, one a kind."""
        return tuple(self._kept.values())

    def demand(self, failed: CandidateFailed) -> None:
        """Raise a failure, or keep it where the rules in force do not ask for what it breaks."""
        if self.rules is RuleSet.HKBENCH or not failed.failure.is_beyond_kernelbench:
            raise failed
        self.keep(failed.failure)

    def keep(self, failure: Failure) -> None:
        """Keep what hkbench's rules would have refused."""
        self._kept.setdefault(failure.kind, failure)

    def has_kept(self, kind: FailureKind) -> bool:
        """Return whether something of this kind was let pass."""
        return kind in self._kept

    def plan(self, trials: int, has_parameters: bool) -> tuple[TrialPlan, ...]:
        """Return what each trial uses."""
        if self.rules is RuleSet.HKBENCH:
            return trial_plan(trials, has_parameters)
        return (TrialPlan(OWN, OWN),) * trials

    def drawing(self, reference: Reference, rtol: Mapping[str, float] | None, plants: bool = True) -> Drawing:
        """Return what draws inputs."""
        return Variator(reference, rtol, plants) if self.rules is RuleSet.HKBENCH else PlainInputs(reference)

    def checker(
        self,
        reference: Reference,
        native: Callable[[list[object]], Leaves],
        form: Leaves,
        rtol: Mapping[str, float] | None,
    ) -> Checker:
        """Return what compares outputs, as `Checker` takes it."""
        kind = Checker if self.rules is RuleSet.HKBENCH else AllCloseChecker
        return kind(reference, native, form, rtol)
