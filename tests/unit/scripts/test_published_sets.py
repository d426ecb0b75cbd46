"""scripts/published_sets.py on checkouts that a test writes: what is read, counted and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import doors

from hkbench.errors import InputMissing, UsageError
from hkbench.llm.extract import extract
from hkbench.llm.replies import replies_in_file
from hkbench.problems.select import find_problems
from scripts.published_sets import SETS, Claim, prepare, problems_folder, read_claims, replies_path


def entry(level: int, number: int, reference: str, code: str | None, speedup: float | None) -> dict[str, Any]:
    scores = {"score_default": speedup, "score_torch_compile_default": None if speedup is None else speedup / 2}
    return {"level_id": level, "task_id": number, "ref_code": reference, "custom_code": code, **scores}


def kernelbench(root: Path) -> dict[tuple[int, int], Path]:
    files = {}
    for level, number, name in ((1, 1, "One"), (1, 2, "Two"), (2, 1, "Other")):
        path = root / "KernelBench" / f"level{level}" / f"{number}_{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(doors.PROBLEM.format(size=8, work=2, addend=level + number))
        files[level, number] = path
    return files


@pytest.fixture
def cuda_l1(tmp_path: Path) -> Path:
    files = kernelbench(tmp_path / "kb")
    entries = [
        entry(1, 1, files[1, 1].read_text(), doors.fast(2) + '\n# ```\n"""\n\'\'\'\n"""\n', 17.5),
        entry(1, 2, files[1, 2].read_text(), "None", 1.5),
        entry(2, 1, "# a comment more\n" + files[2, 1].read_text(), None, None),
    ]
    path = tmp_path / "l1" / "optimized_cuda_code" / "h100.json"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in entries))
    return path


def test_cuda_l1(cuda_l1: Path, tmp_path: Path) -> None:
    tasks = prepare(SETS["cuda-l1"], cuda_l1.parents[1], tmp_path / "kb", tmp_path / "out")
    assert [(task.name, task.has_code) for task in tasks] == [
        ("1001_One", True), ("1002_Two", False), ("2001_Other", False),
    ]  # fmt: skip
    assert [task.claim for task in tasks] == [Claim(True, 17.5, 8.75), Claim(True, 1.5, 0.75), Claim(False, None, None)]
    published, read = read_claims(tmp_path / "out")
    assert (published.title, read) == ("CUDA-L1", tasks)
    (problem,) = find_problems(problems_folder(tmp_path / "out"))
    assert problem.name == "1001_One"
    replies = replies_in_file(replies_path(tmp_path / "out"), "cuda")
    code = json.loads(cuda_l1.read_text().splitlines()[0])["custom_code"]
    assert [extract(reply.text, None).source for reply in replies.values()] == [code]


def test_a_file_alone_is_a_set_too(cuda_l1: Path, tmp_path: Path) -> None:
    assert len(prepare(SETS["cuda-l1"], cuda_l1, tmp_path / "kb", tmp_path / "out")) == 3


def test_another_version_of_a_problem(cuda_l1: Path, tmp_path: Path) -> None:
    changed = tmp_path / "kb" / "KernelBench" / "level1" / "2_Two.py"
    changed.write_text(changed.read_text().replace("SIZE = 8", "SIZE = 16"))
    with pytest.raises(UsageError, match="2_Two"):
        prepare(SETS["cuda-l1"], cuda_l1, tmp_path / "kb", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_adaexplore(tmp_path: Path) -> None:
    kernelbench(tmp_path / "kb")
    root = tmp_path / "ada" / "results" / "saved_kernels" / "kernelbench"
    (root / "level2").mkdir(parents=True)
    (root / "level2" / "1.py").write_text(doors.fast(3))
    told = {"correctness": True, "runtime_stats": {"fast_p": 2.5}}
    (root / "metrics_level2.json").write_text(json.dumps({"problems": {"1": {"measured_baseline": told}}}))
    (task,) = prepare(SETS["adaexplore"], tmp_path / "ada", tmp_path / "kb", tmp_path / "out")
    assert (task.name, task.claim, task.has_code) == ("2001_Other", Claim(True, 2.5, None), True)
    assert list(replies_in_file(replies_path(tmp_path / "out"), "triton")) == ["2001_Other/attempt_1/sample_1"]


def test_what_is_missing(cuda_l1: Path, tmp_path: Path) -> None:
    cuda = SETS["cuda-l1"]
    with pytest.raises(InputMissing):
        prepare(cuda, tmp_path / "nothing", tmp_path / "kb", tmp_path / "out")
    with pytest.raises(InputMissing):
        prepare(SETS["adaexplore"], tmp_path, tmp_path / "kb", tmp_path / "out")
    (tmp_path / "kb" / "KernelBench" / "level2" / "1_Other.py").rename(tmp_path / "kb/KernelBench/level2/2_Other.py")
    with pytest.raises(InputMissing, match="2/1"):
        prepare(cuda, cuda_l1, tmp_path / "kb", tmp_path / "out")
    with pytest.raises(UsageError):
        prepare(cuda, cuda_l1, tmp_path / "kb", tmp_path / "kb")
