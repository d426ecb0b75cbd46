"""One candidate on an emulated GPU: the same trials, with what the device's process saw of each call."""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import numpy as np
import torch

from hkbench.analysis.reference import Leaves, Reference
from hkbench.emulator import arena
from hkbench.emulator.arena import Range
from hkbench.emulator.faults import OCCURRENCE
from hkbench.emulator.report import CallOptions, NamedRange, Report, Told
from hkbench.evaluation import failures, host_made
from hkbench.evaluation.arena import is_address
from hkbench.evaluation.emulated_device import EmulatedDevice
from hkbench.evaluation.form import Leaf
from hkbench.evaluation.host_made import Table
from hkbench.evaluation.link import ProtocolError, RunnerExited, RunnerTimeout
from hkbench.evaluation.session import CALL, MAX_SUCCESSIVE, Call, Session, draw_seed
from hkbench.evaluation.sharing import DeviceShare
from hkbench.evaluation.side import BaselineClient, RunnerClient
from hkbench.protocol import messages
from hkbench.protocol.memory import DTYPES, span
from hkbench.protocol.places import places_in
from hkbench.records import DeviceFacts, EvaluationSettings, Failure, FailureKind, IdleWait, Ownership, Races, Stage

OWN_SHARE = 0.5  #: of the bytes of the outputs of each call, that the candidate's kernels have to have written
NEVER_RUN = (
    "the hardware: correct means that this compiler's binary, executed by the rules of AMD's manuals on an emulated "
    "{arch}, gave the right values; nothing is known of its speed"
)
OPERATORS = (
    "what PyTorch's operators computed beside the kernels, as far as it takes the host less than half of the time that "
    "the reference takes"
)
QUICK_SECONDS = 2.0  #: for a call that is checked: then all are
HOST_SHARE = 0.5  #: of the reference's processor time, that the candidate's own process may take of a call
HOST_SECONDS = 0.02  #: that it may always take
HOST_BYTES = 1e9  #: of inputs and outputs a second, that it may pad, cast and lay out anew
_KINDS = {
    "race": FailureKind.RACE,
    "wait": FailureKind.RACE,
    "out_of_bounds": FailureKind.OUT_OF_BOUNDS,
    "budget": FailureKind.TIMEOUT,
}
MAX_FOREIGN = 4  #: names of kernels in a message
MAX_WARNINGS = 16  #: of one verdict, by what kernels did
NO_LATE_DELIVERY = "what loads bring as late as the architecture allows, since races only warn (--races)"
_NOT_GUARANTEED = "the architecture does not guarantee the result, whatever a GPU makes of it"


