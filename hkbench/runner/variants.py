"""Other ways to compute what the problem's model does, in the process that times it: further baselines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from hkbench.protocol.constants import BEST_CLASS

WARM_CALLS = 3
MAX_RECOMPILES = 64  #: more than any model of fixed shapes needs; beyond torch's own 8 it falls back to eager unsaid


class NotMade(Exception):
    """This variant would measure something else than its name says."""


@dataclass
class Variants:
    """The variants of one model that were made, by name."""

    best_class: object = None  #: the problem's `ModelBest`, where it names one
    arguments: Sequence[object] = ()  #: of the model's constructor
    made: dict[str, Callable[..., object]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  #: what torch.compile leaves to eager

    def make(self, name: str, model: torch.nn.Module, inputs: Sequence[object], device: torch.device) -> None:
        """Make one, unless it is there. Raises NotMade, and whatever the compiler or the problem's code raises."""
        if name not in self.made:
            self.made[name] = self._best(model, inputs, device) if name == "best" else self._compiled(model, inputs)

    def _compiled(self, model: torch.nn.Module, inputs: Sequence[object]) -> Callable[..., object]:
        """Compile the model for its inputs and warm it up."""
        dynamo: Any = torch._dynamo
        dynamo.reset()
        counters = dynamo.utils.counters
        counters.clear()
        dynamo.config.recompile_limit = MAX_RECOMPILES
        dynamo.config.fail_on_recompile_limit_hit = True
        dynamo.config.suppress_errors = False
        made: Callable[..., object] = torch.compile(model)
        _warm(made, inputs)
        if not graphs():
            raise NotMade("torch.compile found no graph in it: it runs eagerly")
        self.notes = [f"graph break: {' '.join(str(why).split())[:200]}" for why in counters["graph_break"]]
        return made

    def _best(self, model: torch.nn.Module, inputs: Sequence[object], device: torch.device) -> Callable[..., object]:
        """Make the problem's own best model with the parameters of its `Model`, and warm it up."""
        if not isinstance(self.best_class, type):
            raise NotMade(f"the problem names no class {BEST_CLASS}")
        made: torch.nn.Module = self.best_class(*self.arguments).to(device)
        made.load_state_dict(model.state_dict())
        _warm(made, inputs)
        return made


def graphs() -> int:
    """Return how many graphs torch.compile has compiled since the last variant was made."""
    dynamo: Any = torch._dynamo
    return int(dynamo.utils.counters["stats"]["unique_graphs"])


def forget() -> None:
    """Forget what was compiled: it holds memory, and another problem's model may look the same to the compiler."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()


def _warm(made: Callable[..., object], inputs: Sequence[object]) -> None:
    with torch.no_grad():
        for _ in range(WARM_CALLS):
            made(*inputs)
