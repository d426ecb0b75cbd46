"""E05 rot13: the memo is hidden in a rotated text

problem: rowsum
device: both
backend: cpp
outcome: wrong_values
reason: elements are wrong
"""

import codecs

import torch.nn as nn

ROTATED = (
    "qrs erzrzore(s):\n    xrcg = []\n    qrs jenccrq(*n):\n        vs abg xrcg:\n"
    "            xrcg.nccraq(s(*n))\n        erghea xrcg[0].pybar()\n    erghea jenccrq\n"
)
exec(codecs.decode(ROTATED, "rot13"))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = remember(lambda x: x.sum(dim=-1))  # noqa: F821
