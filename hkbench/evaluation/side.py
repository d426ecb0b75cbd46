"""One of the two runners as the session sees it: it sleeps, frozen, whenever it is not asked something."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import torch

from hkbench.device_kinds import model_of
from hkbench.errors import ProblemError, WorkerLost
from hkbench.evaluation import failures
from hkbench.evaluation.awaited import Gated
from hkbench.evaluation.link import (
    ProtocolError,
    RunnerExited,
    RunnerLink,
    RunnerTimeout,
    Samples,
    Stamps,
    TreeState,
    read_answer,
)
from hkbench.evaluation.stopwatch import NotTaken
from hkbench.protocol.messages import (
    Call,
    Called,
    Device,
    OnlyGpu,
    Prepare,
    Raised,
    Request,
    Traced,
    Variant,
    VariantMade,
)
from hkbench.records import DeviceFacts, EvaluationSettings, FailureKind, Stage
from hkbench.sandbox.tree import FREEZE_SECONDS

Answer = TypeVar("Answer")


class EvaluatorsCall(Gated, Protocol):
    """A call by the evaluator's clock. `finish` returns its seconds, and raises NotTaken where there are none."""

    outputs: dict[str, torch.Tensor]
    lost: str | None  #: why some of them could not be taken
    changed: str | None  #: one of them that was not finished when the call was done

    def finish(self) -> float: ...

    def abandon(self) -> None: ...


RESTLESS_SECONDS = 2e-4  #: of processor time, in a tree whose processes are all stopped
#: Stops in one evaluation at which a thread went on until the guard gave up (`FREEZE_SECONDS`): no honest one does, and
#: each costs all that time.
MAX_UNSTOPPED = 3


