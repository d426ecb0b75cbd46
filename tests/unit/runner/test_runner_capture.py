"""Recording and announcing calls of torch's extension builder."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hipkittens_build
from hipkittens_build.builder import Members
from hkbench.runner import capture


@pytest.fixture(autouse=True)
def builder() -> Iterator[Any]:
    """torch's extension builder, put back as it was."""
    kept = {name: getattr(capture.cpp_extension, name) for name in ("load", "load_inline")}
    build = hipkittens_build.build
    yield capture.cpp_extension
    vars(capture.cpp_extension).update(kept)
    hipkittens_build.build = build


def test_load_inline_is_recorded(builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    calls: list[dict[str, Any]] = []
    capture.record_extension_calls(calls)
    module = builder.load_inline(
        "scale", "torch::Tensor f(torch::Tensor);", cuda_sources=["__global__ void k() {}"], functions=["f"],
        extra_cuda_cflags=["-O3"], extra_include_paths=[Path("/opt/include")], verbose=True, build_directory="/tmp",
    )  # fmt: skip
    assert calls == [
        {
            "name": "scale",
            "cpp_sources": "torch::Tensor f(torch::Tensor);",
            "cuda_sources": ["__global__ void k() {}"],
            "functions": ["f"],
            "extra_cuda_cflags": ["-O3"],
            "extra_include_paths": ["/opt/include"],
        }
    ]
    assert json.loads(json.dumps(calls)) == calls
    assert module.__name__ == "scale"


def test_the_stand_in_is_looked_up_but_not_called(builder: Any) -> None:
    capture.record_extension_calls([])
    module = builder.load_inline(name="scale", cpp_sources="")
    function = module.anything
    with pytest.raises(RuntimeError, match=r"scale\.anything was called, but this run only compiles"):
        function(1, 2)
    assert not hasattr(module, "__path__")


def test_load_is_recorded_with_the_text_of_its_files(
    builder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "clang++")
    (tmp_path / "bind.cpp").write_text("// host")
    (tmp_path / "kernel.cu").write_text("// device")
    calls: list[dict[str, Any]] = []
    capture.record_extension_calls(calls)
    builder.load(name="two", sources=[str(tmp_path / "bind.cpp"), tmp_path / "kernel.cu"], extra_cflags=["-g"])
    builder.load("one", str(tmp_path / "kernel.cu"))
    first, second = calls
    assert (first["cpp_sources"], first["cuda_sources"]) == (["// host"], ["// device"])
    assert first["no_implicit_headers"] is True and "functions" not in first and first["cxx"] == "clang++"
    assert (second["name"], second["cpp_sources"], second["cuda_sources"]) == ("one", [], ["// device"])


def test_a_file_that_is_missing_is_the_candidate_s_error(builder: Any, tmp_path: Path) -> None:
    capture.record_extension_calls([])
    with pytest.raises(FileNotFoundError):
        builder.load(name="x", sources=[str(tmp_path / "none.cu")])


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What listeners are told, and what is built."""
    found: list[object] = []
    monkeypatch.setattr(capture, "listeners", [found.append])
    return found


def test_builds_are_announced(builder: Any, seen: list[object]) -> None:

    def build(*args: object, **kwargs: object) -> str:
        seen.append((args, kwargs))
        if kwargs.get("fail"):
            raise RuntimeError("Error building extension")
        return "module"

    vars(builder).update(load=build, load_inline=build)
    capture.announce_builds(capture.FailedBuilds())
    assert builder.load_inline("a", cpp_sources="b") == "module"
    with pytest.raises(RuntimeError):
        builder.load("a", fail=True)
    assert seen == [
        "build_begin", (("a",), {"cpp_sources": "b"}), "build_end",
        "build_begin", (("a",), {"fail": True}), "build_end",
    ]  # fmt: skip


def test_a_build_of_hipkittens_is_recorded() -> None:
    calls: list[dict[str, Any]] = []
    capture.record_extension_calls(calls)
    functions: dict[str, Members] = {"dispatch": {"x": (1, 256), "eps": ()}, "again": ["x"]}
    module = hipkittens_build.build("rows", "// device", functions, flags=["-ffast-math"])
    bound = {"dispatch": ["x", "eps"], "again": ["x"]}
    assert calls == [
        {"name": "rows", "cuda_sources": "// device", "bound": bound, "extra_cuda_cflags": ["-ffast-math"]}
    ]
    assert json.loads(json.dumps(calls)) == calls
    with pytest.raises(RuntimeError, match=r"rows\.dispatch was called, but this run only compiles"):
        module.dispatch(1)
    with pytest.raises(ValueError, match="'a b' is not an identifier"):
        hipkittens_build.build("rows", "", {"a b": []})


def test_what_a_rehearsal_could_not_build_is_not_built_again(builder: Any, seen: list[object]) -> None:
    def build(name: str, cpp_sources: str) -> str:
        seen.append(name)
        if "wrong" in cpp_sources:
            raise RuntimeError(f"Error building extension {name!r}")
        return "module"

    vars(builder).update(load_inline=build)
    failed, known = capture.FailedBuilds(), b""

    def told(text: bytes) -> None:
        nonlocal known
        known = text

    failed.told = told
    capture.announce_builds(failed)
    for text in ("right", "wrong"):
        with contextlib.suppress(RuntimeError):
            builder.load_inline("a", cpp_sources=text)
    failed.told = None
    failed.read(known)
    seen.clear()
    with pytest.raises(RuntimeError, match="Error building extension 'a'"):
        builder.load_inline("a", cpp_sources="wrong")
    assert seen == []
    assert builder.load_inline("a", cpp_sources="right") == "module"
    with pytest.raises(RuntimeError):
        builder.load_inline("b", cpp_sources="wrong")
    assert seen.count("build_begin") == 2


def test_what_fails_to_build_outside_of_a_rehearsal_may_be_tried_again(builder: Any, seen: list[object]) -> None:
    def build(_name: str) -> str:
        seen.append("built")
        raise RuntimeError("g++ was killed")

    vars(builder).update(load_inline=build)
    capture.announce_builds(capture.FailedBuilds())
    for _ in range(2):
        with pytest.raises(RuntimeError):
            builder.load_inline("a")
    assert seen.count("built") == 2


def test_a_build_of_hipkittens_is_announced(monkeypatch: pytest.MonkeyPatch, seen: list[object]) -> None:
    monkeypatch.setattr(hipkittens_build, "build", lambda *args, **kwargs: seen.append((args, kwargs)))
    capture.announce_builds(capture.FailedBuilds())
    hipkittens_build.build("rows", "", {"f": []}, flags=["-g"])
    assert seen == ["build_begin", (("rows", "", {"f": []}), {"flags": ["-g"]}), "build_end"]
