"""F08 deep message: forward returns a number, and the answer that is said of it is nested 900 deep

problem: scale
device: cpu
backend: cpp
outcome: protocol
reason: nested
"""

import sys

import torch.nn as nn

wire = sys.modules["hkbench.protocol.wire"]
send = wire.send


def sent(sock, message, *rest):
    if "leaves" in message:
        deep = []
        for _ in range(900):
            deep = [deep]
        message = {**message, "device_error": deep}
    send(sock, message, *rest)


wire.send = sent


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
