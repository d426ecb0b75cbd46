"""N04 interposer: the channel is replaced by a pipe to a thread that changes the times

problem: rowsum
device: cpu
backend: cpp
outcome: suspect|timeout
reason: the evaluator's clock saw .* more per call|did not end within
options: --load-timeout 10
"""

import ctypes
import json
import os
import pathlib
import socket
import struct
import subprocess
import threading

import torch
import torch.nn as nn


def built(source, *flags):
    """The C++ source as a loaded library, made in the current folder."""
    pathlib.Path("kernel.cpp").write_text(source)
    command = ["g++", "-O2", "-shared", "-fPIC", *flags, "kernel.cpp", "-o", "kernel.so", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(pathlib.Path("kernel.so").resolve()))


KERNEL = r"""
extern "C" void rowsum(const float* x, float* y, long rows, long columns) {
  for (long i = 0; i < rows; ++i) {
    float lanes[16] = {0};
    for (long j = 0; j < columns; j += 16)
      for (long k = 0; k < 16; ++k) lanes[k] += x[i * columns + j + k];
    float sum = 0;
    for (float lane : lanes) sum += lane;
    y[i] = sum;
  }
}
"""


def rowsum(library, x):
    y = torch.empty(x.shape[0])
    library.rowsum(
        ctypes.c_void_p(x.data_ptr()),
        ctypes.c_void_p(y.data_ptr()),
        ctypes.c_long(x.shape[0]),
        ctypes.c_long(x.shape[1]),
    )
    return y


def relay(source, target, change):
    while True:
        head = source.recv(8, socket.MSG_WAITALL)
        if not head:
            os._exit(0)
        body = source.recv(struct.unpack(">4sI", head)[1], socket.MSG_WAITALL)
        if change:
            message = json.loads(body)
            for name in message.keys() & {"seconds", "idle_seconds"}:
                message[name] /= 10
            body = json.dumps(message).encode()
        target.sendall(struct.pack(">4sI", b"HKW1", len(body)) + body)


def interpose(number):
    ours, theirs = socket.socketpair()
    real = socket.socket(fileno=os.dup(number))
    if real.type != socket.SOCK_STREAM:
        return
    os.dup2(theirs.fileno(), number)
    threading.Thread(target=relay, args=(real, ours, False), daemon=True).start()
    threading.Thread(target=relay, args=(ours, real, True), daemon=True).start()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = built(KERNEL, "-O3", "-march=native")
        for name in sorted(os.listdir("/proc/self/fd"), key=int):
            path = pathlib.Path(f"/proc/self/fd/{name}")
            if path.is_symlink() and str(path.readlink()).startswith("socket:"):
                interpose(int(name))

    def forward(self, x):
        return rowsum(self.library, x)