class EmulatedSession(Session):
    """See `Session`. There is no baseline's process: nothing is timed."""

    def __init__(
        self,
        reference: Reference,
        sides: tuple[RunnerClient, BaselineClient],
        facts: DeviceFacts,
        settings: EvaluationSettings,
        files: tuple[int, int],
        weights_seed: int,
        share: DeviceShare,
        device: EmulatedDevice,
    ) -> None:
        """Take the device that executes the candidate's kernels."""
        self._reference_seconds = math.inf  # of processor time, the least of all calls
        super().__init__(reference, sides, facts, settings, files, weights_seed, share)
        self._emulated = device
        self._files = files
        self._least: float | None = None  # share of a call's output bytes that kernels wrote
        self._launches = 0
        self.kernels: Counter[str] = Counter()  #: that were launched, in instructions of all calls
        self.foreign: tuple[str, ...] = ()  #: those that are PyTorch's or a library's, when somebody has looked
        self._single = True  # whether the last request was one call ...
        self._repeated = False  # ... whose inputs came before, or that is the first
        self._host = math.inf  # processor time of the candidate's process in a call, the least of all but the first
        self._last = False  # whether it is the last trial, or a call after it
        self._slow = False  # whether a checked call took long
        self._garble = False  # what kernels write
        self._made: tuple[Table, Table, Table, int] | None = None  # the host's in the last call, outputs, their bytes
        self._places: list[Range] = []  # of the last call's outputs
        self._handed = 0.0  # bytes that the host computed and kernels read, where they are too many
        self._warned: set[str] = set()
        self._waits: dict[IdleWait, bool] = {}  # whether each was of use in some call
        self._races_fail = settings.races is Races.FAIL
        if not self._races_fail:
            self.not_checked.append(NO_LATE_DELIVERY)
        self.not_checked.extend((NEVER_RUN.format(arch=facts.arch), OPERATORS))

    @property
    def ownership(self) -> Ownership | None:
        """Whose bytes the outputs are."""
        if self._least is None:
            return None
        own = self._least >= OWN_SHARE and not (self._on_host or self._handed or self.foreign)
        return Ownership.OWN if own else Ownership.NOT_OWN

    @property
    def _on_host(self) -> bool:
        """Whether the candidate's process computed so long that what kernels wrote may be a copy."""
        allowed = max(HOST_SHARE * self._reference_seconds, HOST_SECONDS + self.regions.bytes / HOST_BYTES)
        return math.inf > self._host > allowed

    @property
    def idle_waits(self) -> tuple[IdleWait, ...]:
        """The waits of the kernels' source that were of no use in any call."""
        return tuple(wait for wait, used in self._waits.items() if not used)

    def not_own(self) -> Failure | None:
        """Return why the answers do not count in track `own`."""
        if self.ownership is not Ownership.NOT_OWN or not self.computes:
            return None
        if self.foreign:
            message = (
                f"kernels were launched that are PyTorch's or a library's ({', '.join(self.foreign[:MAX_FOREIGN])}): "
                "the work has to be done by the candidate's own kernels"
            )
        elif self._handed:
            message = (
                f"kernels or outputs were given {self._handed:.0f} bytes that the candidate's process had computed "
                "from the inputs: the work has to be done by the candidate's own kernels"
            )
        elif self._on_host and self._launches:
            message = (
                f"the candidate's process took {self._host:.3g} s of the host's processors in a call, the reference "
                f"{self._reference_seconds:.3g} s: the work has to be done by the candidate's own kernels"
            )
        else:
            share = f"kernels wrote {self._least:.0%} of the outputs"
            wrote = share if self._launches else "no kernel was launched"
            message = f"{wrote}: the candidate's own kernels have to write at least half of the bytes that it returns"
        return Failure(stage=Stage.TIME, kind=FailureKind.NOT_OWN, message=message)

    def run_reference(self, inputs: list[object]) -> Leaves:
        """See `Session.run_reference`; notes what it takes of the processors."""
        begin = time.process_time()
        leaves = super().run_reference(inputs)
        self._reference_seconds = min(self._reference_seconds, time.process_time() - begin)
        return leaves

    def _settle_taking(self) -> None:
        self.run_reference(self.reference.inputs(draw_seed()))  # once more: the first call of a process takes longer
        self.memory.leaves_outputs = True
        inputs = [
            NamedRange(
                range=Range(arena.INBOX + place.offset, place.span * DTYPES[place.dtype].itemsize),
                name=f"input {number}",
            )
            for number, argument in enumerate(self.regions.input_places)
            for place in places_in(argument)
            if place.span
        ]
        self._emulated.share(self._files, self.regions.region_bytes, inputs)

    def _enter(self) -> None:
        with self._observed(Stage.LOAD, None, CallOptions()):
            super()._enter()
            self._require_possible(Stage.LOAD, None, [])

    def call(
        self,
        inputs: list[object],
        trial: int | None,
        stage: Stage = Stage.RUN,
        request: messages.Request[messages.Called | messages.Traced] = CALL,
        then: Callable[[], None] = lambda: None,
        sample: bool = False,
        keep: bool = True,
    ) -> Call:
        """Make one forward pass, as of `Session.call`; what went wrong on the device comes before wrong values.

        The first trial is checked for races; in the second, values arrive as late as they may; its waves and
        workgroups, and those of the trials after it, take turns in an order that is drawn. A candidate does not know
        which trials after the first are checked, and which after the second have late values: where a call takes long
        it is drawn, else all are checked. Where races only warn nothing arrives late: a missing wait would always give
        wrong values then.
        """
        options = self._options(trial)
        self._single = True
        self._repeated = trial == 1
        self._last = trial in (None, self.settings.trials)
        begin = time.monotonic()
        try:
            with self._observed(stage, trial, options):
                return super().call(inputs, trial, stage, request, then, sample, keep)
        finally:
            self._slow = self._slow or (options.check and time.monotonic() - begin > QUICK_SECONDS)

    def _options(self, trial: int | None) -> CallOptions:
        seconds = self.settings.run_timeout
        if self._garble:
            return CallOptions(check=False, seconds=seconds, garble=True)
        if trial in (None, 1):
            return CallOptions(seconds=seconds)
        check = not self._slow or secrets.randbelow(2) == 0
        late = self._races_fail and (trial == 2 or secrets.randbelow(2) == 0)
        return CallOptions(check=check, late=late, seed=draw_seed(), seconds=seconds)

    def successive(self, stage: Stage) -> None:
        """See `Session.successive`."""
        self._single = False
        seconds = MAX_SUCCESSIVE * self.settings.run_timeout
        with self._observed(stage, None, CallOptions(check=False, seed=draw_seed(), seconds=seconds)):
            super().successive(stage)

    def trials(self, further: bool = False) -> None:
        """See `Session.trials`; look then at what the host made for kernels to read, where it is much."""
        super().trials(further)
        if self._made is not None and self.computes and not further:
            self._look_at_the_host(*self._made[0:3:2])

    def _look_at_the_host(self, *before: Table) -> None:
        inputs = self.fresh_inputs(draw_seed())
        outputs = self.call(inputs, None).outputs
        self.checker.check_again(outputs, inputs)
        if self._made is None:
            return
        made, lie, left, whole = self._made
        varying = host_made.without(made, *before)
        copied = host_made.size(host_made.within(lie, varying))
        if copied >= OWN_SHARE * whole:
            self._handed = copied
            return
        most = host_made.size(varying) + host_made.size(host_made.without(left, *before))
        enough = host_made.COMPUTED * whole
        handed = self._computed_by_the_host(most) if most >= enough else 0.0
        self._handed = handed if handed >= enough else 0.0

    def _computed_by_the_host(self, most: int) -> float:
        """Return how many bytes the host computed that kernels read; `most` where the candidate's process ends."""
        inputs, others = self.fresh_inputs(draw_seed()), self.fresh_inputs(draw_seed())
        near = host_made.sparsely_changed(inputs, others, draw_seed())
        try:
            first, second, third = (self._given_to_kernels(given) for given in (inputs, near, others))
        except (RunnerExited, RunnerTimeout, ProtocolError):
            return most
        return host_made.computed(first, second, third)

    def _given_to_kernels(self, inputs: list[object]) -> Table:
        """Return what the host made in a call in which what kernels write is garbled."""
        self._garble = True
        try:
            with suppress(failures.CandidateFailed):
                self.call(inputs, None)
            made, _, left = self._emulated.host_made(self._places)
            return np.concatenate((made, left))
        finally:
            self._garble = False

    def _outputs(self, leaves: Sequence[Leaf], stage: Stage) -> dict[str, torch.Tensor]:
        """Return copies of the outputs, read from the device's memory; note whose bytes they are."""
        dtypes = {path: DTYPES[place.dtype] for path, place in self.regions.output_places.items()}
        places = {leaf.path: _place(leaf, dtypes[leaf.path].itemsize, stage) for leaf in leaves if leaf.path in dtypes}
        self._places = list(places.values())
        if self._garble:
            return {}
        report = self._require_possible(stage, None, list(places.values()))
        whole = sum(place.size for place in places.values())
        if whole:
            share = sum(report.written) / whole
            self._least = share if self._least is None else min(self._least, share)
        self._launches = max(self._launches, report.launch_count)
        if self._single:
            made = report.host_made + whole - sum(report.written)
            much = self._last and self._launches and made >= host_made.COMPUTED * whole
            self._made = (*self._emulated.host_made(list(places.values())), whole) if much else None
        if self._single and not self._repeated:  # in the first one it may build, and remember the answer in the second
            self._host = min(self._host, self.side.cpu_seconds)
        return {
            leaf.path: self._tensor(leaf, dtypes[leaf.path], places[leaf.path], stage)
            for leaf in leaves
            if leaf.path in places
        }

    def _tensor(self, leaf: Leaf, dtype: torch.dtype, place: Range, stage: Stage) -> torch.Tensor:
        data = self._emulated.read(place) if place.size else bytearray()
        if data is None:
            message = f"{leaf.path} does not lie in the memory of the emulated GPU"
            raise failures.failed(stage, FailureKind.PROTOCOL, message)
        flat = torch.frombuffer(data, dtype=torch.uint8) if place.size else torch.empty(0, dtype=torch.uint8)
        return flat.view(dtype).as_strided(leaf.shape, leaf.strides)

    @contextmanager
    def _observed(self, stage: Stage, trial: int | None, options: CallOptions) -> Iterator[None]:
        """Have the device observe a call. What it saw explains what the candidate raised."""
        try:
            self._emulated.begin(options)
            yield
        except failures.CandidateFailed:
            if not self._garble:
                self._require_possible(stage, trial, [])
            raise

    def _require_possible(self, stage: Stage, trial: int | None, outputs: list[Range]) -> Report:
        report = self._emulated.report(outputs)
        self.kernels.update(report.kernels)
        require_possible(report, stage, trial, self._races_fail)
        for seen in report.waits:
            wait = IdleWait(kernel=seen.kernel, text=seen.text, line=seen.line)
            self._waits[wait] = self._waits.get(wait, False) or seen.used
        for warning in warnings_of(report):
            fault = warning.partition(OCCURRENCE)[0]  # each trial meets it in another workgroup
            if fault not in self._warned and len(self._warned) < MAX_WARNINGS:
                self._warned.add(fault)
                self.notes.append(warning)
        return report


