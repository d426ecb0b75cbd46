"""A search over a model's edits, with recorded replies: what each reply was, which way its code was found, a resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import doors

from hkbench.llm.replies import replies_file
from hkbench.records import ExtractionRule, Reply, ReplyReceived, RunClosed, VerdictReached
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run

NAME = "1_Turn"
#: Without headers of PyTorch it is built in a moment. Each edit but the last makes it three times slower, so that none
#: is a new best, which would be measured once more.
START = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

TIMES = 100
CPP = """
#include <Python.h>
static PyObject* turn(PyObject*, PyObject* arguments) {
  unsigned long long from, to;
  long long count, times;
  if (!PyArg_ParseTuple(arguments, "KKLL", &from, &to, &count, &times)) return nullptr;
  // how often, for one
  times *= 1;
  // how often, for another
  times *= 1L;
  // how often, for a third
  times *= 1LL;
  volatile float* y = (float*)to;
  for (long long k = 0; k < times; ++k)
    for (long long i = 0; i < count; ++i) y[i] = ((const float*)from)[i] * 2.0f + 1.0f;
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"turn", turn, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "turn", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_turn() { return PyModule_Create(&module); }
"""
turn = load_inline(name="turn", cpp_sources=CPP, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        turn.turn(x.data_ptr(), y.data_ptr(), x.numel(), TIMES)
        return y
'''
APPLIES = """More often is more.

```diff
--- a/code.py
+++ b/code.py
@@ -12,4 +12,4 @@
   if (!PyArg_ParseTuple(arguments, "KKLL", &from, &to, &count, &times)) return nullptr;
   // how often, for one
-  times *= 1;
+  times *= 3;
   // how often, for another
```
"""
MOVED = """```diff
@@ -61,9 +70,2 @@ wrong numbers, and blanks at the ends of lines
   // how often, for another~
-  times *= 1L;~
+  times *= 3L;
   // how often, for a third
```
""".replace("~", "  ")
WHOLE = f"""```diff
@@ -10,3 +10,3 @@
-  times *= no_such_number;
+  times *= 3LL;
```

If that does not apply, here is the file.

```python
{START.replace("1LL;", "3LL;")}```
"""
WORDS = "The loop could be unrolled, and the compiler does that already. I would leave it as it is."
REFUSAL = "I'm sorry, but I can't help with that."
FASTER = """```diff
-TIMES = 100
+TIMES = 1
```
"""
REPLIES = {2: APPLIES, 3: MOVED, 4: WHOLE, 5: WORDS, 6: REFUSAL, 7: FASTER}
WAYS = {
    1: ExtractionRule.PROPOSED,
    2: ExtractionRule.APPLIED_DIFF,
    3: ExtractionRule.APPLIED_DIFF,
    4: ExtractionRule.LAST_MODEL_NEW,
    5: ExtractionRule.NONE,
    6: ExtractionRule.NONE,
    7: ExtractionRule.APPLIED_DIFF,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a problem with a kernel that does its work 100 times over, and a file of replies to it."""
    made = tmp_path_factory.mktemp("replies")
    path = doors.problem(made / "problems", NAME, 1, size=64)
    path.write_text(f"{path.read_text()}\n\nSTART = {START!r}\n")
    calls = {
        f"{NAME}/attempt_{attempt}/sample_1": Reply(model="someone", text=text, finish_reason="stop")
        for attempt, text in REPLIES.items()
    }
    (made / "replies.toml").write_text(replies_file({"cpp": calls}))
    return made


def words(folder: Path) -> tuple[object, ...]:
    # The model alone edits: which edits are rules' turns on times, and a reply is recorded for one attempt.
    search = ("--strategy", "graph", "--moves", "model", "--attempts", len(WAYS), "--whole-budget")
    given = ("--problems", folder / "problems", "--replay", folder / "replies.toml", "--results", folder / "results")
    return (1, *search, *given, "--device", "cpu", "--no-profile", *doors.QUICK)


@pytest.mark.slow
def test_each_reply_goes_its_way_and_none_is_asked_for_twice(folder: Path) -> None:
    process = doors.start("run_batch", *words(folder))
    results = folder / "results"
    doors.wait_for(results / "journal.jsonl", f'"key":{{"problem":"{NAME}","attempt":3,"sample":1}},"model"', process)
    process.kill()
    process.communicate()
    done = doors.call("run_batch", *words(folder))
    assert done.returncode == 0, done.stdout + done.stderr

    events = doors.events(results)
    assert isinstance(events[-1], RunClosed) and events[-1].complete
    asked = [event.key.attempt for event in events if isinstance(event, ReplyReceived)]
    assert asked == sorted(REPLIES), "each once, in order, for all that was killed"
    judged = [event.key.attempt for event in events if isinstance(event, VerdictReached)]
    assert judged == sorted(WAYS)

    paths = RunPaths(results).problem(NAME)
    found = {n: json.loads(paths.sample(n, 1).extraction.read_text()) for n in WAYS}
    assert {n: one["rule"] for n, one in found.items()} == WAYS
    assert "does not apply" in found[4]["note"] and "no_such_number" in found[4]["note"]

    [problem] = read_run(RunPaths(results)).problems
    assert [problem.samples[n - 1].correct for n in WAYS] == [True, True, True, True, False, False, True]
    diffs = {n: paths.sample(n, 1).diff for n in WAYS}
    assert [n for n, path in diffs.items() if path.exists()] == [2, 3, 4, 7]
    assert "+  times *= 3;" in diffs[2].read_text()
    assert "+  times *= 3L;" in diffs[3].read_text()
    assert "+  times *= 3LL;" in diffs[4].read_text()
    assert "+TIMES = 1\n" in diffs[7].read_text()

    story = paths.trace.read_text()
    best = json.loads(RunPaths(results).summary_json.read_text())["problems"][0]["best_attempt"]
    assert f"The best kernel is that of attempt {best}, " in story
    rows = {int(row[2:].split(" |")[0]): row for row in story.splitlines() if row.startswith("| ") and row[2].isdigit()}
    assert all(f"| {way}" in rows[n] for n, way in WAYS.items())
    assert "does not apply" in rows[4]
    again = doors.call("run_batch", *words(folder))
    assert again.returncode == 0
    assert [event.key.attempt for event in doors.events(results) if isinstance(event, ReplyReceived)] == asked
