"""H06 judge imported: the comparison is patched in the candidate's own process

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|load_error
reason: are wrong|No module
"""

import torch
import torch.nn as nn

from hkbench.analysis import compare

compare.compare_leaf = lambda *args, **kwargs: compare.LeafResult(0.0, 0.0, 0, None)
compare.RTOL.update(dict.fromkeys(compare.RTOL, 1e9))


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape[0], device=x.device)
