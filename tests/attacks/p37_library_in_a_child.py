"""P37 another process: a child multiplies by PyTorch in memory that both have, an own kernel copies the result

A profiler in the runner sees nothing of a child's kernels.

problem: matmul
device: cuda
backend: triton
twin: cuda_library_like_names
outcome: not_own|suspect|runtime_error
reason: accounts|own|clock|busy|pipe
emulated: runtime_error|load_error
"""
# ruff: noqa: N803 - constants of Triton kernels

import ctypes
import subprocess
import sys

import torch
import torch.nn as nn
import triton
import triton.language as tl

HELPER = r"""
import ctypes
import sys
import torch

class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]

def at(address, size):
    storage = torch._C._construct_storage_from_data_pointer(address, torch.device("cuda:0"), 4 * size * size)
    return torch.empty(0, device="cuda:0").set_(storage, 0, (size, size))

library = ctypes.CDLL(sys.argv[1])
torch.zeros(1, device="cuda")
address, size = ctypes.c_void_p(), int(sys.argv[2])
library.cudaIpcOpenMemHandle(ctypes.byref(address), Handle.from_buffer_copy(bytes.fromhex(sys.argv[3])), 1)
a, b, c = (at(address.value + 4 * size * size * number, size) for number in range(3))
while True:
    torch.mm(a, b, out=c)
    torch.cuda.synchronize()
    sys.stdout.write("y")
    sys.stdout.flush()
    if not sys.stdin.read(1):
        break
"""


@triton.jit
def copied(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.load(x + place, mask=place < count), mask=place < count)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = None

    def start(self, size):
        name = f"libcudart.so.{torch.version.cuda.split('.')[0]}"
        library, address, handle = ctypes.CDLL(name), ctypes.c_void_p(), (ctypes.c_ubyte * 64)()
        library.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(12 * size * size))
        library.cudaIpcGetMemHandle(handle, address)
        words = [sys.executable, "-c", HELPER, name, str(size), bytes(handle).hex()]
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.child.stdout.read(1)
        self.places = []
        for number in range(3):
            part = address.value + 4 * size * size * number
            storage = torch._C._construct_storage_from_data_pointer(part, torch.device("cuda:0"), 4 * size * size)
            self.places.append(torch.empty(0, device="cuda:0").set_(storage, 0, (size, size)))

    def forward(self, a, b):
        if self.child is None:
            self.start(a.shape[0])
        for place, given in zip(self.places[:2], (a, b), strict=True):
            place.copy_(given)
        torch.cuda.current_stream().synchronize()
        self.child.stdin.write(b"x")
        self.child.stdout.read(1)
        y = torch.empty_like(a)
        copied[(triton.cdiv(a.numel(), 4096),)](self.places[2], y, a.numel(), BLOCK=4096)
        return y
