"""F07 hangs: the import never ends

problem: rowsum
device: both
backend: cpp
outcome: timeout
reason: end within
options: --load-timeout 3
"""

import time

import torch.nn as nn

time.sleep(600)


class ModelNew(nn.Module):
    pass
