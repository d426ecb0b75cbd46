"""The two regions of one evaluation: where parameters, inputs and outputs lie, and their contents."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from hkbench.analysis.reference import Leaves, Reference
from hkbench.evaluation.arena import Layout, SharedBuffer, fill, same
from hkbench.protocol import messages
from hkbench.protocol.wire import leaves


class Regions:
    """The inbox (parameters, constructor arguments, inputs) and the outbox (outputs), on the device if possible."""

    def __init__(self, reference: Reference, inputs: Sequence[object], outputs: Leaves, files: tuple[int, int]) -> None:
        self._reference = reference
        self._files = files
        self._arenas: tuple[SharedBuffer, ...] = ()
        self._left = False  # by the baseline: inputs that the candidate's next call may have, and their answer
        self.notes: list[str] = []
        inbox, outbox = Layout(), Layout()
        self.state = {name: inbox.place(value) for name, value in reference.model.state_dict().items()}
        self.init_places = [inbox.argument(value) for value in reference.init_inputs]
        self._inputs_begin = inbox.size
        self.input_places = [inbox.argument(value) for value in inputs]
        self.output_places = {
            path: outbox.place(leaf.detach().contiguous())
            for path, leaf in outputs.items()
            if isinstance(leaf, torch.Tensor)
        }
        self._sizes = (inbox.size, outbox.size)
        everything = [leaf for _, leaf in leaves(inputs, "")] + list(outputs.values())
        #: Of inputs and outputs together.
        self.elements = sum(leaf.numel() for leaf in everything if isinstance(leaf, torch.Tensor))

    def twin(self) -> Regions:
        """Return regions of the same layout for another runner, without memory yet."""
        other = copy.copy(self)
        other._arenas, other.notes = (), []
        return other

    @property
    def bytes(self) -> int:
        """Of inputs and outputs."""
        return self._sizes[0] - self._inputs_begin + self._sizes[1]

    def allocate(self, by_host: bool) -> None:
        """Make the two regions, on the device where its memory can be shared, and fill in what never change."""
        self.release()
        self._arenas = self._made(*self._sizes, by_host)
        self._inbox, self._outbox = self._arenas
        self.put_state(self._reference.model.state_dict())
        for places, value in zip(self.init_places, self._reference.init_inputs, strict=True):
            fill(self._inbox, places, value)

    def release(self) -> None:
        """Give the device's memory back. Raises RuntimeError where its driver refuses."""
        for arena in self._arenas:
            arena.release()

    def _made(self, inbox: int, outbox: int, by_host: bool) -> tuple[SharedBuffer, SharedBuffer]:
        device = self._reference.device
        if device.type == "cuda" and not by_host:
            try:
                first = SharedBuffer.on_device(inbox, device)
                try:
                    return first, SharedBuffer.on_device(outbox, device)
                except RuntimeError:
                    first.release()
                    raise
            except RuntimeError as error:
                self.notes.append(f"device memory cannot be shared here ({error}); copies go by the host")
        return SharedBuffer.on_host(self._files[0], inbox), SharedBuffer.on_host(self._files[1], outbox)

    @property
    def region_bytes(self) -> tuple[int, int]:
        """The bytes of inbox and outbox."""
        return self._inbox.region.nbytes, self._outbox.region.nbytes

    def request(self, left: bool, sent: bool, flush_bytes: int, gate: int | None) -> messages.Regions:
        """Return what a runner is asked to map; the rest as `messages.Regions` has it."""
        inbox, outbox = self.region_bytes
        return messages.Regions(
            inbox=inbox,
            outbox=outbox,
            shared=self.on_device,
            sent=sent,
            left=left,
            flush_bytes=flush_bytes,
            gate=gate,
        )

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that follow the description to a runner that was not forked with the files."""
        found = tuple(arena.descriptor for arena in (self._inbox, self._outbox) if arena.descriptor is not None)
        return found or self._files

    @property
    def on_device(self) -> bool:
        return bool(self._arenas) and all(arena.descriptor is not None for arena in self._arenas)

    def put_state(self, state: dict[str, torch.Tensor]) -> None:
        """Write parameters and buffers, by the reference's names."""
        for name, value in state.items():
            self._inbox.put(self.state[name], value)
        self._wait()

    def get_state(self, name: str) -> torch.Tensor:
        """Return what lies at the place of a parameter now; it aliases the region."""
        return self._inbox.get(self.state[name])

    def put_inputs(self, inputs: Sequence[object], judged: bool = True) -> None:
        """Write the inputs; where the answer is `judged`, the outbox is full of NaN then."""
        for places, value in zip(self.input_places, inputs, strict=True):
            fill(self._inbox, places, value)
        if judged:
            self._outbox.poison()
        self._left = False
        self._wait()

    def write_inputs(self, inputs: Sequence[object]) -> None:
        """Queue the writing of the inputs on the current stream of their device, and do not wait."""
        for places, value in zip(self.input_places, inputs, strict=True):
            fill(self._inbox, places, value)

    @property
    def outbox(self) -> torch.Tensor:
        """The region of the outputs, as bytes."""
        return self._outbox.region

    def leave(self) -> None:
        """Mark the baseline's outputs as left after its call; `scrub_if_dirty` clears them later."""
        self._left = True

    def scrub_if_dirty(self) -> None:
        """Clear what the baseline left, before the candidate runs, unless new inputs have been put in its place."""
        if self._left:
            self.clear()

    def clear(self) -> None:
        """Leave nothing of inputs and outputs: the other side's next call has the same inputs, so the same answer."""
        self._inbox.poison(self._inputs_begin)
        self._outbox.poison()
        self._left = False
        self._wait()

    def changed_input(self, inputs: Sequence[object]) -> int | None:
        """Return the number of the first input that is no longer what was put there, bit for bit."""
        for number, (places, value) in enumerate(zip(self.input_places, inputs, strict=True)):
            if not same(self._inbox, places, value):
                return number
        return None

    def outputs(self) -> dict[str, torch.Tensor]:
        """Return a private copy of the outbox: what is written there later does not change it."""
        taken = {path: self._outbox.get(place).to(self._reference.device) for path, place in self.output_places.items()}
        return {path: value.clone() if self._is_shared(value) else value for path, value in taken.items()}

    def _is_shared(self, value: torch.Tensor) -> bool:
        return value.untyped_storage().data_ptr() == self._outbox.region.untyped_storage().data_ptr()

    def _wait(self) -> None:
        if self._reference.device.type == "cuda":
            torch.cuda.synchronize(self._reference.device)
