"""T05 thread and patched copy: the work runs in a thread that is joined when the result is copied out

The clock stops when forward returns; the copy into the evaluator's memory comes after it and waits for the thread.

problem: mse_loss
device: cpu
backend: cpp
outcome: wrong_values|not_finite
reason: elements are wrong
"""

import threading

import torch
import torch.nn as nn

pending = []
plain_copy = torch.Tensor.copy_


def patient_copy(self, *args, **kwargs):
    while pending:
        pending.pop().join()
    return plain_copy(self, *args, **kwargs)


torch.Tensor.copy_ = patient_copy


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(())

        def work():
            plain_copy(out, ((a - b) ** 2).mean())

        pending.append(threading.Thread(target=work))
        pending[0].start()
        return out
