"""The gate of a GPU's calls: a stream that waits until the evaluator releases the inputs, and says when it has ended.

Evaluator and runner share a page of device memory for it. The runner's stream waits on `GO`, which the evaluator's
stream writes when the inputs are in place; the evaluator's stream waits on `DONE`. Nothing of it passes through the
host, and no kernel spins meanwhile (CUDA driver API, "Stream Memory Operations"; HIP API, "Stream Memory Operations").
"""

from __future__ import annotations

from ctypes import c_uint, c_uint32, c_uint64, c_void_p

import torch

from hkbench.protocol import device_memory

GO = 0  #: bytes from the start of the page: 32 bits, the number of the call whose inputs are released
DONE = 256  #: likewise: the number of the call whose outputs are ready
PLACES = 512  #: where the outputs lie: for each the address in the runner, and its strides in elements, 64 bits each
MAX_DIMS = 8  #: of an output
PLACE_SIZE = 8 * (1 + MAX_DIMS)
SIZE = 1 << 16
MAX_OUTPUTS = (SIZE - PLACES) // PLACE_SIZE

_AT_LEAST = 0  #: CU_STREAM_WAIT_VALUE_GEQ, hipStreamWaitValueGte
_ALL_BITS = 0xFFFFFFFF


class StreamOperations:
    """Waits and writes that a stream does in its order. Every failure is a RuntimeError that names the function."""

    def __init__(self) -> None:
        self._driver = device_memory.driver()
        self._cuda = torch.version.hip is None

    def wait(self, stream: int, address: int, value: int) -> None:
        """Have a stream wait until the 32 bits at `address` are at least `value`."""
        arguments = c_void_p(stream), c_void_p(address), c_uint32(value), c_uint(_AT_LEAST)
        if self._cuda:
            self._driver.call("StreamWaitValue32_v2", *arguments)
        else:
            self._driver.call("StreamWaitValue32", *arguments, c_uint32(_ALL_BITS))

    def write(self, stream: int, address: int, value: int) -> None:
        """Have a stream write 32 bits, once all that it was given before has ended."""
        name = "StreamWriteValue32_v2" if self._cuda else "StreamWriteValue32"
        self._driver.call(name, c_void_p(stream), c_void_p(address), c_uint32(value), c_uint(0))

    def write_long(self, stream: int, address: int, value: int) -> None:
        """Have a stream write 64 bits, once all that it was given before has ended."""
        name = "StreamWriteValue64_v2" if self._cuda else "StreamWriteValue64"
        self._driver.call(name, c_void_p(stream), c_void_p(address), c_uint64(value), c_uint(0))


class Gate:
    """The runner's end."""

    def __init__(self, page: torch.Tensor) -> None:
        self._operations = StreamOperations()
        self.page = page
        self._address = page.data_ptr()

    def hold(self, number: int) -> None:
        """Have the current stream wait for the inputs of a call."""
        self._operations.wait(self._stream(), self._address + GO, number)

    def done(self, number: int, outputs: list[torch.Tensor]) -> None:
        """Have the current stream say where the outputs lie, and that they are ready.

        As many writes for one layout of an output as for any other, so that they take as long.
        """
        stream = self._stream()
        for index, output in enumerate(outputs):
            place = self._address + PLACES + PLACE_SIZE * index
            for number_of, value in enumerate((output.data_ptr(), *output.stride())):
                self._operations.write_long(stream, place + 8 * number_of, value)
        self._operations.write(stream, self._address + DONE, number)

    def _stream(self) -> int:
        return int(torch.cuda.current_stream(self.page.device).cuda_stream)