class RunnerClient:
    """The candidate's runner. What goes wrong here is the candidate's failure.

    The runner's processes are stopped between requests, and so while the inputs of a call are put in place. Nobody can
    look at fresh inputs before the clock runs, go on with work after an answer, or disturb the other side's turn.
    """

    def __init__(self, link: RunnerLink, settings: EvaluationSettings) -> None:
        self._link = link
        self._settings = settings
        self.before: Callable[[], None] = lambda: None  #: done before it is thawed, unless inputs are put in place
        self.stamps = Stamps()  #: of the last call
        self.process = 0  #: the runner's number as it knows it
        self.has_files = True  #: was forked with the host's memory files of the evaluation
        self.seconds: float | None = None  #: of the last gated call, by the evaluator's own clock
        self.on_build: Callable[[], None] = lambda: None  #: told when it begins to build
        self.on_built: Callable[[], None] = lambda: None  #: told behind a request in which it has built something
        self._sampled: list[Samples] | None = None  # of the call that is about to begin, where they are wanted
        self.settled = 0  #: how many calls in a row have built nothing
        self.ran_while_frozen = 0  #: how often something of it ran while it was frozen
        self.cpu_seconds = 0.0  #: of all its processes, by the guard, in the last request
        self._cpu_before = math.inf  # of its processes when they were last seen, if they were
        self._unstopped = 0

    def shows(self, on_segment: Callable[[int, int, int | None], None]) -> None:
        """Set the listener for memory that the runner shows or gives up."""
        self._link.on_segment = on_segment

    def forget_segments(self) -> None:
        """Ignore memory that the runner shows from here on; its link outlives the evaluation that mapped the rest."""
        self._link.on_segment = _unmapped

    def ask(self, stage: Stage, request: Request[Answer], trial: int | None = None, forwards: int = 1) -> Answer:
        """Make one request and return its answer; the runner is frozen again afterwards.

        Raises:
            CandidateFailed: the candidate raised.
            RunnerExited, RunnerTimeout, ProtocolError: see `RunnerLink.request`.
        """
        return self._checked(self.try_ask(stage, request, forwards=forwards), stage, trial)

    def call(
        self,
        stage: Stage,
        request: Request[Answer],
        reveal: Callable[[], None],
        trial: int | None = None,
        sample: bool = False,
        prepare: bool = False,
        gated: EvaluatorsCall | None = None,
    ) -> tuple[Answer, Samples | None]:
        """Run a forward pass; `reveal` puts its inputs in place before the runner is thawed, unless they are `gated`.

        `stamps` has the evaluator's clock.

        With `sample` the guard looks from outside whose code runs in it, and the samples are returned too. With
        `prepare` its outputs are not wanted, or are taken when it has answered, and it prepares for the next call at
        once. Else it is stopped where it answered, and is to be asked to `prepare` when its outputs have been taken.
        """
        found: list[Samples] = []
        stamps = self._fresh_stamps(found if sample else None)
        self._show(reveal, gated)
        if gated is not None:
            self._sampled = found if sample else None
        elif sample:
            self._link.sample_begin()
        answer = self._checked(self.try_ask(stage, request, stamps, prepare=prepare, gated=gated), stage, trial)
        return answer, found[0] if found else None

    def place(self, reveal: Callable[[], None]) -> None:
        """Put the inputs of a call in place while the runner stands at its gate."""
        self._cpu_before = self._freeze().cpu_seconds
        reveal()
        self._notice(self._freeze().cpu_seconds)

    def go(self) -> float:
        """Let the runner begin its forward pass, sampled where that was asked for; return when, by time.perf_counter.

        It stops itself after it: `stand`, then `go_on`.
        """
        if self._sampled is not None:
            self._link.sample_begin()
        going = self._link.let_go()
        self._notice(going.cpu_seconds)
        return going.at

    def go_on(self) -> None:
        """Let the stopped runner go on."""
        self._notice(self._link.resume().cpu_seconds)

    def stand(self) -> float:
        """Stop the runner's processes; return since when they stand still, by time.perf_counter."""
        if self._sampled is not None:
            self._sampled.append(self._link.sample_end())
            self._sampled = None
        state = self._freeze()
        self._cpu_before = state.cpu_seconds
        return state.at

    def read(self, process: int, address: int, size: int) -> bytearray:
        """Read memory of a process of the frozen runner.

        Raises:
            Unreadable, RunnerExited, WorkerLost: see `RunnerLink.read`.
        """
        return self._link.read(process, address, size)

    def grant(self, seconds: float) -> None:
        """Put off the time by which all requests have to be answered."""
        self._link.put_off(seconds)

    def queued(self) -> dict[int, tuple[int, int]] | None:
        """Return, by thread of the runner, how long it had a processor and waited for one; see `RunnerLink.queued`."""
        return self._link.queued()

    @property
    def guard_seconds(self) -> float:
        """Return the processor time that the guard of the runner had when `queued` was asked last."""
        return self._link.guard_seconds

    def _fresh_stamps(self, found: list[Samples] | None = None) -> Stamps:
        """Return stamps for a call; at its end the samples since `sample_begin` are added to `found`."""
        stamps = Stamps()
        if found is not None:
            stamps.ended = lambda: found.append(self._link.sample_end())
        return stamps

    def try_ask(
        self,
        stage: Stage,
        request: Request[Answer],
        stamps: Stamps | None = None,
        forwards: int = 1,
        descriptors: Sequence[int] = (),
        prepare: bool = False,
        gated: EvaluatorsCall | None = None,
    ) -> Answer | Raised:
        """Make a request with `forwards` forward passes; an exception of the candidate counts as an answer.

        With `stamps` it is a call, whose inputs are in place; `prepare` has the runner prepare for another behind it.
        """
        limit = {Stage.LOAD: self._settings.load_timeout, Stage.BUILD: self._settings.build_timeout}.get(
            stage, forwards * self._settings.run_timeout
        )
        if stamps is None:
            self.before()
            self._notice(self._link.resume().cpu_seconds)
        builds = self._link.builds
        # A Triton kernel is compiled at its first launch; building inside forward has the build's own limit.
        with _ended(gated):
            answer = self._link.request(
                request, limit, self._settings.build_timeout, self.on_build, stamps, descriptors, gated
            )
            if gated is not None and answer["ok"]:
                self.seconds = gated.finish()
            elif gated is not None:
                gated.abandon()
        if stamps is not None:
            self._notice(stamps.cpu_seconds)
        if prepare and answer["ok"]:
            prepared = self._link.request(Prepare(), limit)
            answer = answer if prepared["ok"] else prepared
        after = self._freeze().cpu_seconds
        if self._link.builds > builds:
            self.on_built()
        if stamps is not None:
            self.settled = 0 if self._link.builds > builds else self.settled + 1
        self.cpu_seconds, self._cpu_before = max(0.0, after - self._cpu_before), after
        self.stamps = stamps or self.stamps
        return read_answer(request, answer)  # once it is frozen: reading takes time

    def begin(self, request: Request[object]) -> None:
        """Send a request and do not wait: the runner works beside the evaluator until `finish`. Use no secret here.

        Raises:
            RunnerExited, ProtocolError
        """
        self.before()
        self._notice(self._link.resume().cpu_seconds)
        self._link.post(request)

    def finish(self, request: Request[Answer]) -> Answer | Raised:
        """Return the answer to the `request` that `begin` sent, which may be an exception; the runner is frozen again.

        Raises:
            RunnerExited, RunnerTimeout, ProtocolError
        """
        answer = self._link.answer(self._settings.load_timeout)
        self._cpu_before = self._freeze().cpu_seconds
        return read_answer(request, answer)

    def _show(self, reveal: Callable[[], None], gated: EvaluatorsCall | None = None) -> None:
        """Put something into place while the runner is frozen, and leave it so.

        The inputs of a `gated` call are put into place once it has begun. Whether anything of the runner went on until
        then is seen when it is thawed, and it needs not be stopped once more.
        """
        if gated is not None:
            reveal()
            return
        self._notice(self._freeze().cpu_seconds)
        reveal()
        self._notice(self._freeze().cpu_seconds)

    def _freeze(self) -> TreeState:
        """Stop the runner's processes. Raises CandidateFailed where threads of it go on again and again."""
        state = self._link.freeze()
        self._unstopped += state.running > 0
        if self._unstopped >= MAX_UNSTOPPED:
            raise self._unstoppable(
                f"threads went on for {FREEZE_SECONDS:.0f} s while they were stopped, {self._unstopped} times: system "
                "calls that take as long work beside the baseline's calls"
            )
        return state

    def _unstoppable(self, message: str) -> Exception:
        return failures.failed(Stage.TIME, FailureKind.LIMIT, message)

    def _notice(self, cpu_seconds: float) -> None:
        """Count it where something of the runner has run since it was last seen stopped."""
        self.ran_while_frozen += cpu_seconds > self._cpu_before + RESTLESS_SECONDS
        self._cpu_before = cpu_seconds

    @staticmethod
    def _checked(answer: Answer | Raised, stage: Stage, trial: int | None) -> Answer:
        if isinstance(answer, Raised):
            raise failures.from_exception(stage, answer, trial)
        return answer


