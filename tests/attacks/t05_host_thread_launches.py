"""T05 host thread: a Python thread launches the kernel after forward has returned

problem: matmul
device: cuda
backend: cuda
outcome: not_finite|suspect|wrong_values
reason: are wrong|the evaluator's clock|outside of the current stream
"""

import threading
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)

        def work():
            time.sleep(0.0002)
            torch.mm(a, b, out=out)

        threading.Thread(target=work, daemon=True).start()
        return out
