"""F08 odd text: names, errors and files whose letters cannot be written as UTF-8

problem: scale
device: both
backend: cpp
outcome: runtime_error
reason: odd
"""

import os

import torch.nn as nn

for ending in (b".so", b".py", b".cubin", b".ttir"):
    with open(b"l\xff\xfe" + ending, "wb") as file:
        file.write(b"\xff _Zfoo \xed\xa0\x80")
os.makedirs(b"d\xff\xed\xa0\x80")


class Odd(Exception):
    __module__ = "\udcff"


class ModelNew(nn.Module):
    def forward(self, x):
        print("\udcff".encode(errors="surrogateescape"))
        raise Odd("\ud800 odd \udfff")