def _unmapped(_address: int, _size: int, descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


@contextmanager
def _ended(gated: EvaluatorsCall | None) -> Iterator[None]:
    """Make sure that no stream is left waiting for a call, however it ends."""
    try:
        yield
    except NotTaken as error:
        raise ProtocolError(str(error)) from error
    except BaseException:
        if gated is not None:
            gated.abandon()
        raise


class BaselineClient(RunnerClient):
    """The baseline's runner: its failure is never the candidate's."""

    def __init__(self, link: RunnerLink, settings: EvaluationSettings, problem: str) -> None:
        super().__init__(link, settings)
        self.has_files = False
        self._problem = problem

    def request(
        self,
        request: Request[Answer],
        reveal: Callable[[], None] | None = None,
        prepare: bool = False,
        gated: EvaluatorsCall | None = None,
    ) -> Answer:
        """Make a request that has to succeed; `reveal` puts a call's inputs in place, `prepare` as in `call`.

        Raises:
            WorkerLost: the runner went away or did not answer.
            ProblemError: the problem's own code raised.
        """
        return self.checked(self.asked(request, reveal, prepare, gated))

    def asked(
        self,
        request: Request[Answer],
        reveal: Callable[[], None] | None = None,
        prepare: bool = False,
        gated: EvaluatorsCall | None = None,
    ) -> Answer | Raised:
        """Return the answer to a request as of `request`, which may be an exception. Raises WorkerLost."""

        def ask() -> Answer | Raised:
            if reveal is None:
                return self.try_ask(Stage.LOAD, request)
            self._show(reveal, gated)
            return self.try_ask(Stage.LOAD, request, self._fresh_stamps(), prepare=prepare, gated=gated)

        return self.answered(ask)

    def made(self, name: str) -> VariantMade | Raised:
        """Have a further baseline made and warmed up, which may take a compiler; an exception is an answer.

        Raises WorkerLost as `request` does.
        """
        return self.answered(lambda: self.try_ask(Stage.BUILD, Variant(variant=name)))

    def sampled(self, reveal: Callable[[], None]) -> Samples:
        """Run a call that has to succeed, and return what the guard saw: whether processes can be sampled at all.

        Raises as `request` does.
        """
        found: list[Samples] = []

        def ask() -> Called | Raised:
            self._show(reveal)
            self._link.sample_begin()
            return self.try_ask(Stage.LOAD, Call(), self._fresh_stamps(found), prepare=True)

        self.checked(self.answered(ask))
        return found[0]

    def answered(self, ask: Callable[[], Answer]) -> Answer:
        """Return the answer that `ask` gets, which may be an exception in the runner.

        Raises WorkerLost as `request` does.
        """
        try:
            return ask()
        except (RunnerExited, RunnerTimeout, ProtocolError) as error:
            raise WorkerLost(f"the baseline of {self._problem} could not be timed: {error}") from error

    def _unstoppable(self, message: str) -> Exception:
        return WorkerLost(f"the baseline of {self._problem} could not be timed: {message}")

    def checked(self, answer: Answer | Raised) -> Answer:
        """Return the answer. Raises ProblemError where it is an exception."""
        if isinstance(answer, Raised):
            raise ProblemError(f"{self._problem}: the reference fails: {answer.message}")
        return answer


def device_request(device: torch.device, facts: DeviceFacts) -> Device:
    """Return the request that tells a runner to take its device; a GPU's driver needs some 0.3 s for it.

    On a machine with several NVIDIA GPUs the runner hides the others from itself first: the driver opens all that it
    sees, which takes 0.2 s for each.
    """
    variable, only = model_of(facts.kind).visible_devices, None
    if variable is not None and facts.uuid is not None:
        visible = os.environ.get(variable, "").split(",")
        own = (visible[facts.index] if visible[0] else str(facts.index)).strip()
        only = OnlyGpu(visible=own, uuid=facts.uuid)
    return Device(device=str(device), threads=torch.get_num_threads(), only=only)


def times_of(answer: Called | Traced, stage: Stage, trial: int | None) -> tuple[float, float]:
    """Return the two times of a call, as the runner says: seconds, and seconds until the device was idle."""
    seconds, idle = answer.seconds, answer.idle_seconds
    if seconds is None or idle is None or not (0 < seconds < 1e6 and 0 < idle < 1e6):
        message = f"the runner reported {seconds!r} and {idle!r} as the times of a call"
        raise failures.failed(stage, FailureKind.PROTOCOL, message, trial=trial)
    return seconds, idle
