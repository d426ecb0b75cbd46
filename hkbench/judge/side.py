"""One of the two runners as the session sees it: it sleeps, frozen, whenever it is not asked something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hkbench.errors import ProblemError, WorkerLost
from hkbench.judge import failures
from hkbench.judge.link import RunnerBabble, RunnerGone, RunnerLink, RunnerTimeout, Samples, Stamps
from hkbench.judge.stopwatch import GatedCall, NotTaken
from hkbench.records import FailureKind, JudgeSettings, Stage
from hkbench.runner.wire import Message

RESTLESS_SECONDS = 2e-4  #: of processor time, in a tree whose processes are all stopped


class Side:
    """The candidate's runner. What goes wrong here is the candidate's failure.

    The runner's processes are stopped between requests, and so while the inputs of a call are put in place. Nobody can
    look at fresh inputs before the clock runs, go on with work after an answer, or disturb the other side's turn.
    """

    def __init__(self, link: RunnerLink, settings: JudgeSettings) -> None:
        self._link = link
        self._settings = settings
        self.before: Callable[[], None] = lambda: None  #: done before it is thawed, unless inputs are put in place
        self.stamps = Stamps()  #: of the last call
        self.process = 0  #: the runner's number as it knows it
        self.leaves_outputs = False  #: for the judge to read them, so that an answer is the end of its call
        self.seconds: float | None = None  #: of the last gated call, by the judge's clock on the device
        self.restless = 0  #: how often something of it ran while it was frozen

    def shows(self, on_segment: Callable[[int, int, int | None], None]) -> None:
        """Whom to tell of memory that the runner shows or gives up."""
        self._link.on_segment = on_segment

    def ask(self, stage: Stage, op: str, trial: int | None = None, **fields: Any) -> Message:
        """One request and its answer; the runner is frozen again afterwards.

        Raises:
            CandidateFailed: the candidate raised.
            RunnerGone, RunnerTimeout, RunnerBabble: see `RunnerLink.request`.
        """
        return self._checked(self.try_ask(stage, op, None, **fields), stage, trial)

    def call(
        self,
        stage: Stage,
        op: str,
        reveal: Callable[[], None],
        trial: int | None = None,
        sample: bool = False,
        prepare: bool = False,
        gated: GatedCall | None = None,
    ) -> tuple[Message, Samples | None]:
        """Runs a forward pass; `reveal` puts its inputs in place, before it is thawed. `stamps` has the judge's clock.

        With `sample` the guard looks from outside whose code runs in it, and the samples are returned too. With
        `prepare` nobody wants its outputs, and it prepares for the next call at once. Else it is stopped where it
        answered, since what it does while it prepares is on no clock, and is to be asked to `prepare` when its outputs
        have been taken.
        """
        found: list[Samples] = []
        stamps = self._fresh_stamps(found if sample else None)
        self._show(reveal)
        if sample:
            self._link.sample_begin()
        answer = self._checked(self.try_ask(stage, op, stamps, prepare=prepare, gated=gated), stage, trial)
        return answer, found[0] if found else None

    def read(self, process: int, address: int, size: int) -> bytearray:
        """Reads memory of a process of the frozen runner.

        Raises:
            Unreadable, RunnerGone, WorkerLost: see `RunnerLink.read`.
        """
        return self._link.read(process, address, size)

    def _fresh_stamps(self, found: list[Samples] | None = None) -> Stamps:
        """Of a call, at whose end the samples since `sample_begin` are added to `found`."""
        stamps = Stamps(by_answer=self.leaves_outputs)
        if found is not None:
            stamps.ended = lambda: found.append(self._link.sample_end())
        return stamps

    def try_ask(
        self,
        stage: Stage,
        op: str,
        stamps: Stamps | None = None,
        forwards: int = 1,
        descriptors: Sequence[int] = (),
        prepare: bool = False,
        gated: GatedCall | None = None,
        **fields: Any,
    ) -> Message:
        """A request to which an exception of the candidate's is an answer. It makes `forwards` forward passes.

        With `stamps` it is a call, whose inputs are in place; `prepare` has the runner prepare for another behind it.
        """
        limit = self._settings.load_timeout if stage is Stage.LOAD else forwards * self._settings.run_timeout
        if stamps is None:
            self.before()
            self._link.resume()
        # A Triton kernel is compiled at its first launch; building inside forward has the build's own limit.
        with _ended(gated):
            answer = self._link.request(
                op, limit, self._settings.build_timeout, stamps=stamps, descriptors=descriptors, gated=gated, **fields
            )
            if gated is not None and answer["ok"]:
                self.seconds = gated.finish()
            elif gated is not None:
                gated.abandon()
        if prepare and answer["ok"]:
            prepared = self._link.request("prepare", limit)
            answer = answer if prepared["ok"] else prepared
        self._link.freeze()
        self.stamps = stamps or self.stamps
        return answer

    def begin(self, op: str, **fields: Any) -> None:
        """Sends a request and goes on: the runner works beside the judge until `finish`. For what needs no secret.

        Raises:
            RunnerGone, RunnerBabble
        """
        self.before()
        self._link.resume()
        self._link.post(op, **fields)

    def finish(self) -> Message:
        """The answer to what `begin` sent, which may be an exception; the runner is frozen again.

        Raises:
            RunnerGone, RunnerTimeout, RunnerBabble
        """
        answer = self._link.answer(self._settings.load_timeout)
        self._link.freeze()
        return answer

    def _show(self, reveal: Callable[[], None]) -> None:
        """Puts something into place while the runner is frozen, and leaves it so."""
        before = self._link.freeze()
        reveal()
        after = self._link.freeze()
        self.restless += after.cpu_seconds > before.cpu_seconds + RESTLESS_SECONDS

    @staticmethod
    def _checked(answer: Message, stage: Stage, trial: int | None) -> Message:
        if not answer["ok"]:
            raise failures.from_exception(stage, answer, trial)
        return answer


@contextmanager
def _ended(gated: GatedCall | None) -> Iterator[None]:
    """However a call ends, no stream is left waiting for it."""
    try:
        yield
    except NotTaken as error:
        raise RunnerBabble(str(error)) from error
    except BaseException:
        if gated is not None:
            gated.abandon()
        raise


class BaselineSide(Side):
    """The baseline's runner: its failure is never the candidate's."""

    def __init__(self, link: RunnerLink, settings: JudgeSettings, problem: str) -> None:
        super().__init__(link, settings)
        self._problem = problem

    def must(
        self,
        op: str,
        reveal: Callable[[], None] | None = None,
        prepare: bool = False,
        gated: GatedCall | None = None,
        /,
        **fields: Any,
    ) -> Message:
        """A request that has to succeed; with `reveal` a call, whose inputs that puts in place, `prepare` as in `call`.

        Raises:
            WorkerLost: the runner went away or did not answer.
            ProblemError: the problem's own code raised.
        """
        return self.succeeded(self.asked(op, reveal, prepare, gated, **fields))

    def asked(
        self,
        op: str,
        reveal: Callable[[], None] | None = None,
        prepare: bool = False,
        gated: GatedCall | None = None,
        /,
        **fields: Any,
    ) -> Message:
        """The answer to a request as of `must`, which may be an exception. Raises WorkerLost."""

        def ask() -> Message:
            if reveal is None:
                return self.try_ask(Stage.LOAD, op, **fields)
            self._show(reveal)
            return self.try_ask(Stage.LOAD, op, self._fresh_stamps(), prepare=prepare, gated=gated, **fields)

        return self.answered(ask)

    def sampled(self, reveal: Callable[[], None]) -> Samples:
        """Runs a call that has to succeed, and returns what the guard saw: whether processes can be sampled at all.

        Raises as `must` does.
        """
        found: list[Samples] = []

        def ask() -> Message:
            self._show(reveal)
            self._link.sample_begin()
            return self.try_ask(Stage.LOAD, "call", self._fresh_stamps(found), prepare=True)

        self.succeeded(self.answered(ask))
        return found[0]

    def answered(self, ask: Callable[[], Message]) -> Message:
        """The answer that `ask` gets, which may be an exception in the runner. Raises WorkerLost as `must` does."""
        try:
            return ask()
        except (RunnerGone, RunnerTimeout, RunnerBabble) as error:
            raise WorkerLost(f"the baseline of {self._problem} could not be timed: {error}") from error

    def succeeded(self, answer: Message) -> Message:
        """The answer. Raises ProblemError where it is an exception."""
        if not answer["ok"]:
            raise ProblemError(f"{self._problem}: the reference fails: {answer.get('message')}")
        return answer


def times_of(answer: Message, stage: Stage, trial: int | None) -> tuple[float, float]:
    """The two times of a call, as the runner says: seconds, and seconds until the device was idle."""
    seconds, idle = answer.get("seconds"), answer.get("idle_seconds")
    if not (isinstance(seconds, float) and isinstance(idle, float) and 0 < seconds < 1e6 and 0 < idle < 1e6):
        message = f"the runner reported {seconds!r} and {idle!r} as the times of a call"
        raise failures.failed(stage, FailureKind.PROTOCOL, message, trial=trial)
    return seconds, idle
