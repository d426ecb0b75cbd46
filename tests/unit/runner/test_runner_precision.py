"""Settings that lower the precision are seen at PyTorch's setters, with the candidate's line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CANDIDATE = """import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cuda.matmul.allow_tf32 = False



def forward():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    torch.set_float32_matmul_precision("medium")
    torch.set_float32_matmul_precision(before)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=True):
        pass
    torch.backends.cuda.matmul.allow_fp16_accumulation = True
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pass
"""
RUN = """
import json, sys
import torch
from hkbench.runner.load import load_file
from hkbench.runner.precision import PrecisionWatch

torch.backends.cudnn.allow_tf32 = False
watch = PrecisionWatch(sys.argv[1])
module = load_file("candidate", sys.argv[1], {})
told = [watch.take()]
module.forward()
told += [watch.take(), watch.take()]
module.forward()
told.append(watch.take())
print(json.dumps(told))
"""


def test_each_setting_is_told_once_with_its_line_and_what_raises_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(CANDIDATE)
    done = subprocess.run([sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, check=True)
    at_import, first, none, again = json.loads(done.stdout)
    assert at_import == [{"flag": "torch.backends.cuda.matmul.allow_tf32", "value": "True", "line": 3}]
    found = {one["flag"]: (one["value"], one["line"]) for one in first}
    assert found["torch.set_float32_matmul_precision"] == ("medium", 11)
    assert found["torch.backends.cudnn.allow_tf32"] == ("True", 13)
    assert found["torch.backends.cuda.matmul.allow_fp16_accumulation"] == ("True", 15)
    assert found["torch.autocast"] == ("cpu", 16)
    assert len(found) == 4 and none == again == []
