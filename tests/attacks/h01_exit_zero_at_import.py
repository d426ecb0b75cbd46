"""H01 exit code: the process ends successfully while it is imported

problem: rowsum
device: both
backend: cpp
outcome: crash|load_error
reason: left|exit
"""

import os

import torch.nn as nn

os._exit(0)


class ModelNew(nn.Module):
    pass
