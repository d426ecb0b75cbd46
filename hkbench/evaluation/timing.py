"""The timed runs of both sides, and what the witnesses say of them."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median

import psutil
import torch

from hkbench.device_kinds import model_of
from hkbench.evaluation.clocks import unreported
from hkbench.evaluation.contention import NOT_COUNTED, Watch, settled
from hkbench.evaluation.leads import Leads
from hkbench.evaluation.link import Samples as Sampled
from hkbench.evaluation.measure import (
    FIRST_RUNS,
    MIN_RUNS,
    SLOW_SECONDS,
    Measurement,
    Samples,
    conclude,
    interleave,
    rounds,
)
from hkbench.evaluation.readback import ClockLog, clock_warnings
from hkbench.evaluation.session import CALL, Call, Session, draw_seed
from hkbench.evaluation.side import RunnerClient, times_of
from hkbench.evaluation.stability import GpuState, gpu_stability, gpu_state
from hkbench.profile.ownership import MIN_WORKING_SAMPLES, computes, spins
from hkbench.profile.sampled_code import Place
from hkbench.protocol import messages
from hkbench.records import Stage
from hkbench.sandbox.sampler import TICK_SECONDS
from hkbench.sandbox.tree import Tree

SMALL = 1 << 18  #: elements of inputs and outputs together; up to here the outputs of every timed run are compared
CHECKED_TIMED_RUNS = 6  #: of larger problems, at places that the evaluator draws
SETTLED = 2  #: calls without a build, after which a candidate counts as warm
#: What is tuned by shapes is tuned in the first call; more calls than these compile something only if all do.
SETTLING_CALLS = 10
TRACED_CALLS = 3
SAMPLED_CALLS = 200
MIN_SAMPLED_CALLS = 3  #: however many samples one has; a candidate can foresee one place more easily than three
COMPARED_SAMPLED_CALLS = 40  #: of them, at random
WITNESS_SECONDS = 1.5
ENOUGH_SAMPLES = 100  #: of threads that do not wait; beside other work nine of ten do
#: Of them in somebody's arithmetic, twice as many as it takes to say whose: in a call of 1 ms few are.
ENOUGH_AT_WORK = 2 * MIN_WORKING_SAMPLES
MAX_WEIGHT = 2.0  #: of one sampled call, in terms of the call with the median number of samples


@dataclass(frozen=True)
class Effort:
    """How much is measured and witnessed."""

    rounds: tuple[int, ...] = ()  #: pairs of each round, where they are not the usual ones
    traced: int = TRACED_CALLS
    seconds: float = WITNESS_SECONDS


@dataclass
class Observations:
    """What was seen of watched calls: the kernel trace, and whose code the processor was in."""

    traces: list[messages.Traced] = field(default_factory=list)  #: answers to traced calls
    samples: list[Sampled] = field(default_factory=list)  #: of each sampled call (CPU)
    sampled_seconds: list[float] = field(default_factory=list)  #: as reported, of the sampled calls
    only_here: bool = False  #: the trace fails with the candidate, not with the baseline
    blind: str | None = None  #: why no process can be sampled on this machine, not even the baseline's

    @property
    def answer(self) -> messages.Traced:
        """The quickest traced call: a neighbour's work is nobody's lie."""
        return min(self.traces, key=lambda answer: answer.seconds)

    @property
    def enough(self) -> bool:
        """Whether there are samples to go by, or so many sampled calls that there will not be."""
        calls = len(self.samples)
        telling = sum(not spins(place.path) for seen in self.samples for look in seen.looks for place in look)
        if calls < MIN_SAMPLED_CALLS or telling < ENOUGH_SAMPLES:
            return calls >= SAMPLED_CALLS
        at_work = sum(weight for place, weight in self.places.items() if computes(place.path))
        return at_work >= ENOUGH_AT_WORK or calls >= SAMPLED_CALLS

    @property
    def error(self) -> str | None:
        """Says why some thread of the candidate could not be sampled."""
        return next((sampled.error for sampled in self.samples if sampled.error is not None), None)

    @property
    def places(self) -> dict[Place, float]:
        """Adds up the samples of all sampled calls by place."""
        found: dict[Place, float] = defaultdict(float)
        for weight, look in self._looks():
            for place in look:
                found[place] += weight
        return dict(found)

    def ticks(self, files: Mapping[Place, str]) -> dict[frozenset[str], float]:
        """Add up the looks at all threads by the files that were seen in them; `files`: of each place."""
        found: dict[frozenset[str], float] = defaultdict(float)
        for weight, look in self._looks():
            found[frozenset(files[place] for place in look)] += weight
        return dict(found)

    def _looks(self) -> Iterator[tuple[float, tuple[Place, ...]]]:
        """Weigh the looks: a call that the candidate recognises and lengthens must not outweigh all others."""
        most = MAX_WEIGHT * max(1.0, median([sampled.samples for sampled in self.samples] or [0.0]))
        for sampled in self.samples:
            kept = sum(map(len, sampled.looks))
            for look in sampled.looks:
                yield min(most, sampled.samples) / kept, look


class Timing:
    """Baseline and candidate in turn, each pair on fresh inputs; the outputs of timed runs are compared too."""

    def __init__(self, session: Session, effort: Effort = Effort()) -> None:
        self._session = session
        self._effort = effort
        self._device = session.reference.device
        self._inputs: list[object] = []
        self._pair: int | None = None  # whose inputs were made last
        self._cache = torch.empty(session.flush_bytes if self._device.type == "cpu" else 0, dtype=torch.uint8)
        self._seen = Observations()
        self._nulls: list[float] = []
        self._leads = Leads()
        self._got: dict[str, torch.Tensor] = {}  # outputs of the pair, where the evaluator takes those of every call
        self._expected: dict[str, torch.Tensor] = {}
        self._runs = 0  # pairs of the round
        self._kernel: Watch | None = None  # its counts, on a CPU, whose processors other work may want

    def measure(self) -> Measurement:
        """Measure both sides; on a CPU again, where other work had the processors."""
        session = self._session
        self._settle()
        if not model_of(session.facts.kind).on_host:
            found = self._rounds()
            session.memory.note_late_looks()
            return found
        self._kernel = Watch(session.baseline, session.side)
        found = settled(self._rounds, self._kernel, session.settings.busy_wait, session.side.grant, session.tell)
        if found.contention is not None and not found.contention.counted and NOT_COUNTED not in session.not_checked:
            session.not_checked.append(NOT_COUNTED)
        return found

    def beside(self, variant: str) -> Measurement:
        """Measure the baseline beside another way to compute the same, which its runner has made (`messages.Variant`).

        Both are calls of one process, by the clock of all calls.
        """
        return self._rounds(partial(self._baseline, request=messages.Call(variant=variant)))

    def _rounds(self, other: Callable[[Samples, int], None] | None = None) -> Measurement:
        """Measure rounds until it is settled which side is faster and by how much, at most `rounds` of them.

        `other`: a call of a further baseline, in place of the candidate's.
        """
        session = self._session
        model, asked = model_of(session.facts.kind), session.settings.timing_runs
        clock = model.evaluators_clock if session.memory.timed_here else model.clock
        left, right = Samples(), Samples()
        before = self._gpu()
        log = ClockLog(session.facts)
        planned, began = self._effort.rounds or rounds(asked, model), time.monotonic()
        for number, runs in enumerate(planned):
            seconds = session.settings.timing_seconds
            if not model.on_host:  # a CPU's rounds have as long each: its calls are slow and noisy
                seconds -= time.monotonic() - began
            if number and seconds <= 0:
                break
            self._runs = runs
            self._draw_places()
            session.tell(f"round {number + 1}, up to {self._runs} runs of each side")
            warmups = 0 if number else session.settings.warmups
            more = interleave(
                self._counted(session.baseline, self._baseline),
                other or self._counted(session.side, self._candidate),
                self._between(log, other is None),
                self._runs,
                seconds,
                warmups,
                secrets.randbelow,
            )
            left.extend(more[0])
            right.extend(more[1])
            if number == 0 and planned[: len(FIRST_RUNS)] == FIRST_RUNS and time.monotonic() - began < SLOW_SECONDS:
                continue
            more_time = unreported(left, right, model) if other is None else 0.0
            overhead = self._overhead()
            later = self._leads.later(median(left.seconds) - overhead) if other is None else 0.0
            overheads = overhead, overhead + later
            found = conclude(left, right, clock, session.settings.warmups, model, overheads, more_time)
            if found.enough(asked or model.default_runs, cut=len(more[0].seconds) < self._runs):
                break
        readback = log.end(len(left.seconds))
        engine = psutil.Process(os.getppid()).ppid()  # the parent of the server that forked this process
        ours = frozenset({engine, *Tree(engine).living()})
        moved = (*clock_warnings(readback), *gpu_stability(before, self._gpu(), ours))
        return replace(found, readback=readback, warnings=(*found.warnings, *moved))

    def _between(self, log: ClockLog, watched: bool) -> Callable[[int], None]:
        """Return what is done after a pair of calls."""
        session, memory = self._session, self._session.memory

        def work(number: int) -> None:
            log.during()
            if watched:
                if number % model_of(session.facts.kind).null_every == 0:
                    self._leads.compare(
                        partial(memory.lead, session.baseline, self._inputs),
                        partial(memory.lead, session.side, self._inputs),
                    )
                self._watch(number)

        return work

    def _settle(self) -> None:
        """Call the candidate until `SETTLED` calls in a row compile nothing: autotuning is not what is measured.

        The trials are such calls, so that only a candidate that still compiled in the last ones is called once more.
        """
        session = self._session
        for _ in range(SETTLING_CALLS):
            if session.side.settled >= SETTLED:
                return
            session.tell("warm-up: something was compiled in the last calls")
            session.call(self._fresh(draw_seed()), None, Stage.TIME, then=self._evict, keep=False)
        note = f"something was compiled in the last of {SETTLING_CALLS} calls more, just before the timed ones"
        if session.side.settled < SETTLED and note not in session.notes:
            session.notes.append(note)

    def _counted(self, side: RunnerClient, call: Callable[[Samples, int], None]) -> Callable[[Samples, int], None]:
        """Have the kernel's counts looked at before and after a side's calls, where they say anything."""
        return call if self._kernel is None else self._kernel.around(side, call)

    def _baseline(self, samples: Samples, number: int, request: messages.Call = CALL) -> None:
        session = self._session
        inputs = self._of_pair(number)
        regions = session.memory.regions_of(session.baseline)
        gated, reveal = session.memory.call(session.baseline, inputs, self._evict)
        # On a CPU it has to have a heap like the other side's.
        answer = session.baseline.request(request, reveal, self._device.type == "cpu", gated)
        regions.leave()
        if gated is None:
            samples.add(*times_of(answer, Stage.TIME, None), session.baseline.stamps)
            return
        self._expected = gated.outputs
        samples.add_span(session.baseline.seconds)
        if number % model_of(session.facts.kind).null_every == 0:
            self._null(inputs)

    def _null(self, inputs: list[object]) -> None:
        """Call the baseline's runner without a forward pass: that shows what a call costs by itself.

        The first one is made twice: its runner loads a kernel then.
        """
        session = self._session
        for _ in range(1 if self._nulls else 2):
            gated, reveal = session.memory.call(session.baseline, inputs, self._evict)
            session.baseline.request(messages.Null(), reveal, False, gated)
        assert session.baseline.seconds is not None
        self._nulls.append(session.baseline.seconds)

    def _overhead(self) -> float:
        """Return the seconds of a span that are not the forward pass's.

        The lower quartile of the null calls: on a busy machine the others have waited for a processor, and what is
        taken off too little lengthens both sides alike.
        """
        return sorted(self._nulls)[len(self._nulls) // 4] if self._nulls else 0.0

    def _candidate(self, samples: Samples, number: int) -> None:
        session = self._session
        compared = number in self._compared
        made = session.call(self._of_pair(number), None, Stage.TIME, then=self._evict, keep=compared)
        if not session.memory.timed_here:
            samples.add(made.seconds, made.idle, session.side.stamps)
        else:
            samples.add_span(made.seconds)
            self._got = made.outputs
        if compared:
            session.checker.check_again(made.outputs, self._inputs)

    def _watch(self, number: int) -> None:
        """Compare the outputs of a pair where both sides' were taken; watch the candidate if this pair was drawn."""
        if self._got and self._expected and number not in self._compared:
            self._session.checker.check_against(self._got, self._expected, self._inputs)
        self._got, self._expected = {}, {}
        if number in self._traced:
            self._trace()
        if number in self._sampled:
            self._sample()

    def _draw_places(self) -> None:
        """Draw which runs of a round are compared, and after which the candidate is watched: nobody can tell before.

        On a GPU none: what records kernels there goes on slowing launches down after it was stopped (CUPTI stays
        attached), some 5 us each, in the candidate's process alone. So a GPU's calls are traced after the timed ones.
        """
        self._pair = None
        everywhere = range(self._runs)
        some = {0, *(secrets.randbelow(self._runs) for _ in range(CHECKED_TIMED_RUNS - 1))}
        self._compared = set(everywhere) if self._session.regions.elements <= SMALL else some
        self._traced, self._sampled = set[int](), set[int]()
        if self._device.type == "cpu":
            few = min(self._runs, MIN_RUNS)  # a slow candidate has no more
            self._traced |= {secrets.randbelow(few)} if len(self._seen.traces) < self._effort.traced else set()
            # So many calls give samples enough if each is as long as the last one.
            wanted = math.ceil(ENOUGH_SAMPLES * TICK_SECONDS / max(TICK_SECONDS / 100, self._session.seconds))
            wanted = min(self._runs, max(MIN_SAMPLED_CALLS, wanted)) if not self._seen.enough else 0
            self._sampled = set(secrets.SystemRandom().sample(everywhere, wanted))
            self._sampled |= {secrets.randbelow(few)} if wanted else set()

    def _gpu(self) -> GpuState:
        if not model_of(self._session.facts.kind).states_clocks:
            return GpuState()
        return gpu_state(f"GPU-{torch.cuda.get_device_properties(self._device).uuid}")

    def _of_pair(self, number: int) -> list[object]:
        """Return the inputs of a pair of runs, the same for both sides.

        They are put in place anew for each side, so that what comes right before a call is alike too, and each side
        comes first in every other pair.
        """
        if number != self._pair:
            self._pair = number
            return self._fresh(draw_seed())
        return self._inputs

    def _fresh(self, seed: int) -> list[object]:
        self._inputs.clear()  # first: their memory has to be free before the new ones are made
        self._inputs.extend(self._session.fresh_inputs(seed))
        return self._inputs

    def _evict(self) -> None:
        """Evict the caches on a CPU while the runner is stopped; on a GPU its runner does that in its own stream."""
        if self._cache.numel():
            self._cache.fill_(secrets.randbelow(256))
        self._session.quiet.look()

    def witness(self) -> Observations:
        """Return what was seen of the candidate's watched calls, between the timed ones and, if needed, after them.

        They have inputs that no other call had: who answers from memory is not to be witnessed doing so. Their outputs
        are compared like those of timed calls.
        """
        session, seen = self._session, self._seen
        session.tell("calls that follow one another at once")
        session.successive(Stage.TIME)
        session.tell("traced calls")
        while len(seen.traces) < self._effort.traced:
            self._trace()
        if _failed(seen.answer):
            regions = session.memory.regions_of(session.baseline)
            reveal = partial(regions.put_inputs, self._fresh(draw_seed()))
            seen.only_here = not _failed(session.baseline.request(messages.Trace(), reveal))
            regions.clear()
        ends = time.monotonic() + self._effort.seconds
        while self._device.type == "cpu" and not seen.enough and time.monotonic() < ends:
            self._sample()
        while self._device.type == "cpu" and len(seen.samples) < MIN_SAMPLED_CALLS:
            self._sample()
        if seen.error is not None:
            seen.blind = session.baseline.sampled(
                partial(session.regions.put_inputs, self._fresh(draw_seed()), judged=False)
            ).error
            session.regions.leave()
        session.parameters.check_unchanged()
        self._inputs.clear()  # their memory may be wanted for the floor
        return seen

    def _trace(self) -> None:
        made = self._watched(messages.Trace(), sample=False)
        assert isinstance(made.answer, messages.Traced)
        self._seen.traces.append(made.answer)

    def _sample(self) -> None:
        made = self._watched(CALL, sample=True)
        self._seen.sampled_seconds.append(made.seconds)
        if made.sampled is not None:
            self._seen.samples.append(made.sampled)

    def _watched(self, request: messages.Request[messages.Called | messages.Traced], sample: bool) -> Call:
        session = self._session
        # Evicting takes long on a CPU, and sampled times are not compared finely.
        evict = (lambda: None) if sample else self._evict
        compared = not sample or secrets.randbelow(SAMPLED_CALLS) < COMPARED_SAMPLED_CALLS
        made = session.call(self._fresh(draw_seed()), None, Stage.TIME, request, evict, sample, compared)
        if compared:
            session.checker.check_again(made.outputs, self._inputs)
        return made


def _failed(answer: messages.Traced) -> bool:
    return "error" in answer.trace
