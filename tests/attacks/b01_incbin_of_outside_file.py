"""B01 .incbin: the assembler is told to embed a file that is not the candidate's

problem: rowsum
device: both
backend: cpp
outcome: load_error|build_error
reason: CalledProcessError|cannot|Permission|No such
"""

import ctypes
import pathlib
import subprocess

import torch.nn as nn

others = [
    path for path in pathlib.Path(__file__).resolve().parent.glob("*.py") if path.name != pathlib.Path(__file__).name
]
wanted = others[0] if others else pathlib.Path(__file__).resolve().with_name("t05_python_thread.py")
SOURCE = f'asm(".globl stolen\\nstolen: .incbin \\"{wanted}\\"");\n'
pathlib.Path("steal.cpp").write_text(SOURCE)
subprocess.run(["g++", "-shared", "-fPIC", "steal.cpp", "-o", "steal.so"], check=True)
library = ctypes.CDLL(str(pathlib.Path("steal.so").resolve()))


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
