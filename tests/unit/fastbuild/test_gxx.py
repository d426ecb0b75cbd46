"""Which commands of a build get a PCH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hkbench.fastbuild.inside import compiler_wrapper, gxx as use

FLAGS = ["-DTORCH_API_INCLUDE_EXTENSION_H", '-DPYBIND11_BUILD_ABI="_cxxabi1016"', "-fPIC", "-std=c++20", "-O3"]
BINDING = "#include <cmath>\n// a comment\n#include <pybind11/pybind11.h>\nint answer() { return 42; }\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a PCH of pybind11 for FLAGS, whose files are empty."""
    compiler = os.path.realpath(shutil.which("c++") or "")
    described = {"compiler": compiler, "folders": ["/torch", "/python"], "also": ["/cuda"], "environment": {}}
    (tmp_path / use.TOOLCHAIN).write_text(json.dumps(described))
    pch = tmp_path / use.digest("pybind11", FLAGS)
    pch.mkdir()
    (pch / use.PRECOMPILED).touch()
    (pch / use.SUPPORT).touch()
    return tmp_path


def command(
    tmp_path: Path, *more: str, text: str = BINDING, folders: tuple[str, ...] = ("/torch", "/python")
) -> list[str]:
    source = tmp_path / "main.cpp"
    source.write_text(text)
    system = [word for folder in folders for word in ("-isystem", folder)]
    words = ["-MMD", "-MF", "main.o.d", "-DTORCH_EXTENSION_NAME=answer", *FLAGS, *more, *system]
    return ["c++", *words, "-c", str(source), "-o", str(tmp_path / "main.o")]


def test_a_fitting_command_gets_the_pch_before_everything_else(store: Path, tmp_path: Path) -> None:
    given = command(tmp_path)
    pch = store / use.digest("pybind11", FLAGS)
    before = ["c++", "-include", str(pch / use.HEADER), "-isystem", str(pch / use.INCLUDE)]
    assert use.fast_command(store, tmp_path / "pch_requests", given) == [*before, *given[1:]]
    link = ["c++", str(tmp_path / "main.o"), "-shared", "-o", "answer.so"]
    assert use.fast_command(store, tmp_path / "pch_requests", link) == [*link, str(pch / use.SUPPORT)]


def test_a_pch_that_is_not_there_is_requested(store: Path, tmp_path: Path) -> None:
    assert use.fast_command(store, tmp_path / "pch_requests", command(tmp_path, "-march=native")) is None
    (request,) = (tmp_path / "pch_requests").iterdir()
    assert json.loads(request.read_text()) == {"pch": "pybind11", "flags": [*FLAGS, "-march=native"]}
    assert request.stem == use.digest("pybind11", [*FLAGS, "-march=native"])


@pytest.mark.parametrize(
    "flag", ["-fplugin=x.so", "-DNAME=1", "-include", "@flags", "-specs=x", "-Wp,-MD,x", "-I/elsewhere", "-nostdinc++"]
)
def test_unknown_flags_go_the_usual_way(store: Path, tmp_path: Path, flag: str) -> None:
    assert use.fast_command(store, tmp_path / "pch_requests", command(tmp_path, flag)) is None
    assert not (tmp_path / "pch_requests").exists()


def test_the_order_of_include_folders_counts(store: Path, tmp_path: Path) -> None:
    for folders in (("/python", "/torch"), ("/mine", "/torch", "/python"), ("/torch",)):
        assert use.fast_command(store, tmp_path / "pch_requests", command(tmp_path, folders=folders)) is None
    assert (
        use.fast_command(store, tmp_path / "w", command(tmp_path, folders=("/torch", "/cuda", "/python"))) is not None
    )


def test_a_steered_compiler_goes_the_usual_way(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/mine")
    assert use.fast_command(store, tmp_path / "pch_requests", command(tmp_path)) is None
    described = json.loads((store / use.TOOLCHAIN).read_text())
    (store / use.TOOLCHAIN).write_text(json.dumps(described | {"environment": {"CPLUS_INCLUDE_PATH": "/mine"}}))
    assert use.fast_command(store, tmp_path / "pch_requests", command(tmp_path)) is not None  # made under the same
    monkeypatch.delenv("CPLUS_INCLUDE_PATH")
    assert use.fast_command(store, tmp_path / "pch_requests", command(tmp_path)) is None
    (store / use.TOOLCHAIN).write_text(json.dumps(described))
    other = tmp_path / "bin" / "c++"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert use.fast_command(store, tmp_path / "pch_requests", command(tmp_path)) is None


@pytest.mark.parametrize(
    ("text", "pch"),
    [
        ("#include <torch/extension.h>\nint x;", "extension"),
        ("#include <pybind11/pybind11.h>", "pybind11"),
        (
            "# include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n#include <torch/csrc/Exceptions.h>",
            "torch",
        ),
        ("#include <torch/types.h>", None),
        ("int before;\n#include <torch/extension.h>", None),
        ("#ifdef X\n#include <torch/extension.h>\n#endif", None),
        ("/* ends\n*/ #include <torch/extension.h>", None),
        ("#define private public\n#include <torch/extension.h>", None),
        ("", None),
    ],
)
def test_only_includes_that_stand_first_count(text: str, pch: str | None) -> None:
    assert use.pch_for(use.leading_includes(text)) == pch


@pytest.mark.parametrize("flags", [["-O3", 1], "-O3", ["-O3"] * 25, ["-fplugin=x"], ["-march=native;x"], None])
def test_flags_that_no_pch_is_made_for(flags: object) -> None:
    assert use.acceptable("torch", ["-O3", "-fopenmp"])
    assert not use.acceptable("torch", flags)
    assert not use.acceptable("other", ["-O3"])


@pytest.mark.parametrize(
    ("pch", "place", "final"), [("pybind11", "", True), ("pybind11", "/torch/ATen.h", False), ("extension", "", False)]
)
def test_an_error_is_final_where_the_headers_are_the_source_s_own(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pch: str, place: str, final: bool
) -> None:
    header = {"pybind11": "pybind11/pybind11.h", "extension": "torch/extension.h"}[pch]
    words = command(tmp_path, text=f"#include <{header}>\nint x = y;\n")
    said = f"{place or tmp_path / 'main.cpp'}:2:9: error: 'y' was not declared\n"
    compiler = tmp_path / "bin" / "c++"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\nprintf "%s" "{said}"\necho "$*" >> {tmp_path}/calls\nexit 1\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent), prepend=os.pathsep)
    described = json.loads((store / use.TOOLCHAIN).read_text())
    (store / use.TOOLCHAIN).write_text(json.dumps(described | {"compiler": str(compiler)}))
    folder = store / use.digest(pch, FLAGS)
    folder.mkdir(exist_ok=True)
    (folder / use.PRECOMPILED).touch()
    launcher = [
        sys.executable,
        "-I",
        "-S",
        compiler_wrapper.__file__,
        "compile",
        str(store),
        str(tmp_path / "pch_requests"),
    ]
    done = subprocess.run([*launcher, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, said)
    calls = [
        call.startswith(f"-include {folder / use.HEADER} ") for call in (tmp_path / "calls").read_text().splitlines()
    ]
    assert calls == ([True] if final else [True, False])
    assert (tmp_path / f"main.o{compiler_wrapper.REFUSED}").exists()
    assert not (tmp_path / f"main.o{use.MARK}").exists()
