"""The evaluator's clock on a CPU: a runner waits before its forward pass, and stops itself at once after it.

Of one call: the runner reads what is asked of it and waits for a word. The evaluator stops it, puts the inputs in
place, evicts the caches, and lets it go on with that word; there its clock begins. After the forward pass the runner
says where the outputs lie and stops, all threads of its process at once. The kernel tells the parent of a process when
its last thread has stopped, and there the clock ends (sandbox/cage.py, sandbox/guard.py). The outputs are taken as
they are then, so that no thread can work on them while the runner answers. A runner that does not stop itself is
stopped, and its call is so much longer.

What a call costs by itself (going on, stopping, and what the runner says in between) is that of null calls of the
baseline's runner, without a forward pass, and is taken off (evaluation/measure.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch

from hkbench.evaluation.form import max_reach, strides_of
from hkbench.evaluation.side import RunnerClient
from hkbench.evaluation.stopwatch import NotTaken
from hkbench.evaluation.taking import read_output
from hkbench.protocol import wire
from hkbench.protocol.memory import span
from hkbench.protocol.places import Place


class HaltedCall:
    """One call between two stops of the runner: `release` once it has begun, then `end`, then `finish`."""

    changed: str | None = None  # nothing goes on while the runner stands still
    number = 0  #: there is no page for the runner to look at
    hold_seconds = 0.0  #: the runner waits until it is let go on

    def __init__(self, side: RunnerClient, reveal: Callable[[], None], places: Mapping[str, Place]) -> None:
        """`reveal` puts the inputs in place and evicts the caches; `places`: of the outputs that are wanted."""
        self._side, self._reveal, self._places = side, reveal, places
        self._begun: float | None = None
        self._seconds: float | None = None
        self.outputs: dict[str, torch.Tensor] = {}
        self.lost: str | None = None

    def release(self) -> None:
        """Put the inputs in place while the runner stands still, and let it go on."""
        self._side.place(self._reveal)
        self._begun = self._side.go()

    def look(self) -> None:
        """Do nothing: outputs are taken while the runner stands still."""

    def end(self, told: wire.Message) -> None:
        """Stop the clock and take the outputs, where the runner says that they lie, while the runner stands still.

        Where some of them do not, `lost` says so: what the runner describes next may say why.

        Raises:
            NotTaken: the runner ended a call that it had not begun.
        """
        stood = self._side.stand()
        if self._begun is None or self._seconds is not None:
            raise NotTaken("the runner ended a call that it had not begun")
        self._seconds = stood - self._begun
        said = told.get("places")
        places = said if isinstance(said, list) and len(said) == len(self._places) else [None] * len(self._places)
        for (path, where), at in zip(self._places.items(), places, strict=True):
            try:
                self.outputs[path] = self._taken(path, where, at)
            except NotTaken as error:
                self.lost = str(error)
        self._side.go_on()

    def finish(self) -> float:
        """Return the seconds from when the runner went on with its inputs until it stood still.

        Raises:
            NotTaken: it answered without having ended.
        """
        if self._seconds is None:
            raise NotTaken("the runner answered a call without saying that it had ended")
        return self._seconds

    def abandon(self) -> None:
        """Do nothing: a call that failed leaves nobody waiting."""

    def _taken(self, path: str, place: Place, told: object) -> torch.Tensor:
        count = math.prod(place.shape)
        address, *rest = told if isinstance(told, list) and told else [None]
        strides = strides_of(rest, len(place.shape))
        if strides is None:
            raise NotTaken(f"the runner did not say where {path} lies")
        if span(place.shape, strides) > max_reach(place.span, count):
            # What the runner describes says so too, or its values are wrong: nobody reads so much.
            strides = place.strides
        return read_output(self._side, path, place, address, strides)
