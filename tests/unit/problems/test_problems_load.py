"""Reading problem files without running them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hkbench.errors import ProblemError
from hkbench.problems import load_problem, problem_number

GOOD = """\
import torch.nn as nn

rows = 4096
eps: float = 1e-5
CPU_SIZES = {"rows": 64, "eps": 0.5}


class Model(nn.Module):
    pass


def get_inputs():
    return []


def get_init_inputs():
    return []
"""


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_name_number_level_hash_and_sizes_come_from_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "level3" / "19_ReLU.py", GOOD)
    problem = load_problem(path)
    assert (problem.number, problem.name, problem.level) == (19, "19_ReLU", 3)
    assert problem.path == path
    assert problem.source == GOOD
    assert problem.sha256 == hashlib.sha256(GOOD.encode()).hexdigest()
    assert problem.cpu_sizes == {"rows": 64, "eps": 0.5}
    assert problem.emulated_sizes is None


def test_a_file_without_number_or_level(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path / "level_one" / "my_op.py", GOOD))
    assert (problem.number, problem.name, problem.level) == (0, "my_op", None)


def test_without_cpu_sizes_there_are_none(tmp_path: Path) -> None:
    text = GOOD.replace('CPU_SIZES = {"rows": 64, "eps": 0.5}', "")
    assert load_problem(write(tmp_path / "1_A.py", text)).cpu_sizes is None


def test_the_level_of_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "level2" / "4_A.py", GOOD)
    monkeypatch.chdir(tmp_path / "level2")
    assert load_problem(Path("4_A.py")).level == 2


def test_nothing_in_the_file_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    text = f"from pathlib import Path\nPath({str(mark)!r}).touch()\nraise SystemExit(3)\n" + GOOD
    load_problem(write(tmp_path / "1_A.py", text))
    assert not mark.exists()


def test_a_name_may_be_bound_by_import_or_assignment(tmp_path: Path) -> None:
    text = "from somewhere import Net as Model\nget_inputs = get_init_inputs = list\n"
    assert load_problem(write(tmp_path / "1_A.py", text)).number == 1


def test_the_last_cpu_sizes_counts_and_may_be_annotated(tmp_path: Path) -> None:
    text = GOOD + 'CPU_SIZES: dict[str, int] = {"rows": 2}\n'
    assert load_problem(write(tmp_path / "1_A.py", text)).cpu_sizes == {"rows": 2}


def test_a_byte_order_mark_and_a_stray_backslash_are_no_reason_to_refuse(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + b'"""A \\d docstring."""\n' + GOOD.encode()
    problem = load_problem(write(tmp_path / "1_A.py", text))
    assert problem.source.startswith('"""A')
    assert problem.sha256 == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("name", ["Model", "get_inputs", "get_init_inputs"])
def test_each_missing_definition_is_named(tmp_path: Path, name: str) -> None:
    text = GOOD.replace(f"class {name}(", "class Other(").replace(f"def {name}(", "def other(")
    with pytest.raises(ProblemError, match=rf"1_A\.py: does not define {name};"):
        load_problem(write(tmp_path / "1_A.py", text))


def test_a_definition_inside_a_function_does_not_count(tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" if line else "\n" for line in GOOD.splitlines())
    with pytest.raises(ProblemError, match="does not define Model, get_inputs, get_init_inputs"):
        load_problem(write(tmp_path / "1_A.py", "def hidden():\n" + body))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = '\xff\xfe'", "not UTF-8 at byte 5"),
        (b"def broken(:\n", "not Python: line 1"),
        (b"x = 1\x00\n", r"not Python|cannot be parsed"),
        (b"x = " + b"(" * 100_000, r"not Python|cannot be parsed"),
        (b"x = " + b"-" * 100_000 + b"1", r"not Python|cannot be parsed"),
    ],
    ids=["not utf-8", "syntax", "null byte", "deep brackets", "deep operators"],
)
def test_what_is_not_python_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ProblemError, match=message) as caught:
        load_problem(write(tmp_path / "1_A.py", content))
    assert str(tmp_path / "1_A.py") in str(caught.value)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("dict(rows=2)", r"CPU_SIZES \(line 5\) is not a literal"),
        ("{'rows': rows // 2}", "is not a literal"),
        ("{['rows']: 2}", "is not a literal"),
        ("[('rows', 2)]", "is a list, not a dict"),
        ("{'rows': '64'}", r"CPU_SIZES\['rows'\] = '64'"),
        ("{'rows': True}", "map names to numbers"),
        ("{3: 4}", "map names to numbers"),
        ("{'columns': 4}", "names 'columns', which the file does not define"),
    ],
)
def test_sizes_that_cannot_be_used(tmp_path: Path, sizes: str, message: str) -> None:
    text = GOOD.replace('{"rows": 64, "eps": 0.5}', sizes)
    with pytest.raises(ProblemError, match=message):
        load_problem(write(tmp_path / "1_A.py", text))
    emulated = GOOD.replace("CPU_SIZES", "EMULATED_SIZES").replace('{"rows": 64, "eps": 0.5}', sizes)
    with pytest.raises(ProblemError, match=message.replace("CPU_", "EMULATED_")):
        load_problem(write(tmp_path / "1_A.py", emulated))


def test_sizes_for_an_emulated_gpu_stand_beside_those_for_a_cpu(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path / "1_A.py", GOOD + 'EMULATED_SIZES = {"rows": 8}\n'))
    assert (problem.cpu_sizes, problem.emulated_sizes) == ({"rows": 64, "eps": 0.5}, {"rows": 8})


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="no such problem file"):
        load_problem(tmp_path / "1_A.py")
    with pytest.raises(ProblemError, match="cannot be read"):
        load_problem(tmp_path)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("19_ReLU.py", 19),
        ("007_X.py", 7),
        ("1_.py", 1),
        ("ReLU_19.py", None),
        ("19.py", None),
        ("19ReLU.py", None),
    ],
)
def test_numbers_of_file_names(name: str, number: int | None) -> None:
    assert problem_number(Path(name)) == number


def test_further_shapes_are_read(tmp_path: Path) -> None:
    text = GOOD + 'SHAPES = [{"rows": 1}, {"rows": 7, "eps": 0.25}]\n'
    assert load_problem(write(tmp_path / "1_A.py", text)).shapes == ({"rows": 1}, {"rows": 7, "eps": 0.25})
    assert load_problem(write(tmp_path / "2_A.py", GOOD)).shapes == ()


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ("{'rows': 1}", "is a dict, not a list of dicts"),
        ("[7]", r"SHAPES\[0\] \(line \d+\) is a int, not a dict"),
        ("[{'rows': 1}, {'lines': 2}]", r"SHAPES\[1\] names 'lines'"),
        ("[{'rows': True}]", r"SHAPES\[0\]\['rows'\] = True"),
        ("[dict(rows=1)]", "is not a literal"),
    ],
)
def test_impossible_shapes_are_refused(tmp_path: Path, shapes: str, reason: str) -> None:
    with pytest.raises(ProblemError, match=reason):
        load_problem(write(tmp_path / "1_A.py", f"{GOOD}SHAPES = {shapes}\n"))
