"""H15 across samples: a note is left in a shared folder, and those of earlier candidates are looked for

In a private folder a note may be left, but nothing of anybody else lies there.

problem: rowsum
device: both
backend: cpp
outcome: load_error
reason: PermissionError|Read-only|nothing but its own notes
"""

import os
import pathlib
import sys
import tempfile

import torch.nn as nn

places = [pathlib.Path(__file__), pathlib.Path.cwd(), pathlib.Path(tempfile.gettempdir()), *map(pathlib.Path, sys.path)]
# A place that is mounted below /tmp leaves its empty name in /var/tmp, which is the same folder.
own = {path.name for place in places for path in (place, *place.parents)}
foreign = []
for folder in ("/var/tmp", "/dev/shm", "/tmp"):
    note = pathlib.Path(folder, f"hkbench_note_{os.getpid()}")
    note.write_text("the answer")
    for found in pathlib.Path(folder).iterdir():
        if found != note and found.name not in own:
            foreign.append(str(found))
    note.unlink()
if not foreign:
    raise FileNotFoundError("nothing but its own notes can be seen")


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
