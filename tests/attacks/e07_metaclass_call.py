"""E07 metaclass: the class makes instances that answer from memory

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch.nn as nn


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        kept, real = [], made.forward

        def forward(x):
            if not kept:
                kept.append(real(x))
            return kept[0].clone()

        made.forward = forward
        return made


class ModelNew(nn.Module, metaclass=Meta):
    def forward(self, x):
        return x.sum(dim=-1)
