"""A captured call: what is accepted, and how its sources are laid out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hkbench.toolchain.extension import SOURCE_LIMIT, ExtensionCall, write_bound_source, write_sources

CALL: dict[str, Any] = {"name": "ext", "cpp_sources": "int f();", "cuda_sources": ["a\nb"], "functions": ["f"]}


def test_the_forms_that_torch_takes_become_one() -> None:
    call = ExtensionCall.model_validate({**CALL, "extra_cflags": None, "extra_cuda_cflags": "-O3"})
    assert call.cpp_sources == ("int f();",)
    assert call.functions == {"f": "f"}
    assert (call.extra_cflags, call.extra_cuda_cflags) == ((), ("-O3",))
    assert ExtensionCall.model_validate_json(call.model_dump_json()) == call


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../../etc"},
        {"name": "a b"},
        {"name": ""},
        {"functions": ['f); system("x"); //']},
        {"functions": {"f": 3}},
        {"extra_cflags": ["-O2\n-fplugin=x"]},
        {"extra_cflags": ["-O2"] * 300},
        {"cpp_sources": "", "cuda_sources": []},
        {"cpp_sources": "x" * (SOURCE_LIMIT + 1)},
        {"build_directory": "/tmp"},
        {"no_implicit_headers": "perhaps"},
    ],
)
def test_what_a_runner_must_not_send_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExtensionCall.model_validate({**CALL, **wrong})


def test_sources_are_laid_out_as_load_inline_does(tmp_path: Path) -> None:
    files = write_sources(ExtensionCall.model_validate(CALL), tmp_path / "src")
    assert files.main.read_text().splitlines() == [
        "#include <torch/extension.h>",
        '#line 1 "cpp_sources"',
        "int f();",
        '#line 1 "bindings"',
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {",
        'm.def("f", torch::wrap_pybind_function(f), "f");',
        "}",
    ]
    assert files.cuda is not None
    assert files.cuda.read_text().splitlines() == [
        "#include <torch/types.h>",
        "#include <cuda.h>",
        "#include <cuda_runtime.h>",
        '#line 1 "cuda_sources"',
        "a",
        "b",
    ]


def test_without_implicit_headers_and_error_handling(tmp_path: Path) -> None:
    call = ExtensionCall.model_validate({**CALL, "no_implicit_headers": True, "with_pytorch_error_handling": False})
    files = write_sources(call, tmp_path)
    assert "#include" not in files.main.read_text() + (tmp_path / "cuda.cu").read_text()
    assert 'm.def("f", f, "f");' in files.main.read_text()


def test_a_call_without_device_code_has_one_file(tmp_path: Path) -> None:
    files = write_sources(ExtensionCall(name="ext", cpp_sources=("int f();",)), tmp_path)
    assert files.cuda is None
    assert "PYBIND11_MODULE" not in files.main.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["main.cpp"]


def test_several_sources_are_told_apart(tmp_path: Path) -> None:
    write_sources(ExtensionCall(name="ext", cuda_sources=("one", "two")), tmp_path)
    assert re.findall(r'#line 1 "(.*)"', (tmp_path / "cuda.cu").read_text()) == ["cuda_sources[0]", "cuda_sources[1]"]


def test_a_docstring_cannot_leave_its_string(tmp_path: Path) -> None:
    call = ExtensionCall.model_validate({**CALL, "functions": {"f": 'a"); evil(); //\n\\'}})
    text = write_sources(call, tmp_path).main.read_text()
    assert 'm.def("f", torch::wrap_pybind_function(f), "a\\"); evil(); //\\n\\\\");' in text


def test_a_bound_source_is_the_text_with_its_bindings(tmp_path: Path) -> None:
    call = ExtensionCall.model_validate({"name": "rows", "cuda_sources": "// device", "bound": {"run": ["x", "eps"]}})
    source = write_bound_source(call, tmp_path / "src")
    assert source.name == "rows.hip"
    lines = source.read_text().splitlines()
    assert lines[:2] == ['#line 1 "hip_source"', "// device"]
    assert 'extern "C" const char *hipkittens_launch_run(const char *packed, void *stream) {' in lines
    assert any(".x = words.take<decltype(globals::x)>(), .eps = " in line for line in lines)


@pytest.mark.parametrize("bound", [{"a()": ["x"]}, {"a": ["x; system(0)"]}, {"a": "x y"}, {"a": [1]}])
def test_what_cannot_be_bound_is_refused(bound: object) -> None:
    with pytest.raises(ValidationError):
        ExtensionCall.model_validate({"name": "rows", "cuda_sources": "// device", "bound": bound})
