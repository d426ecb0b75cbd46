"""What the second prompt says of a first attempt that failed: the whole way, with real compilers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import doors
from support.compilers import hip_or_skip, needs_gcc
from support.kittens import checkout, kittens_or_skip

from hkbench.prompts import load_prompts, reflect_on
from hkbench.records import Verdict
from hkbench.store.layout import RunPaths
from hkbench.toolchain.hipkittens import Dialect

BUILD, SYNTAX, LOAD, AGAIN = "1_Build", "2_Syntax", "3_Load", "4_Again"
NOTHING = "I would rather not."  # a reply without code: its verdict takes no time

SOURCE = """#include <torch/types.h>
#include <torch/csrc/utils/pybind.h>
struct plan { int rows; };

at::Tensor forward(const at::Tensor& x) {
  tile<64> as = x;
  float* p = x.data_ptr<float>();
  plan q; q.columns = 3;
  queue<int> waiting;
  int rows = 3
  int more = 4;
  return reduce(p) + reduce(p + 1);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
"""

CANDIDATE = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""{source}"""

extension = load_inline(name="many", {words})


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.forward(x)
'''

UNCLOSED = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x:\n        return x\n"
OTHER_ARGUMENTS = (
    "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, size):\n        super().__init__()\n"
)


@dataclass(frozen=True)
class Told:
    prompt: str  #: of attempt 2
    verdict: Verdict
    later: tuple[str, ...]  #: the prompts of attempts 3 and 4


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """A run of four problems; each first attempt fails in its own way, and one problem takes four attempts."""
    root = tmp_path_factory.mktemp("feedback")
    many = CANDIDATE.format(source=SOURCE, words="cpp_sources=SOURCE, no_implicit_headers=True")
    for number, (name, code) in enumerate(((BUILD, many), (SYNTAX, UNCLOSED), (LOAD, OTHER_ARGUMENTS)), 1):
        doors.problem(root / "problems", name, number)
        doors.reply(root / "replies", name, 1, 1, doors.fenced(code))
        doors.reply(root / "replies", name, 2, 1, NOTHING)
    doors.problem(root / "problems", AGAIN, 4)
    fourth = (doors.fenced(doors.slow(4)), doors.fenced(doors.raising("lost")), doors.fenced(doors.slow(4)), NOTHING)
    for attempt, reply in enumerate(fourth, 1):
        doors.reply(root / "replies", AGAIN, attempt, 1, reply)
    for name in (BUILD, SYNTAX, LOAD):
        for attempt in (3, 4):
            doors.reply(root / "replies", name, attempt, 1, NOTHING)
    words = (1, 4, "--problems", root / "problems", "--replay", root / "replies", "--device", "cpu")
    run = root / "run"
    done = doors.call("run_batch", *words, "--samples", 1, "--attempts", 4, "--results", run, *doors.QUICK)
    assert done.returncode == 0, done.stderr
    found = {}
    for name in (BUILD, SYNTAX, LOAD, AGAIN):
        paths = RunPaths(run).problem(name)
        verdict = Verdict.model_validate_json(paths.sample(1, 1).result.read_text())
        later = tuple(paths.prompt(attempt).read_text() for attempt in (3, 4) if paths.prompt(attempt).exists())
        found[name] = Told(paths.prompt(2).read_text(), verdict, later)
    return found


@needs_gcc
def test_every_cause_of_a_failed_build_is_told_with_its_line_and_hint(told: dict[str, Told]) -> None:
    said = told[BUILD].prompt.partition("It failed at the stage")[2]
    for words in ("'tile'", "expected ',' or ';'", "'columns'", "'queue'", "'reduce'"):
        assert len(re.findall(rf"error: .*{re.escape(words)}", said.partition("What the tool said")[2])) == 1, words
    assert "  8 |   plan q; q.columns = 3;" in said
    assert "'as' was not declared" not in said
    hints = json.loads((doors.ROOT / "prompts" / "config.json").read_text())["reflection_hints"]
    for key in ("syntax", "no_member", "undeclared"):
        assert re.search(rf"^- main\.cpp:\d+: {re.escape(hints[f'build_error.{key}'][0])}$", said, re.MULTILINE), key


def test_a_syntax_error_is_told_with_its_line(told: dict[str, Told]) -> None:
    assert "    5 |     def forward(self, x:\n      |                ^\n" in told[SYNTAX].prompt


def test_a_failure_to_load_shows_no_frame_of_the_evaluator(told: dict[str, Told]) -> None:
    failure = told[LOAD].verdict.failure
    assert failure is not None and failure.kind == "load_error"
    assert "size" in failure.message
    assert "hkbench" not in told[LOAD].prompt.partition("## Your attempt 1")[2]


def test_later_prompts_say_what_the_attempts_before_achieved(told: dict[str, Told]) -> None:
    assert "attempts so far" not in told[AGAIN].prompt
    third, fourth = told[AGAIN].later
    assert re.search(r"^- attempt 1: correct, speed-up 0\.\d+x$", third, re.MULTILINE)
    assert "- attempt 2: runtime_error at the stage run; it broke what worked in attempt 1\n" in third
    assert doors.raising("lost") in third and doors.slow(4) in third  # the last kernel, and the best one
    assert "This is the code of attempt 1 again" in fourth
    assert fourth.count(doors.slow(4)) == 1


@pytest.mark.hipcc
def test_a_build_without_the_gpu_tells_as_much(tmp_path: Path) -> None:
    hip_or_skip("no build was made")
    kernel = (
        "#include <hip/hip_runtime.h>\nstruct tile { float x; };\n"
        "__global__ void k(const float* a, float* b, int n) {\n    tile t;\n    b[0] = t.total();\n"
        "    b[1] = warp::sum(a, n);\n    b[2] = gelu(a[1]);\n    a[3] = 1.0f;\n    __shared__ float line[n];\n}\n"
    )
    code = tmp_path / "code.py"
    words = 'cpp_sources="", cuda_sources=SOURCE, no_implicit_headers=True'
    code.write_text(CANDIDATE.format(source=kernel, words=words))
    problem = doors.problem(tmp_path, "1_One", 1)
    result = tmp_path / "result.json"
    options = ("--backend", "hip", "--build-only", "--arch", "gfx942", "--output", result)
    done = doors.call("eval", "--code", code, "--problem", problem, *options)
    assert done.returncode == 2, done.stderr
    failure = Verdict.model_validate_json(result.read_text()).failure
    assert failure is not None and failure.detail is not None
    for words in ("'total'", "'warp'", "'gelu'", "variable length array", "not assignable"):
        assert words in failure.detail, failure.detail
    assert failure.detail.rstrip().endswith("[5 errors]")


KITTENS = """import torch
import torch.nn as nn
from hipkittens_build import build

HIP = r\"\"\"
#include "kittens.cuh"
using namespace kittens;
using G = kittens::group<4>;
using tensor = gl<bf16, -1, -1, -1, -1>;
using sums = gl<float, -1, -1, -1, -1>;
struct globals { tensor a, b; sums c; };

__global__ __launch_bounds__(256, 2) void product(const globals g) {
    extern __shared__ alignment_dummy __shm[];
    shared_allocator al((int*)&__shm[0]);
    st_bf<64, 64> &as = al.allocate<st_bf<64, 64>>();
    st_bf<64, 64> &bs = al.allocate<st_bf<64, 64>>();
    rt_bf<64, 64, row_l, rt_16x32_s> a, b;
    rt_fl<64, 64> c;
    zero(c);
    for (int k = 0; k < 4; k++) {
        G::load(as, g.a, {0, 0, 0, k});
        G::load(bs, g.b, {0, 0, 0, k});
        G::sync(0);
        warp::load(a, as);
        warp::load(b, bs);
        mma_ABt(c, a, b, c);
        mma_ABt(c, b, a, c);
        G::sync(0);
    }
    rv_fl<64> bias;
    warp::load(bias, g.c, {0, 0, 0, 0});
    softplus(c, c);
    warp::store(g.c, c, {0, 0, 0, 0});
}

void dispatch(const globals &g, hipStream_t stream) { product<<<1, 256, 65536, stream>>>(g); }
\"\"\"

extension = build("many", HIP, {"dispatch": ["a", "b", "c"]})


class ModelNew(nn.Module):
    def forward(self, x):
        return x
"""


@pytest.mark.hipcc
def test_a_kernel_of_hipkittens_is_told_all_its_mistakes_with_the_hint_of_each(tmp_path: Path) -> None:
    hip_or_skip("no build was made")
    kittens_or_skip(Dialect.CDNA4, "no build was made")
    code, result = tmp_path / "code.py", tmp_path / "result.json"
    code.write_text(KITTENS)
    problem = doors.problem(tmp_path, "1_One", 1)
    options = ("--backend", "hipkittens", "--build-only", "--arch", "gfx950", "--output", result)
    with checkout(Dialect.CDNA4):
        done = doors.call("eval", "--code", code, "--problem", problem, *options)
    assert done.returncode == 2, done.stderr
    verdict = Verdict.model_validate_json(result.read_text())
    book = load_prompts(doors.ROOT / "prompts")
    reflection = reflect_on(verdict, KITTENS, 1, book, "hipkittens")
    assert reflection.detail is not None
    for cause in ("'st_bf'", "'sync'", "'warp'", "'mma_ABt'", "'rv_fl'", "'softplus'"):
        assert len(re.findall(rf"error: .*{cause}", reflection.detail)) == 1, reflection.detail
    classes = ("shape_argument", "group_member", "unknown_namespace_warp", "accumulator_layout", "tile_function")
    for hint in book.class_hints(classes, "hipkittens"):
        assert [said for said in reflection.hints if said.startswith("hip_source:") and said.endswith(hint)]
