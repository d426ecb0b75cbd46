"""H19 network: a connection to a public address is prepared

Connecting a datagram socket sends nothing; it fails where there is no way out. The address is one for documents.

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|unreachable|OSError|not permitted
"""

import socket

import torch.nn as nn

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way_out:
    way_out.connect(("192.0.2.1", 9))


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