def make_session(
    reference: Reference,
    sides: tuple[RunnerClient, BaselineClient],
    facts: DeviceFacts,
    settings: EvaluationSettings,
    files: tuple[int, int],
    weights_seed: int,
    share: DeviceShare,
    device: EmulatedDevice | None,
) -> Session:
    """Return a session on the device of the two sides, or on one that is emulated."""
    arguments = (reference, sides, facts, settings, files, weights_seed, share)
    return Session(*arguments) if device is None else EmulatedSession(*arguments, device)


def require_possible(report: Report, stage: Stage, trial: int | None, races_fail: bool = True) -> None:
    """Raise CandidateFailed for what a kernel did that it may not, or that the device cannot do."""
    if report.violation is not None:
        message = f"the device was sent what the runtime never sends: {report.violation}"
        raise failures.failed(stage, FailureKind.PROTOCOL, message, trial=trial)
    for refusal in report.refusals:
        kind = _KINDS.get(refusal.kind, FailureKind.UNSUPPORTED)
        raise failures.failed(stage, kind, refusal.message, refusal.detail, trial)
    failing = {kind for kind, failure in _KINDS.items() if races_fail or failure is not FailureKind.RACE}
    faults = [fault for fault in report.faults if fault.kind in failing]
    if faults:
        kind = _KINDS[faults[0].kind]
        more = "" if report.fault_count == 1 else f" ({report.fault_count} reports in this call)"
        what = f"; {_NOT_GUARANTEED}" if kind is FailureKind.RACE else ""
        detail = "\n".join([*filter(None, [faults[0].detail]), *(_described(fault) for fault in faults[1:])])
        raise failures.failed(stage, kind, f"{faults[0].message}{what}{more}", detail or None, trial)


def warnings_of(report: Report) -> list[str]:
    """Return what is wrong with a call that did not fail."""
    return [
        _described(fault) + (f"; {_NOT_GUARANTEED}" if _KINDS.get(fault.kind) is FailureKind.RACE else "")
        for fault in report.faults
    ]


def _described(fault: Told) -> str:
    return "\n".join(filter(None, (fault.message, fault.detail)))


def _place(leaf: Leaf, size: int, stage: Stage) -> Range:
    if not is_address(leaf.address):
        raise failures.failed(stage, FailureKind.PROTOCOL, f"the runner did not say where {leaf.path} lies")
    return Range(leaf.address, span(leaf.shape, leaf.strides) * size)
