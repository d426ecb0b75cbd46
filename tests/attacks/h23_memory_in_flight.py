"""H23 memory in flight: memory files that lie in a socket's queue, in no process

problem: rowsum
device: cpu
backend: cpp
outcome: out_of_memory|limit
reason: memory|limit
options: --memory-gib 2
"""

import os
import socket
import time

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.queue = None

    def forward(self, x):
        if self.queue is None:
            self.queue = socket.socketpair()
            block = bytes(64 << 20)
            for number in range(48):
                file = os.memfd_create(f"hoard_{number}")
                socket.send_fds(self.queue[0], [b"F"], [file])
                os.write(file, block)
                os.close(file)
            time.sleep(1)
        return x.sum(dim=-1)
