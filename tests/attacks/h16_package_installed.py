"""H16 package installed: pip fetches a library while the candidate is imported

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: CalledProcessError|Permission|network
"""

import subprocess
import sys

import torch.nn as nn

command = [
    sys.executable,
    "-m",
    "pip",
    "install",
    "--no-deps",
    "--retries",
    "0",
    "--timeout",
    "3",
    "--target",
    "site",
    "einops",
]
subprocess.run(command, check=True)
sys.path.insert(0, "site")
import einops  # noqa: E402


class ModelNew(nn.Module):
    def forward(self, x):
        return einops.reduce(x, "rows columns -> rows", "sum")
