"""F05 ignores SIGTERM and hangs: only SIGKILL ends it

problem: rowsum
device: both
backend: cpp
outcome: timeout
reason: end within
options: --run-timeout 2
"""

import signal
import time

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)

    def forward(self, x):
        while True:
            time.sleep(1)
