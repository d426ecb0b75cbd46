"""The evaluator's end of one runner: requests with deadlines, and its end."""

from __future__ import annotations

import contextlib
import math
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hkbench.errors import WorkerLost
from hkbench.evaluation.awaited import BuildLimit, Gated, GateWatch
from hkbench.evaluation.runner_end import RunnerEnd, parse
from hkbench.profile.sampled_code import Place
from hkbench.protocol import messages, wire
from hkbench.protocol.codec import NotOfForm
from hkbench.records import LoweredPrecision
from hkbench.sandbox.guard import READ

LONG_BUILD_SECONDS = 2.0  #: after which a build leaves what nobody else may use meanwhile
STATUS_SECONDS = 1.0
GUARD_SECONDS = 30.0  #: until the report: killing may take a while
MAX_LOWERED = 64  #: settings of the precision that a runner may tell of
MAX_SEGMENT = 1 << 48  #: bytes; no device has an address beyond
SEGMENT_SECONDS = 5.0  #: for the open file that stands for memory to follow the message about it
ANSWER_SECONDS = 10.0  #: to any other request; the guard itself gives up stopping a tree after 2


Answer = TypeVar("Answer")


@dataclass(frozen=True)
class TreeState:
    """What the guard saw of the runner's process tree."""

    processes: int
    threads: int
    running: int  #: threads that were not stopped; 0 is what a frozen tree has
    cpu_seconds: float  #: user and system time of the whole tree so far
    at: float  #: by time.perf_counter of the guard, which is the evaluator's too; just before a tree goes on


@dataclass(frozen=True)
class Samples:
    """Whose code ran: places in mapped files, "[anonymous]" (code made while it ran), "[vdso]" or "[kernel]"."""

    samples: int
    looks: tuple[tuple[Place, ...], ...] = ()  #: at all threads at once: where each was that ran; some of many looks
    error: str | None = None  #: why threads could not be looked at


@dataclass
class Stamps:
    """The evaluator's own clock of a call, seconds: the forward pass, and what came after it until the answer.

    `ended` is called at the end of the forward pass. `cpu_seconds`: of the runner's processes, when they went on.
    """

    ended: Callable[[], None] = lambda: None
    begun: float = 0.0
    wall: float = 0.0
    rest: float = 0.0
    cpu_seconds: float = 0.0


class RunnerExited(Exception):
    """The runner closed its channel: it crashed, left, or a limit ended it."""


class RunnerTimeout(Exception):
    """The runner did not answer in time; `building` says whether a compiler was at work."""

    def __init__(self, building: bool) -> None:
        super().__init__("no answer in time")
        self.building = building


class ProtocolError(Exception):
    """The runner sent what a runner never sends."""


class Unreadable(Exception):
    """The guard could not read memory of the runner."""


def by_setter(told: wire.Message) -> LoweredPrecision:
    """Return what a runner says of a setting."""
    flag, value, line = told.get("flag"), told.get("value"), told.get("line")
    if not isinstance(flag, str) or not isinstance(value, str) or not (line is None or type(line) is int):
        raise ProtocolError("the runner told of a setting of the precision without saying which")
    where = None if line is None else f"line {line}"
    return LoweredPrecision(flag=flag[:200], value=value[:40], seen="setter", where=where)


