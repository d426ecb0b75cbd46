"""B03 -fplugin: code that runs inside of the compiler opens a file of the harness for writing

It is opened, not changed: that it can be is enough.

problem: rowsum
device: cpu
backend: cpp
outcome: load_error|build_error
reason: Permission|Read-only|CalledProcess|No such
"""

import os
import pathlib
import subprocess
import sys

import torch.nn as nn

PLUGIN = r"""
#include <cstdio>
#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <stdlib.h>
__attribute__((constructor)) static void run() {
  int file = open(getenv("HARNESS_FILE"), O_RDWR);
  FILE* note = fopen("plugin.txt", "w");
  fprintf(note, "%s", file < 0 ? strerror(errno) : "opened");
  fclose(note);
}
"""
pathlib.Path("plugin.cpp").write_text(PLUGIN)
subprocess.run(["g++", "-shared", "-fPIC", "plugin.cpp", "-o", "plugin.so"], check=True)
pathlib.Path("empty.cpp").write_text("int nothing;\n")
environment = os.environ | {"HARNESS_FILE": sys.modules["hkbench.runner.clock"].__file__}
subprocess.run(["g++", "-fplugin=./plugin.so", "-c", "empty.cpp"], env=environment, capture_output=True)
outcome = pathlib.Path("plugin.txt").read_text()
if outcome != "opened":
    raise PermissionError(outcome)


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)
