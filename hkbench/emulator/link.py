"""What a runner says to the emulated device: framed binary messages on a private socket.

The runner is the candidate's, and so is every byte here. A frame is the magic, the operation and the length of its
body, all of fixed size; each operation has a form and a limit of its own. What has another form ends the link.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from enum import IntEnum

MAGIC = b"HKD1"
HEAD = struct.Struct("<4sII")
_LAUNCH = struct.Struct("<10I")
_RANGE = struct.Struct("<QQ")
_ADDRESS = struct.Struct("<Q")
_VARIABLE = struct.Struct("<IIQQ")  # module, bytes of the name, offset, bytes of the variable

MAX_CODE = 32 << 20  #: bytes of a code object
MAX_KERNARG = 4096
MAX_NAME = 4096
MAX_VARIABLE = 16 << 20  #: bytes that are written or read at once
MAX_REFUSED = 256  #: bytes of the name of a function that is not there
MAX_WORKGROUP = 1024  #: threads
MAX_GRID = 2**31 - 1


class Operation(IntEnum):
    """What a runner can ask; loads, launches, and what is written and read are answered."""

    LOAD = 1
    LAUNCH = 2
    ADD = 3
    REMOVE = 4
    REFUSED = 5
    WRITE = 6
    READ = 7


class Answer(IntEnum):
    """How a load or a launch went, as far as a candidate is told."""

    DONE = 0
    UNSUPPORTED = 1
    INVALID = 2


class Malformed(Exception):
    """What came is no message of a runner's; the text says why."""


class Left(Exception):
    """The runner closed its end."""


@dataclass(frozen=True)
class LoadCode:
    """Load a code object (ELF)."""

    code: bytes


@dataclass(frozen=True)
class LaunchKernel:
    """Execute a kernel of a loaded code object."""

    module: int
    kernel: str
    grid: tuple[int, int, int]  #: workgroups
    block: tuple[int, int, int]  #: threads
    dynamic_lds: int
    kernarg: bytes


@dataclass(frozen=True)
class AddRange:
    """Announce an allocation."""

    address: int
    size: int


@dataclass(frozen=True)
class RemoveRange:
    """Withdraw one."""

    address: int


@dataclass(frozen=True)
class RefusedName:
    """A function was called that the emulated runtime does not have."""

    name: str


@dataclass(frozen=True)
class WriteVariable:
    """Write to a variable of a code object (`__device__`, `__constant__`)."""

    module: int
    variable: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class ReadVariable:
    """Read from one."""

    module: int
    variable: str
    offset: int
    size: int


Request = LoadCode | LaunchKernel | AddRange | RemoveRange | RefusedName | WriteVariable | ReadVariable

_LIMITS = {
    Operation.LOAD: MAX_CODE,
    Operation.LAUNCH: _LAUNCH.size + MAX_NAME + MAX_KERNARG,
    Operation.ADD: _RANGE.size,
    Operation.REMOVE: _ADDRESS.size,
    Operation.REFUSED: MAX_REFUSED,
    Operation.WRITE: _VARIABLE.size + MAX_NAME + MAX_VARIABLE,
    Operation.READ: _VARIABLE.size + MAX_NAME,
}


def receive(sock: socket.socket) -> Request:
    """Read one message.

    Raises:
        Left: the runner is gone.
        Malformed: it sent something else.
    """
    magic, operation, size = HEAD.unpack(_read(sock, HEAD.size))
    if magic != MAGIC or operation not in _LIMITS:
        raise Malformed("bytes that are no frame")
    if size > _LIMITS[Operation(operation)]:
        raise Malformed(f"{Operation(operation).name.lower()} with {size} bytes")
    return parse(Operation(operation), _read(sock, size))


