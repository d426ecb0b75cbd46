"""Small problem and candidate files, written where a test wants them."""

from __future__ import annotations

import textwrap
from pathlib import Path

from hkbench.problems import load_problem
from hkbench.records import Problem

#: y = 2 x + 1 on a small matrix.
AFFINE = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return 2.0 * x + 1.0

    def get_inputs():
        return [torch.randn(16, 24)]

    def get_init_inputs():
        return []
"""

#: The same, with sizes that may change and three further shapes of its own.
AFFINE_OF_SIZES = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return 2.0 * x + 1.0

    rows = 16
    columns = 24

    SHAPES = [{"rows": 1}, {"rows": 7, "columns": 33}, {"columns": 100}]

    def get_inputs():
        return [torch.randn(rows, columns)]

    def get_init_inputs():
        return []
"""

#: A linear layer: parameters, and a constructor with arguments.
LINEAR = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.linear = nn.Linear(width, out)

        def forward(self, x):
            return self.linear(x)

    def get_inputs():
        return [torch.randn(8, 12)]

    def get_init_inputs():
        return [12, 5]
"""

#: A floating and an integer output, as a tuple.
TOP = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return torch.topk(x, 3, dim=-1)

    def get_inputs():
        return [torch.randn(16, 40)]

    def get_init_inputs():
        return []
"""

HEAD = "import os\nimport sys\nimport torch\nimport torch.nn as nn\n"


def problem_file(folder: Path, source: str, name: str = "1_Small") -> Problem:
    """Return the problem in `source` as a loaded file of `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(source))
    return load_problem(path)


def problem_of_forward(folder: Path, forward: str, inputs: str) -> Problem:
    """Write a problem without parameters. `forward`: its arguments and what it returns, "x, y: x + y"."""
    arguments, _, returned = forward.partition(":")
    source = (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
        f"class Model(nn.Module):\n    def forward(self, {arguments}):\n"
        f"        return {returned}\n"
        f"def get_inputs():\n    return [{inputs}]\n"
        "def get_init_inputs():\n    return []\n"
    )
    return problem_file(folder, source)


def candidate_file(folder: Path, source: str) -> Path:
    """`source`, with the usual imports before it, as `folder/code.py`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "code.py"
    path.write_text(HEAD + textwrap.dedent(source))
    return path


def forward(body: str, before: str = "") -> str:
    """Return a candidate for `AFFINE` whose forward is `body`; `before` goes above the class."""
    text = textwrap.dedent(before) + "\nclass ModelNew(nn.Module):\n    def forward(self, x):\n"
    return text + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"
