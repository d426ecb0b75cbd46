"""The parameters of reference and candidate: matched once, changed together between trials, and never by forward."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Literal

import torch

from hkbench.analysis.parameters import Fit, Form, fit, forms, randomised
from hkbench.analysis.reference import Reference
from hkbench.evaluation import failures
from hkbench.evaluation.contract import Contract
from hkbench.evaluation.regions import Regions
from hkbench.evaluation.side import RunnerClient
from hkbench.protocol import messages
from hkbench.records import FailureKind, Stage

Weights = Literal["state_dict", "order", "none"]
State = dict[str, torch.Tensor]
MAX_SINGLE = 16  #: parameters of which one after the other is taken for stale


class CandidateParameters:
    """Give the candidate the reference's parameters. Raise `CandidateFailed` where it does not take or keep them."""

    def __init__(
        self, reference: Reference, side: RunnerClient, regions: Regions, own: State, contract: Contract
    ) -> None:
        """Take `own`, the reference's parameters and buffers as its constructor made them."""
        self.state = own  #: what is in force, by the reference's names
        self.weights: Weights = "none"
        self.loaded = False  #: whether the candidate has the reference's values, rather than those that it made
        self._reference = reference
        self._side = side
        self._regions = regions
        self._own = own
        self._contract = contract
        self._fit = Fit(mapping={})

    @property
    def matched(self) -> bool:
        """Whether the candidate has parameters or buffers of the reference's."""
        return bool(self._fit.mapping)

    def match(self, made: messages.ModelMade) -> None:
        """Match the reference's parameters with those of the candidate's model, by name or by shape and order."""
        self._fit = fit(forms(self._reference.model), forms_of(made))
        if self._fit.problem is not None:
            self._contract.demand(failures.failed(Stage.LOAD, FailureKind.WRONG_PARAMETERS, self._fit.problem))
            self._fit = Fit(mapping={})
        mapping = self._fit.mapping
        if mapping:
            self.weights = "state_dict" if all(new == old for new, old in mapping.items()) else "order"

    def load(self) -> None:
        """Let the candidate load the parameters that are in force."""
        if self.matched:
            places = {name: self._regions.state[old] for name, old in self._fit.mapping.items()}
            self._side.ask(Stage.LOAD, messages.Parameters(state=places, also=self._fit.also))
            self.loaded = True

    def use(self, kind: str) -> None:
        """Change the parameters of reference and candidate alike: to their own, or to random ones."""
        wanted = self._own if kind == "own" else None
        if wanted is self.state:
            return
        self.state = randomised(self._reference.model, secrets.randbits(31)) if wanted is None else wanted
        self._reference.load(self.state)
        self._regions.put_state(self.state)
        self.load()

    def perhaps_stale(self) -> Iterator[tuple[tuple[str, ...], State]]:
        """Yield the candidate's names of parameters that may be stale together, and what is in force if they are.

        All that were changed, each alone, all matrices.
        """
        mapping = self._fit.mapping
        changed = [name for name, old in mapping.items() if self.state[old] is not self._own[old]]
        matrices = [name for name in changed if self.state[mapping[name]].dim() > 1]
        singles = [(name,) for name in changed][:MAX_SINGLE]
        for names in dict.fromkeys([tuple(changed), *singles, tuple(matrices)]) if changed else ():
            yield names, self.state | {mapping[name]: self._own[mapping[name]] for name in names}

    def check_unchanged(self) -> None:
        """Check that parameters and buffers are as they were given, except those that the reference changes too."""
        if not self.loaded:
            return
        self._side.ask(Stage.RUN, messages.State())
        now = self._reference.model.state_dict()
        for name, old in self._fit.mapping.items():
            given = self.state[old]
            untouched = torch.equal(now[old], given) or bool(torch.isnan(given).any())
            if untouched and not torch.equal(self._regions.get_state(old).to(given.device), given):
                message = f"forward changed {name}, which the reference leaves as it is"
                self._contract.demand(failures.failed(Stage.COMPARE, FailureKind.STATE_MODIFIED, message))
        self._regions.put_state(self.state)


def forms_of(made: messages.ModelMade) -> dict[str, Form]:
    """Return the forms of a candidate's parameters and buffers, as its runner says."""
    names = {item.name for item in made.state}
    return {
        item.name: Form(
            tuple(item.shape),
            item.dtype,
            item.parameter,
            item.same if item.same != item.name and item.same in names else None,
        )
        for item in made.state
    }