class RunnerLink:
    """The channel to a runner: requests go one at a time; `build_seconds` adds up the time that builds took."""

    def __init__(
        self, channel: socket.socket, control: socket.socket, said: bytes = b"", build_seconds: float = 0.0
    ) -> None:
        """Take over the channel; `said` and `build_seconds`: what another process's link to this runner had."""
        self._channel = channel
        self._control = control
        self._end: RunnerEnd | None = None
        self._said = said  # by the guard, behind the last whole line
        self._report: dict[str, Any] | None = None  # came while another answer was awaited
        self._left = False  # the runner closed its channel
        self.build_seconds = build_seconds
        self.lowered: list[LoweredPrecision] = []  #: what the runner says that its candidate set
        self.builds = 0  #: that this link was told of
        self.guard_seconds = 0.0  #: of processors that the guard and the init had when `queued` was asked last
        #: Told of memory that the runner shows, or gives up (no descriptor): address, bytes, descriptor.
        self.on_segment: Callable[[int, int, int | None], None] | None = None
        #: Returns what is entered while a long build goes on: others may use then what this evaluation holds. The
        #: runner stands still when it is left. None where there is nothing to give.
        self.away: Callable[[], contextlib.AbstractContextManager[None] | None] = lambda: None
        #: When all requests together have to be answered, by time.monotonic. Builds and waits put it off; None: never.
        self.ends: float | None = None

    @property
    def said(self) -> bytes:
        """What the guard sent behind its last whole line; the next process to use this runner reads on from there."""
        return self._said

    def put_off(self, seconds: float) -> None:
        """Give all requests together longer: something took these seconds that is not the candidate's."""
        if self.ends is not None:
            self.ends += seconds

    def request(
        self,
        request: messages.Request[object],
        seconds: float,
        build_seconds: float = 0.0,
        on_build: Callable[[], None] | None = None,
        stamps: Stamps | None = None,
        descriptors: Sequence[int] = (),
        gated: Gated | None = None,
    ) -> wire.Message:
        """Send one message and return the answer, which may say `ok: false`: `post` and `answer` in one.

        `descriptors` are open files that go with it; the rest as there. With `stamps` the runner has to be frozen: it
        goes on when its clock begins. A `gated` call is given the number of its gate here. The answer is as it came:
        `read_answer` reads it, which may take until nobody waits for that.
        """
        self.post(request if gated is None else messages.at_gate(request, gated.number), descriptors)
        if stamps is not None:
            resumed = self.resume()
            stamps.begun, stamps.cpu_seconds = resumed.at, resumed.cpu_seconds
        return self.answer(seconds, build_seconds, on_build, stamps, gated)

    def post(self, request: messages.Request[object], descriptors: Sequence[int] = ()) -> None:
        """Send one message, and do not wait.

        Raises:
            RunnerExited, ProtocolError
        """
        with self._of_runner():
            wire.send(self._channel, messages.written(request))
            if descriptors:
                wire.send_descriptors(self._channel, descriptors)

    def answer(
        self,
        seconds: float,
        build_seconds: float = 0.0,
        on_build: Callable[[], None] | None = None,
        stamps: Stamps | None = None,
        gated: Gated | None = None,
    ) -> wire.Message:
        """Return the answer to what was posted, which may say `ok: false`.

        `seconds` is the limit without the time in which the runner says that it builds; all of its builds together
        have `build_seconds`.

        With `stamps` the request is a call, for which the runner has prepared when it was asked to, so that the
        evaluator's clock holds little else than the forward pass; what it puts off until after its end falls into
        `rest`. A call that is `gated` has no such stamps: it says when it has begun, and its inputs are released.

        Raises:
            RunnerExited, RunnerTimeout, ProtocolError
        """
        limit = BuildLimit(seconds, build_seconds - self.build_seconds)
        gate = GateWatch(gated, self._speaks)
        while True:
            away = self.away() if limit.building else None
            long = time.monotonic() + LONG_BUILD_SECONDS
            gate.wait(math.inf if away is None else long)
            if away is not None and not self._speaks(long - time.monotonic()):
                limit.put_off(self._build_away(limit.deadline, away))
            deadline = limit.deadline if limit.building or self.ends is None else min(limit.deadline, self.ends)
            try:
                with self._of_runner():
                    answer = wire.receive(self._channel, deadline)
            except TimeoutError as error:
                raise RunnerTimeout(limit.building) from error
            if (build_seconds and self._of_builds(answer, limit, on_build)) or gate.told(answer):
                continue
            if self._noted(answer, stamps):
                continue
            if not isinstance(answer.get("ok"), bool):
                raise ProtocolError("the runner answered with neither a result nor an error")
            gate.release()
            if stamps is not None and answer["ok"] and gated is None:
                if not stamps.wall:
                    raise ProtocolError("the runner answered a call without saying that it had ended")
                stamps.rest = time.perf_counter() - stamps.begun - stamps.wall
            return answer

    def _build_away(self, deadline: float, away: contextlib.AbstractContextManager[None]) -> float:
        """Be `away` until the runner says something; return the seconds that it stood still then."""
        with contextlib.ExitStack() as stack:
            with away:
                self._speaks(deadline - time.monotonic())
                with contextlib.suppress(RunnerExited):  # the channel tells
                    self.freeze()
                    stack.callback(self.resume)
                stands = time.monotonic()
            return time.monotonic() - stands

    def _of_builds(self, told: wire.Message, limit: BuildLimit, on_build: Callable[[], None] | None) -> bool:
        """Take what the runner says of its builds; return whether it is of these."""
        if told.get("event") == "build_begin":
            self.builds += 1
            if limit.begin() and on_build is not None:
                on_build()
            return True
        if told.get("event") == "build_end" and limit.building:
            took = limit.end()
            self.build_seconds += took
            self.put_off(took)
            return True
        return False

    def _noted(self, told: wire.Message, stamps: Stamps | None) -> bool:
        """Take what else the runner may say before its answer; return whether it is such a thing."""
        event = told.get("event")
        if event == "lowers" and len(self.lowered) < MAX_LOWERED:
            self.lowered.append(by_setter(told))
        elif event == "segment" and self.on_segment is not None:
            self._segment(told, self.on_segment)
        elif event == "end" and stamps is not None and not stamps.wall:
            stamps.wall = time.perf_counter() - stamps.begun
            stamps.ended()
        else:
            return False
        return True

    def _speaks(self, seconds: float) -> bool:
        """Return whether the runner says something within some time."""
        return bool(select.select([self._channel], [], [], max(0.0, seconds))[0])

    def _segment(self, told: wire.Message, on_segment: Callable[[int, int, int | None], None]) -> None:
        """Map a segment of the runner's memory, or forget one; the runner waits for that."""
        address, size = told.get("address"), told.get("size")
        if type(address) is not int or type(size) is not int or not 0 <= size < MAX_SEGMENT:
            raise ProtocolError("the runner told of memory without saying where it lies")
        with self._of_runner():
            try:
                descriptor = wire.receive_descriptors(self._channel, 1, SEGMENT_SECONDS)[0] if size else None
                on_segment(address, size, descriptor)
            except (TimeoutError, RuntimeError, ValueError) as error:
                raise ProtocolError(f"memory that the runner told of cannot be mapped: {error}") from error
            wire.send(self._channel, {"op": "mapped"})

    @contextlib.contextmanager
    def _of_runner(self) -> Iterator[None]:
        """Blame the runner for what goes wrong on the channel."""
        try:
            yield
        except wire.PeerClosed as error:
            self._left = True
            raise RunnerExited("the runner's process ended without an answer") from error
        except wire.WireError as error:
            raise ProtocolError(str(error)) from error

    def freeze(self) -> TreeState:
        """Stop everything the runner started. Its `cpu_seconds` are taken once all is still.

        Raises:
            RunnerExited: the runner ended or passed a limit; `end` tells.
            WorkerLost: the guard did not answer.
        """
        return _tree_state(self._ask(b"S"))

    def resume(self) -> TreeState:
        """Continue a frozen tree. The state is that of just before: `cpu_seconds` as at `freeze`, or somebody moved.

        Raises:
            RunnerExited, WorkerLost
        """
        return _tree_state(self._ask(b"C"))

    def let_go(self) -> TreeState:
        """Continue a frozen tree whose runner waits for that to begin its forward pass, and will stop itself after it.

        Raises:
            RunnerExited, WorkerLost, ProtocolError
        """
        with self._of_runner():
            wire.send(self._channel, {"op": "go"})
        return _tree_state(self._ask(b"G"))

    def read(self, process: int, address: int, size: int) -> bytearray:
        """Read memory of the frozen runner; `process` is its number as it knows it.

        Raises:
            Unreadable: there is no such memory, or the guard may not read it.
            RunnerExited, WorkerLost
        """
        answer = self._ask(b"R" + READ.pack(process, address, size))
        if "error" in answer:
            raise Unreadable(str(answer["error"]))
        try:
            return self._guard_bytes(size, time.monotonic() + ANSWER_SECONDS)
        except TimeoutError as error:
            raise WorkerLost("the guard of a runner did not send the memory that it had read") from error
        except OSError as error:
            raise RunnerExited(f"the guard of the runner is gone ({error})") from error

    def queued(self) -> dict[int, tuple[int, int]] | None:
        """Return, by thread, the nanoseconds it had a processor and those it waited for one; `None`: not counted here.

        `guard_seconds` has then what the guard itself took of the processors.

        Raises:
            RunnerExited, WorkerLost
        """
        answer = self._ask(b"W")
        with _understood():
            self.guard_seconds, told = float(answer["guard_seconds"]), answer["threads"]
            return None if told is None else {tid: (ran, waited) for tid, ran, waited in told}

    def sample_begin(self) -> None:
        """Begin to sample whose code runs (sandbox/sampler.py); costs each running thread some 20 us a sample.

        Raises:
            RunnerExited, WorkerLost
        """
        self._ask(b"P")

    def sample_end(self) -> Samples:
        """Return the samples since `sample_begin`.

        Raises:
            RunnerExited, WorkerLost
        """
        answer = self._ask(b"Q")
        with _understood():
            paths = answer["paths"]
            places = [Place(paths[path], offset, bytes.fromhex(code)) for path, offset, code in answer["places"]]
            looks = tuple(tuple(places[number] for number in look) for look in answer["looks"])
            return Samples(answer["samples"], looks, answer.get("error"))

    def begin_end(self) -> None:
        """Ask for the end without waiting: two runners end side by side. `end` has the report."""
        if self._end is None:
            self._channel.close()
            with contextlib.suppress(OSError):  # it may have ended by itself
                self._control.sendall(b"K")

    def end(self) -> RunnerEnd:
        """End the runner with everything it started. A second call returns the same report.

        Raises:
            WorkerLost: the guard did not report, so nobody knows whether the tree is gone.
        """
        if self._end is None:
            self._channel.close()
            report = self._ask_for_report()
            with _understood():
                self._end = parse(report)
        return self._end

    def _ask(self, command: bytes) -> dict[str, Any]:
        if self._report is not None or self._end is not None:
            raise RunnerExited("the runner has ended")
        try:
            # It may have ended by itself (a limit); then its report waits to be read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._control.sendall(command)
            answer = self._guard_line(time.monotonic() + ANSWER_SECONDS)
        except TimeoutError as error:
            raise WorkerLost("the guard of a runner did not answer") from error
        except (OSError, wire.WireError) as error:
            raise RunnerExited(f"the guard of the runner is gone ({error})") from error
        if "reason" in answer:
            self._report = answer
            raise RunnerExited("the runner ended, or passed a limit")
        return answer

    def _guard_line(self, deadline: float) -> dict[str, Any]:
        """Return the guard's next line.

        Raises:
            OSError, WireError: no line, or not one of a guard. TimeoutError: not in time.
        """
        while b"\n" not in self._said:
            if len(self._said) > wire.MAX_TRUSTED_BODY:
                raise wire.WireError("the guard sent a line without an end")
            self._control.settimeout(max(0.001, deadline - time.monotonic()))
            part = self._control.recv(1 << 16)
            if not part:
                raise ConnectionResetError("it closed its socket")
            self._said += part
            if time.monotonic() > deadline:
                raise TimeoutError("no whole line in time")
        line, _, self._said = self._said.partition(b"\n")
        return wire.parse(line)

    def _guard_bytes(self, size: int, deadline: float) -> bytearray:
        """Return what follows the guard's last line. Raises OSError, TimeoutError: see `_guard_line`."""
        data = bytearray(self._said[:size])
        self._said = self._said[size:]
        while len(data) < size:
            self._control.settimeout(max(0.001, deadline - time.monotonic()))
            part = self._control.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionResetError("it closed its socket")
            data += part
        return data

    def _await_end(self) -> None:
        """Wait for the end of a runner that closed its channel: its status says how it ended, if the guard may wait."""
        with contextlib.suppress(TimeoutError):
            line = self._guard_line(time.monotonic() + STATUS_SECONDS)
            if "reason" in line:
                self._report = line

    def _ask_for_report(self) -> dict[str, Any]:
        try:
            if self._left and self._report is None:
                self._await_end()
            if self._report is None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._control.sendall(b"K")
            deadline = time.monotonic() + GUARD_SECONDS
            while self._report is None:
                line = self._guard_line(deadline)
                if "reason" in line:  # else the late answer to a request that was given up
                    self._report = line
        except (OSError, wire.WireError) as error:
            raise WorkerLost(f"the guard of a runner did not report ({error}); kill leftovers by hand") from error
        finally:
            self._control.close()
        return self._report


def read_answer(request: messages.Request[Answer], answer: wire.Message) -> Answer | messages.Raised:
    """Return what a runner answered, of the class that belongs to the request.

    Raises:
        ProtocolError: it has another form.
    """
    try:
        return messages.answer_to(request, answer)
    except NotOfForm as error:
        raise ProtocolError(f"the runner gave a wrong answer: {error}") from error


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Raise WorkerLost where the guard's answer has another form than this program's guard gives."""
    try:
        yield
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise WorkerLost(f"the guard of a runner sent an answer without {error}; start the command again") from error


def _tree_state(answer: dict[str, Any]) -> TreeState:
    with _understood():
        return TreeState(answer["processes"], answer["threads"], answer["running"], answer["cpu_seconds"], answer["at"])
