"""T05 late write: a thread writes the answer into the evaluator's memory after the call was answered

The runner's view of the outbox is found among the live objects.

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_finite|not_repeatable
reason: elements are wrong
"""

import gc
import threading
import time

import torch
import torch.nn as nn


def outbox():
    for found in gc.get_objects():
        if type(found).__name__ == "Runner" and hasattr(found, "_results"):
            return found._results.places["output"]
    raise LookupError("no runner among the objects of this process")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = None

    def forward(self, x):
        self.place = outbox() if self.place is None else self.place

        def work():
            time.sleep(0.0003)
            self.place.copy_(x.sum(dim=-1))

        threading.Thread(target=work, daemon=True).start()
        return torch.zeros(x.shape[0])
