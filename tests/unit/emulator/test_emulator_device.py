"""The device's process: what runners ask, what the evaluator is told, and hostile runners."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from support.listening_device import Argument, Kernel, Listening, Module

from hkbench.emulator import arena, link
from hkbench.emulator.arena import Range
from hkbench.emulator.device import FURTHER, MAX_KERNELS, MAX_MODULES, MAX_TOLD, Device, Ran, Server
from hkbench.emulator.link import (
    AddRange,
    Answer,
    LaunchKernel,
    LoadCode,
    ReadVariable,
    RefusedName,
    RemoveRange,
    WriteVariable,
)
from hkbench.emulator.report import CallOptions, Report, Told
from hkbench.protocol import wire
from hkbench.protocol.codec import decode, encode

ROOM = Range(1 << 45, 1 << 20)
KERNEL = Kernel(
    lds_bytes=1024, arguments=(Argument(0, 8), Argument(8, 4), Argument(16, 4, hidden=True)), kernarg_size=32
)
LAUNCH = LaunchKernel(0, "scale", (4, 1, 1), (64, 1, 1), 0, bytes(16))
LDS = 65536


def _device(came: Ran) -> tuple[Device[Module], Listening]:
    engine = Listening(came=came, kernels={"scale": KERNEL})
    return Device(engine, [ROOM], LDS), engine


def _status(answer: bytes | None) -> Answer:
    assert answer is not None
    return Answer(link.HEAD.unpack_from(answer)[1])


def test_a_load_is_answered_with_what_a_launch_packs_by() -> None:
    device, _ = _device(Ran())
    answer = device.handle(LoadCode(b"code"))
    assert answer is not None
    assert answer[link.HEAD.size :] == b"\0\0\0\0scale 32 1024 1024 8 2 0 8 8 4"


def test_what_a_launch_came_to_is_told_to_the_evaluator_alone() -> None:
    fault = Told(kind="out_of_bounds", message="4 bytes behind the end of allocation 1")
    device, engine = _device(Ran(instructions=40, faults=[fault], written=[Range(ROOM.begin, 64)]))
    device.begin(CallOptions(check=False, late=True, seed=5, max_instructions=100))
    device.handle(LoadCode(b"code"))
    assert device.handle(LAUNCH) == link.answer(Answer.DONE)
    assert device.handle(LAUNCH) == link.answer(Answer.DONE)
    report = device.report([Range(ROOM.begin + 32, 64)])
    assert (report.launch_count, report.written) == (2, [32])
    assert report.faults == [fault, fault]
    assert report.kernels == {"scale": 80}
    assert [one.max_instructions for one in engine.options] == [100, 60]  # of the whole call
    device.begin(CallOptions())
    assert device.report([]) == Report(
        kernels={},
        launch_count=0,
        faults=[],
        fault_count=0,
        refusals=[],
        violation=None,
        written=[],
        waits=[],
        host_made=0,
    )


def test_a_refusal_is_no_reason_for_the_candidate_to_learn() -> None:
    device, _ = _device(Ran(refusal=Told(kind="unsupported", message="v_secret at line 7")))
    device.handle(LoadCode(b"code"))
    answer = device.handle(LAUNCH)
    assert _status(answer) is Answer.UNSUPPORTED
    assert answer is not None and b"v_secret" not in answer
    assert device.report([]).refusals == [Told(kind="unsupported", message="v_secret at line 7")]


@pytest.mark.parametrize(
    "launch",
    [
        replace(LAUNCH, module=1),
        replace(LAUNCH, kernel="other"),
        replace(LAUNCH, dynamic_lds=LDS - 1023),
        replace(LAUNCH, kernarg=bytes(33)),
    ],
)
def test_what_no_gpu_would_launch_reaches_no_executor(launch: LaunchKernel) -> None:
    device, engine = _device(Ran())
    device.handle(LoadCode(b"code"))
    assert _status(device.handle(launch)) is Answer.INVALID
    assert not engine.launches


@pytest.mark.parametrize(
    "requests",
    [
        [AddRange(ROOM.begin - 8, 64)],
        [AddRange(ROOM.end - 8, 64)],
        [AddRange(ROOM.begin, 0)],
        [AddRange(2**64 - 1, 2**64 - 1)],
        [AddRange(ROOM.begin, 64), AddRange(ROOM.begin, 64)],
        [RemoveRange(ROOM.begin)],
        [AddRange(ROOM.begin, 64), RemoveRange(ROOM.begin), RemoveRange(ROOM.begin)],
    ],
)
def test_memory_that_is_not_the_devices_is_never_used(requests: list[link.Request]) -> None:
    device, engine = _device(Ran())
    for request in requests:
        assert device.handle(request) is None
    assert device.report([]).violation
    assert all(ROOM.holds(Range(begin, size)) for begin, (size, _) in engine.ranges.items())


def test_what_an_engine_raises_is_a_refusal() -> None:
    engine = Listening(kernels={})
    device = Device(engine, [ROOM], LDS)
    assert _status(device.handle(LoadCode(b"junk"))) is Answer.UNSUPPORTED
    assert "no code object" in device.report([]).refusals[0].message


def test_the_number_of_code_objects_and_of_what_is_told_is_bounded() -> None:
    device, _ = _device(Ran(faults=[Told(kind="race", message="x")] * 9))
    statuses = [_status(device.handle(LoadCode(b"code"))) for _ in range(MAX_MODULES + 1)]
    assert statuses[:-1] == [Answer.DONE] * MAX_MODULES and statuses[-1] is Answer.UNSUPPORTED
    for _ in range(2 * MAX_TOLD):
        device.handle(LAUNCH)
        device.handle(RefusedName("hipGraphLaunch"))
    report = device.report([])
    assert len(report.faults) == len(report.refusals) == MAX_TOLD
    assert (report.fault_count, report.launch_count) == (18 * MAX_TOLD, 2 * MAX_TOLD)


def test_kernels_are_told_by_name_up_to_a_bound() -> None:
    names = [f"kernel{number}" for number in range(MAX_KERNELS + 2)]
    device = Device(Listening(came=Ran(instructions=2), kernels=dict.fromkeys(names, Kernel())), [ROOM], LDS)
    device.handle(LoadCode(b"code"))
    for name in (*names, names[0]):
        device.handle(replace(LAUNCH, kernel=name))
    kernels = device.report([]).kernels
    assert (kernels[names[0]], kernels[names[1]], kernels[FURTHER], len(kernels)) == (4, 2, 4, MAX_KERNELS + 1)


def test_an_access_out_of_bounds_is_told_after_any_number_of_races() -> None:
    races = [Told(kind="race", message=str(number)) for number in range(MAX_TOLD + 3)]
    outside = Told(kind="out_of_bounds", message="outside")
    device, _ = _device(Ran(faults=[*races, outside]))
    device.handle(LoadCode(b"code"))
    device.handle(LAUNCH)
    device.handle(LAUNCH)
    assert device.report([]).faults == [*races[: MAX_TOLD - 2], outside, outside]


def test_a_call_that_has_had_its_time_gets_no_more() -> None:
    device, engine = _device(Ran(instructions=1))
    device.handle(LoadCode(b"code"))
    device.begin(CallOptions(seconds=60.0))
    assert _status(device.handle(LAUNCH)) is Answer.DONE
    assert 0.0 < engine.options[-1].seconds <= 60.0
    device.begin(CallOptions(seconds=0.0))
    for request in (LAUNCH, LoadCode(b"code")):
        assert _status(device.handle(request)) is Answer.UNSUPPORTED
    assert len(engine.launches) == 1
    assert {told.kind for told in device.report([]).refusals} == {"budget"}


def test_variables_of_a_code_object_are_written_and_read_within_their_bounds() -> None:
    device, engine = _device(Ran())
    engine.variables["weights"] = bytearray(16)
    device.handle(LoadCode(b"code"))
    assert _status(device.handle(WriteVariable(0, "weights", 4, b"abcd"))) is Answer.DONE
    answer = device.handle(ReadVariable(0, "weights", 2, 8))
    assert answer is not None and answer[link.HEAD.size :] == b"\0\0abcd\0\0"
    for request in (
        WriteVariable(0, "weights", 13, b"abcd"),
        WriteVariable(1, "weights", 0, b"abcd"),
        ReadVariable(0, "others", 0, 4),
        ReadVariable(0, "weights", 2**60, 4),
    ):
        assert _status(device.handle(request)) is Answer.INVALID
    assert device.report([]).violation is None


def test_what_kernels_read_of_the_hosts_is_told_with_what_lies_at_the_outputs() -> None:
    device, engine = _device(Ran(written=[Range(ROOM.begin, 64)]))
    device.handle(AddRange(ROOM.begin, 128))
    before = engine.begun
    device.begin(CallOptions())
    assert engine.begun == before + 1
    engine.made.extend((7, 16, 8, 12))
    assert device.report([]).host_made == 28
    known, nowhere = Range(ROOM.begin, 64), Range(1 << 40, 64)
    made, lie, left = device.host_made([known, nowhere])
    assert list(made) == [7, 16, 8, 12] and list(lie) == [ROOM.begin, 64] and list(left) == [ROOM.begin, 32]


class _Running:
    """A device in a process of its own, with both of its sockets."""

    def __init__(self, engine: Listening) -> None:
        self.control, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self.control.close()
            try:
                Server(theirs, engine, LDS).run()
            finally:
                os._exit(0)
        theirs.close()
        self.attached = self.ask({"op": "attach"})
        runner, self.heap = wire.receive_descriptors(self.control, 2)
        self.runner = socket.socket(fileno=runner)

    def ask(self, message: wire.Message) -> wire.Message:
        wire.send(self.control, message)
        return wire.receive(self.control)

    def report(self) -> Report:
        return decode(Report, self.ask({"op": "report", "outputs": []}))

    def close(self) -> int:
        """Leave, and return how the process ended."""
        self.control.close()
        self.runner.close()
        os.close(self.heap)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def running() -> Iterator[_Running]:
    device = _Running(Listening(came=Ran(instructions=1), kernels={"scale": KERNEL}))
    yield device
    assert device.close() == 0


def test_a_runner_is_served_beside_the_evaluator(running: _Running) -> None:
    assert running.attached["base"] == arena.HEAP
    running.ask({"op": "begin", "options": encode(CallOptions())})
    running.runner.sendall(link.written(AddRange(arena.HEAP + 512, 64)) + link.written(LoadCode(b"code")))
    assert link.HEAD.unpack(running.runner.recv(link.HEAD.size))[1] == Answer.DONE
    running.runner.recv(4096)
    running.runner.sendall(link.written(LAUNCH) + link.written(RefusedName("hipGraphLaunch")))
    report = running.report()  # what a runner had said before is read first
    assert report.launch_count == 1 and report.violation is None
    (refusal,) = report.refusals
    assert refusal.message.startswith("hipGraphLaunch is not there on the emulated device: do without it")


def test_junk_ends_the_link_to_the_runner_and_not_the_device(running: _Running) -> None:
    running.runner.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert running.report().violation == "bytes that are no frame"
    with suppress(ConnectionResetError):  # it had not read all of it
        assert running.runner.recv(1) == b""
    assert running.report().violation is not None


def test_a_runner_that_stops_in_the_middle_of_a_frame_is_cut_off(
    running: _Running,
) -> None:
    running.runner.sendall(link.written(LAUNCH)[:-3])
    running.runner.shutdown(socket.SHUT_WR)
    assert running.report().launch_count == 0


def test_hostile_frames_leave_the_device_alive() -> None:
    draw = random.Random(11)
    asked = (LoadCode(b"\x7fELF" + bytes(60)), LoadCode(b"code"), LAUNCH, RefusedName("x"))
    memory = (AddRange(arena.HEAP, 64), RemoveRange(arena.HEAP))
    whole = [link.written(one) for one in (*asked, *memory)]
    for _ in range(25):
        device = _Running(Listening(came=Ran(instructions=1), kernels={"scale": KERNEL}))
        data = bytearray()
        for _ in range(draw.randrange(1, 12)):
            frame = bytearray(draw.choice(whole))
            for _ in range(draw.randrange(3)):
                frame[draw.randrange(len(frame))] = draw.randrange(256)
            data += frame
        try:
            device.runner.sendall(data)
            device.runner.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert device.report() is not None
        assert device.close() == 0
