"""H22 harness signalled: the process that opened the channel gets a signal

SIGWINCH does no harm; who may send it may send SIGKILL.

problem: rowsum
device: both
backend: cpp
outcome: load_error|runtime_error
reason: Permission|not permitted|ProcessLookup
"""

import os
import signal
import socket
import struct

import torch.nn as nn

peers = set()
for name in os.listdir("/proc/self/fd"):
    try:
        with socket.socket(fileno=os.dup(int(name))) as channel:
            peers.add(struct.unpack("3i", channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    except OSError:
        continue
peers -= {0, os.getpid()}
if not peers:
    raise ProcessLookupError("the channel does not tell who opened it")
for pid in peers:
    os.kill(pid, signal.SIGWINCH)


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
