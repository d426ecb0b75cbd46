"""What is left out of PyTorch's headers for a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.fastbuild.inside import nvcc_headers
from hkbench.fastbuild.inside.nvcc_headers import shortened, write_lighter_headers

OPERATORS = [f"op{number}" for number in range(600)]
LIST = "\n".join(
    [
        "#pragma once",
        "#include <ATen/core/Tensor.h>",
        "// op7 is told of here",
        *(f"#include <ATen/ops/{name}.h>" for name in ("from_blob", "tensor", *OPERATORS)),
        "namespace at { inline int alias(int x) { return op5(x); } }",
        "",
    ]
)


@pytest.fixture
def torch(tmp_path: Path) -> str:
    folder = tmp_path / "torch"
    (folder / "ATen").mkdir(parents=True)
    (folder / "ATen" / "Functions.h").write_text(LIST)
    (folder / "ATen" / "NativeFunctions.h").write_text(LIST.replace(".h>", "_native.h>"))
    return str(folder)


def test_operators_that_are_named_stay() -> None:
    text = shortened(LIST, {"op1", "relu"})
    assert text is not None
    kept = [line for line in text.splitlines() if "ATen/ops" in line]
    assert kept == [f"#include <ATen/ops/{name}.h>" for name in ("from_blob", "tensor", "op1", "op5")]
    assert "#include <ATen/core/Tensor.h>" in text and "inline int alias" in text


def test_what_is_no_list_of_operators_is_not_shortened() -> None:
    assert shortened("#include <ATen/ops/op1.h>\n", {"op2"}) is None
    assert shortened("", ()) is None


def test_a_source_gets_the_headers_that_it_names(torch: str, tmp_path: Path) -> None:
    folder = tmp_path / "include"
    words = write_lighter_headers("#include <torch/extension.h>\nauto x = at::op3(y);", ["/none", torch], folder)
    assert words == ["-isystem", str(folder), nvcc_headers.OPERATORS]
    extension = (folder / "torch" / "extension.h").read_text()
    assert "<torch/types.h>" in extension and "pybind" not in extension
    assert "<torch/types.h>" in (folder / "torch" / "all.h").read_text()
    assert "#include" not in (folder / "torch" / "library.h").read_text()
    for name in ("Functions.h", "NativeFunctions.h"):
        kept = (folder / "ATen" / name).read_text()
        assert "ops/op3" in kept and "ops/op4" not in kept


@pytest.mark.parametrize(
    ("source", "bindings"),
    [
        ("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}", True),
        ("py::object x;", True),
        ("PyObject* x;", True),
        ("THPVariable_Wrap(x);", True),
        ("// as PyTorch does; pytorch's copy", False),
        ("torch::Tensor x;", False),
    ],
)
def test_python_s_bindings_are_there_for_who_names_them(
    torch: str, tmp_path: Path, source: str, bindings: bool
) -> None:
    write_lighter_headers(f"#include <torch/extension.h>\n{source}", [torch], tmp_path)
    assert ("pybind" in (tmp_path / "torch" / "extension.h").read_text()) is bindings


def test_operators_stay_whole_where_the_lists_are_not_found(tmp_path: Path) -> None:
    words = write_lighter_headers("#include <torch/types.h>", ["/none"], tmp_path)
    assert words == ["-isystem", str(tmp_path)]


def test_a_source_without_pytorch_s_headers_gets_none(torch: str, tmp_path: Path) -> None:
    assert write_lighter_headers("#include <cuda_runtime.h>\n// torch/extension.h", [torch], tmp_path / "x") == []
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("include", "whole"),
    [
        ('#include "mine.h"', True),
        ("#include NAME", True),
        ('#include "ATen/ATen.h"', False),
        ("#include <mma.h>", False),
    ],
)
def test_operators_stay_whole_for_a_source_with_headers_of_its_own(
    torch: str, tmp_path: Path, include: str, whole: bool
) -> None:
    words = write_lighter_headers(f"#include <torch/types.h>\n{include}", [torch], tmp_path / "x")
    assert (nvcc_headers.OPERATORS not in words) is whole
    assert nvcc_headers.OPERATORS not in write_lighter_headers(
        "#include <torch/types.h>", [torch], tmp_path / "y", True
    )
