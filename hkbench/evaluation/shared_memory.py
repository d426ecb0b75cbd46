"""What the evaluator shares with the two runners: their regions, and on a GPU the gates of its own clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch

from hkbench.analysis.reference import Leaves, Reference
from hkbench.evaluation.device_code import device_code
from hkbench.evaluation.halted import HaltedCall
from hkbench.evaluation.link import ProtocolError
from hkbench.evaluation.regions import Regions
from hkbench.evaluation.side import BaselineClient, EvaluatorsCall, RunnerClient
from hkbench.evaluation.stopwatch import Lane, Stopwatch
from hkbench.protocol import messages
from hkbench.records import DeviceFacts, Stage

#: Share of the device's memory up to which a second copy of inputs and outputs is made: several of them are in use
#: already (the evaluator's, the shared one, each runner's), and the precise reference takes twice as much.
MAX_SHARE = 1 / 16
#: Share of the device's memory that this process may keep for allocations to come while a runner allocates.
MAX_IDLE_SHARE = 1 / 16
MIN_FREE_SHARE = 1 / 4  #: of it that is free: then a runner has room without what is kept here
#: Bytes a second at which a driver is taken to clear memory that a process gives back: it does so beside what runs
#: next, of which calls of 7 ms took 0.3 to 1 ms longer on an H100.
CLEARED = 5e11
NO_CLOCK = "the time on the device by a clock of the evaluator's own"


class SharedMemory:
    """The regions of both sides, and the clock that needs them.

    With the evaluator's clock on a GPU the baseline has regions of its own: nothing that the candidate's process can
    see changes when the baseline is called, so that no work of the candidate's that was left queued can wait for that.
    """

    def __init__(
        self,
        reference: Reference,
        sample: tuple[Sequence[object], Leaves],
        files: tuple[int, int],
        flush_bytes: int,
        facts: DeviceFacts,
        host_copies: bool,
    ) -> None:
        """Take `sample`, inputs and outputs for their forms, and `files`, the host's memory files inbox and outbox."""
        self._device = reference.device
        self._flush_bytes = flush_bytes
        self._memory_bytes = facts.memory_bytes
        self.not_checked: list[str] = []
        self.leaves_outputs = False  #: with the runners, whose memory the evaluator reads (on a CPU)
        self.halts = False  #: runners stop themselves around a forward pass, for the evaluator's clock (on a CPU)
        self.regions = Regions(reference, *sample, files)  #: the candidate's
        self.regions.allocate(by_host=host_copies)
        self.baseline_regions = self.regions
        self.stopwatch = self._stopwatch()

    @property
    def spacious(self) -> bool:
        """Whether there is room for a second copy of inputs and outputs."""
        return self._memory_bytes is None or self.regions.bytes <= MAX_SHARE * self._memory_bytes

    @property
    def notes(self) -> list[str]:
        return self.regions.notes

    def regions_of(self, side: RunnerClient) -> Regions:
        return self.baseline_regions if isinstance(side, BaselineClient) else self.regions

    def lane_of(self, side: RunnerClient) -> Lane | None:
        if self.stopwatch is None:
            return None
        return self.stopwatch.baseline if isinstance(side, BaselineClient) else self.stopwatch.candidate

    def make_room(self) -> None:
        """Give back what PyTorch keeps here of the device's memory for later, if it is much and little is free.

        Runners allocate next. The precise reference takes several times as much as the inputs and outputs of a call,
        and only for a while.
        """
        if self._device.type != "cuda" or self._memory_bytes is None:
            return
        if torch.cuda.mem_get_info(self._device)[0] >= MIN_FREE_SHARE * self._memory_bytes:
            return  # asked first: PyTorch takes a millisecond to say what it keeps
        idle = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        if idle > MAX_IDLE_SHARE * self._memory_bytes:
            torch.cuda.empty_cache()
            time.sleep(idle / CLEARED)

    def open(self, side: RunnerClient) -> messages.RegionsMapped | messages.Raised:
        """Let a runner map its regions. A candidate's first one was forked with files of the host's, others were not.

        An exception in the runner is an answer.
        """
        self.make_room()
        regions, lane = self.regions_of(side), self.lane_of(side)
        sent = regions.on_device or not side.has_files
        descriptors = regions.descriptors if sent else ()
        gate = None
        if lane is not None:
            assert lane.page.descriptor is not None
            descriptors, gate = (*descriptors, lane.page.descriptor), lane.page.region.nbytes
            side.shows(lane.segments.changed)
        # On a CPU the evaluator evicts the caches itself, while the runner is stopped.
        flush_bytes = 0 if self._device.type == "cpu" else self._flush_bytes
        request = regions.request(self.leaves_outputs, sent, flush_bytes, gate)
        opened = side.try_ask(Stage.LOAD, request, descriptors=descriptors)
        if isinstance(opened, messages.Raised):
            return opened
        if self.leaves_outputs:
            side.process = _said("process", opened.process)
        if lane is not None:
            lane.segments.fix(_said("outbox", opened.outbox), regions.outbox)
        return opened

    def fall_back(self, why: str) -> None:
        """Do without what this device does not support: the evaluator's clock, and then shared device memory.

        The runners have to map their regions anew.
        """
        if self.stopwatch is not None:
            self._drop_stopwatch(why)
        elif self.halts:
            self.halts = False
            self.not_checked.append(f"{NO_CLOCK}: {why}")
        else:
            self.notes.append(f"device memory cannot be shared here ({why}); copies go by the host")
            self.regions.allocate(by_host=True)

    @property
    def timed_here(self) -> bool:
        """Whether calls are timed by a clock of the evaluator's own."""
        return self.halts or self.stopwatch is not None

    def call(
        self,
        side: RunnerClient,
        inputs: Sequence[object],
        then: Callable[[], None] = lambda: None,
        takes: bool = False,
        gated: bool = True,
    ) -> tuple[EvaluatorsCall | None, Callable[[], None]]:
        """Return a call of one side by the evaluator's clock, if it has one, and what to do before the runner goes on.

        Without the clock, or where the call is not to be `gated`, that puts the inputs in place. With it nothing of
        them is to be seen yet: the evaluator releases them later. `then` is done when they are in place, or on a GPU
        before. The call takes the outputs where it `takes` them; on a GPU also where there is room.
        """
        self.make_room()
        regions, baseline = self.regions_of(side), isinstance(side, BaselineClient)
        lane = self.lane_of(side)

        def put() -> None:
            regions.put_inputs(inputs, judged=not baseline)
            then()

        def clear() -> None:
            regions.clear()
            then()

        if gated and self.halts:
            return HaltedCall(side, put, regions.output_places if takes else {}), regions.clear
        if not gated or lane is None or self.stopwatch is None:
            return None, put
        takes = takes or self.spacious or not baseline
        return self.stopwatch.call(lane, lambda: regions.write_inputs(inputs), takes), clear

    def lead(self, side: RunnerClient, inputs: Sequence[object]) -> float | None:
        """Return the seconds that it takes to put inputs in place for one side and to evict the caches.

        None without the evaluator's clock on a GPU.
        """
        lane = self.lane_of(side)
        if lane is None or self.stopwatch is None:
            return None
        return self.stopwatch.lead(lane, partial(self.regions_of(side).write_inputs, inputs))

    def note_late_looks(self) -> None:
        """Say it where most calls of the candidate were first looked at late."""
        if self.stopwatch is None:
            return
        late = self.stopwatch.spots.late(self.stopwatch.candidate.page.region.data_ptr())
        if late is not None and late not in self.not_checked:
            self.not_checked.append(late)

    def release(self) -> None:
        """Give the device's memory back. Raises RuntimeError where its driver refuses."""
        if self.stopwatch is not None:
            self.stopwatch.release()
        self._share_regions()
        self.regions.release()

    def separate(self) -> None:
        """Give the baseline regions of its own, where calls are timed by the evaluator's clock."""
        if self.stopwatch is None:
            return
        apart = self.regions.twin()
        if self.spacious:
            apart.allocate(by_host=False)
        if apart.on_device:
            self.baseline_regions = apart
        else:
            size = f"{self.regions.bytes >> 20} MiB of inputs and outputs leave no room for a second copy"
            self.not_checked.append(f"that no work was left queued for the baseline's calls: {size}")

    def _drop_stopwatch(self, why: str) -> None:
        assert self.stopwatch is not None
        self.stopwatch.release()
        self.stopwatch = None
        self._share_regions()
        self.not_checked.append(f"{NO_CLOCK}: {why}")

    def _share_regions(self) -> None:
        if self.baseline_regions is not self.regions:
            self.baseline_regions.release()
            self.baseline_regions = self.regions

    def _stopwatch(self) -> Stopwatch | None:
        """Return the evaluator's clock on a GPU; `None`: the runners' clocks are held against the host's."""
        if self._device.type != "cuda":
            return None
        why = "inputs and outputs go by the host"
        if self.regions.on_device:
            try:
                code = device_code(self._device)
                return Stopwatch(self._device, code, self._flush_bytes, self.regions.output_places)
            except RuntimeError as error:
                why = str(error)
        self.not_checked.append(f"{NO_CLOCK}: {why}")
        return None


def _said(name: str, value: int | None) -> int:
    """Return what the runner has to say of itself here. Raises ProtocolError where it does not."""
    if value is None:
        raise ProtocolError(f"the runner did not say its {name}")
    return value
