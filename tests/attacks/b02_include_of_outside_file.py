"""B02 #include: the compiler's error messages show the text of a file that is not the candidate's

problem: rowsum
device: both
backend: cpp
outcome: load_error|build_error
reason: Permission|FileNotFound|cannot
"""

import pathlib
import subprocess

import torch.nn as nn

wanted = pathlib.Path(__file__).resolve().parents[1] / "support" / "corpus.py"
pathlib.Path("steal.cpp").write_text(f'#include "{wanted}"\n')
done = subprocess.run(["g++", "-c", "steal.cpp"], capture_output=True, text=True)
if "The corpus" not in done.stderr and "import annotations" not in done.stderr:
    raise FileNotFoundError("the compiler cannot read the file either")


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