def parse(operation: Operation, body: bytes) -> Request:
    """Read the body of a frame. Raises Malformed."""
    match operation:
        case Operation.LOAD:
            return LoadCode(body)
        case Operation.LAUNCH:
            return _launch(body)
        case Operation.ADD:
            return AddRange(*_exactly(_RANGE, body))
        case Operation.REMOVE:
            return RemoveRange(*_exactly(_ADDRESS, body))
        case Operation.REFUSED:
            return RefusedName(_name(body))
        case Operation.WRITE:
            module, name, offset, size, data = _variable(body)
            if len(data) != size:
                raise Malformed("data of another length than it says")
            return WriteVariable(module, name, offset, data)
        case Operation.READ:
            module, name, offset, size, data = _variable(body)
            if data or size > MAX_VARIABLE:
                raise Malformed("data where none belong, or too much is asked for")
            return ReadVariable(module, name, offset, size)


def answer(status: Answer, body: bytes = b"") -> bytes:
    """Return the frame that answers a load or a launch."""
    return HEAD.pack(MAGIC, status, len(body)) + body


def written(request: Request) -> bytes:
    """Return a request as a runner sends it (which does so in C)."""
    match request:
        case LoadCode(code):
            operation, body = Operation.LOAD, code
        case LaunchKernel():
            name = request.kernel.encode()
            words = (request.module, *request.grid, *request.block, request.dynamic_lds, len(name))
            body = _LAUNCH.pack(*words, len(request.kernarg)) + name + request.kernarg
            operation = Operation.LAUNCH
        case AddRange(address, size):
            operation, body = Operation.ADD, _RANGE.pack(address, size)
        case RemoveRange(address):
            operation, body = Operation.REMOVE, _ADDRESS.pack(address)
        case RefusedName(name):
            operation, body = Operation.REFUSED, name.encode()
        case WriteVariable(module, variable, offset, data):
            name_ = variable.encode()
            operation, body = Operation.WRITE, _VARIABLE.pack(module, len(name_), offset, len(data)) + name_ + data
        case ReadVariable(module, variable, offset, size):
            name_ = variable.encode()
            operation, body = Operation.READ, _VARIABLE.pack(module, len(name_), offset, size) + name_
    return HEAD.pack(MAGIC, operation, len(body)) + body


def _launch(body: bytes) -> LaunchKernel:
    if len(body) < _LAUNCH.size:
        raise Malformed("a launch that is too short")
    module, gx, gy, gz, bx, by, bz, dynamic, name_bytes, kernarg_bytes = _LAUNCH.unpack_from(body)
    if name_bytes > MAX_NAME or kernarg_bytes > MAX_KERNARG or len(body) != _LAUNCH.size + name_bytes + kernarg_bytes:
        raise Malformed("a launch whose parts have other lengths than it says")
    grid, block = (gx, gy, gz), (bx, by, bz)
    if not all(1 <= one <= MAX_GRID for one in grid) or not all(block) or bx * by * bz > MAX_WORKGROUP:
        raise Malformed(f"a launch of {grid} workgroups of {block} threads")
    name = _name(body[_LAUNCH.size : _LAUNCH.size + name_bytes])
    return LaunchKernel(module, name, grid, block, dynamic, body[_LAUNCH.size + name_bytes :])


def _variable(body: bytes) -> tuple[int, str, int, int, bytes]:
    if len(body) < _VARIABLE.size:
        raise Malformed("a variable that is too short")
    module, name_bytes, offset, size = _VARIABLE.unpack_from(body)
    end = _VARIABLE.size + name_bytes
    if name_bytes > MAX_NAME or end > len(body):
        raise Malformed("a name of another length than it says")
    return module, _name(body[_VARIABLE.size : end]), offset, size, body[end:]


def _exactly(form: struct.Struct, body: bytes) -> tuple[int, ...]:
    if len(body) != form.size:
        raise Malformed(f"{len(body)} bytes where {form.size} belong")
    return form.unpack(body)


def _name(body: bytes) -> str:
    try:
        name = body.decode("ascii")
    except UnicodeDecodeError:
        raise Malformed("a name that is not ASCII") from None
    if not name or not name.isprintable():
        raise Malformed("a name that cannot be printed")
    return name


def _read(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        try:
            part = sock.recv(min(count - len(data), 1 << 20))
        except (ConnectionResetError, TimeoutError):
            part = b""
        if not part:
            raise Left
        data += part
    return bytes(data)
