"""F02 dies at construction: the process aborts

problem: rowsum
device: both
backend: cpp
outcome: crash
reason: SIGABRT
"""

import os

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        os.abort()
