"""Checkouts of HipKittens, with small trees of each layout that are made up here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hipkittens_build.headers import STAMP, content
from hkbench.errors import InputMissing, ToolchainUnavailable
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.hipkittens import (
    VARIABLES,
    Dialect,
    dialect_for,
    doubts,
    find_checkout,
    read_checkout,
    refusals,
    wrong_results,
)

FLAT = '#pragma once\n#include "common/common.cuh"\n'
BOTH = """#if defined(KITTENS_CDNA4)
#include "cdna4/all.cuh"
#elif defined(KITTENS_CDNA3)
#include "cdna3/all.cuh"
#endif
"""
TREES = {
    "flat cdna4": {"kittens.cuh": FLAT, "types/register/rt_shape.cuh": "", "common/util.cuh": ""},
    "flat cdna3": {"kittens.cuh": FLAT, "common/util.cuh": "#if defined(KITTENS_CDNA3)\n#endif\n"},
    "both": {"kittens.cuh": BOTH, "cdna4/all.cuh": "", "cdna3/all.cuh": ""},
    "named but not there": {"kittens.cuh": BOTH, "cdna4/all.cuh": ""},
}
SERVED = {
    "flat cdna4": (Dialect.CDNA4,),
    "flat cdna3": (Dialect.CDNA3,),
    "both": (Dialect.CDNA3, Dialect.CDNA4),
    "named but not there": (Dialect.CDNA4,),
}


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _toolchain(root: Path, version: str = "6.4.1", *, answer: str = "exit 0") -> HipToolchain:
    hipcc = root / "bin" / "hipcc"
    hipcc.parent.mkdir(parents=True)
    hipcc.write_text(f'#!/bin/sh\necho "$@" >> {root}/called\n{answer}\n')
    hipcc.chmod(0o755)
    return HipToolchain(root, hipcc, version, "clang version 22", is_rocm=False)


def _git(root: Path, *words: str) -> str:
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(root), *author, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def unset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable names a tree, and none is installed."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("hipkittens_build.headers.INSTALLED", tmp_path / "installed")


@pytest.mark.parametrize("layout", TREES)
def test_each_layout_serves_its_dialects(tmp_path: Path, layout: str) -> None:
    found = read_checkout(_tree(tmp_path, TREES[layout]))
    assert found.dialects == SERVED[layout]
    assert found.chooses is (layout in ("both", "named but not there"))


def test_nothing_set_says_what_to_set() -> None:
    with pytest.raises(ToolchainUnavailable, match="set HIPKITTENS_ROOT"):
        find_checkout()


def test_hipkittens_root_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, layout in zip(VARIABLES, ("flat cdna3", "flat cdna4"), strict=True):
        monkeypatch.setenv(name, str(_tree(tmp_path / name, TREES[layout])))
    assert (find_checkout().variable, find_checkout().dialects) == ("HIPKITTENS_ROOT", (Dialect.CDNA3,))
    monkeypatch.setenv("HIPKITTENS_ROOT", "")
    assert (find_checkout().variable, find_checkout().dialects) == ("THUNDERKITTENS_ROOT", (Dialect.CDNA4,))


def test_a_relative_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tree(tmp_path / "hk", TREES["both"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIPKITTENS_ROOT", "hk")
    assert find_checkout().root == tmp_path / "hk"


def test_a_missing_folder_a_wrong_one_and_thunderkittens_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match="no such folder"):
        read_checkout(tmp_path / "nowhere")
    with pytest.raises(ToolchainUnavailable, match=r"no include/kittens\.cuh"):
        read_checkout(tmp_path)
    for_cuda = _tree(tmp_path / "tk", {"kittens.cuh": FLAT, "common/util.cuh": "#ifdef KITTENS_HOPPER\n#endif\n"})
    with pytest.raises(ToolchainUnavailable, match="not HipKittens'"):
        read_checkout(for_cuda)


def test_a_dialect_that_the_tree_lacks_says_what_to_set_to_what(tmp_path: Path) -> None:
    found = read_checkout(_tree(tmp_path / "hk", TREES["flat cdna4"]))
    with pytest.raises(ToolchainUnavailable, match=r"gfx942 needs cdna3: set HIPKITTENS_ROOT to .* branch cdna3"):
        found.require(Dialect.CDNA3, _toolchain(tmp_path / "hip"), tmp_path / "probe")


def test_headers_that_do_not_compile_are_the_machines_fault(tmp_path: Path) -> None:
    found = read_checkout(_tree(tmp_path / "hk", TREES["flat cdna4"]))
    refuses = "echo \"base_types.cuh:16:10: fatal error: 'hip/hip_fp4.h' file not found\"; exit 1"
    with pytest.raises(ToolchainUnavailable, match=r"HIP 6\.4\.1 .*hip_fp4\.h' file not found.*ROCm 7\.0"):
        found.require(Dialect.CDNA4, _toolchain(tmp_path / "old", answer=refuses), tmp_path / "probe")
    accepts = _toolchain(tmp_path / "new")
    found.require(Dialect.CDNA4, accepts, tmp_path / "probe")
    command = (accepts.root / "called").read_text().split()
    assert {"--offload-arch=gfx950", "-fsyntax-only", *found.compile_flags(Dialect.CDNA4, accepts)} <= set(command)


def test_flags_name_dialect_and_folders(tmp_path: Path) -> None:
    found = read_checkout(_tree(tmp_path / "hk", TREES["both"]))
    flags = found.compile_flags(Dialect.CDNA3, _toolchain(tmp_path / "hip"))
    assert "-DKITTENS_CDNA3" in flags
    assert f"-I{tmp_path}/hk/include" in flags
    assert f"-I{tmp_path}/hip/include/hip" in flags


def test_a_candidate_finds_tree_and_compiler_in_its_environment(tmp_path: Path) -> None:
    found = read_checkout(_tree(tmp_path / "hk", TREES["both"]), "THUNDERKITTENS_ROOT")
    root = str(tmp_path / "hk")
    environment = found.environment(_toolchain(tmp_path / "hip"))
    assert environment == {
        "HIPKITTENS_ROOT": root,
        "THUNDERKITTENS_ROOT": root,
        "ROCM_PATH": str(tmp_path / "hip"),
    }


def test_it_is_offered_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, toolchain = read_checkout(_tree(tmp_path / "hk", TREES["both"])), _toolchain(tmp_path / "hip")
    monkeypatch.setenv("ROCM_PATH", "/before")
    before = dict(os.environ)
    with found.offered(toolchain):
        assert os.environ.items() >= found.environment(toolchain).items()
    assert dict(os.environ) == before


def test_installed_headers_serve_where_no_variable_is_set(tmp_path: Path) -> None:
    include = _tree(tmp_path / "installed", TREES["both"]) / "include"
    with pytest.raises(ToolchainUnavailable):
        find_checkout()  # not complete
    (tmp_path / "installed" / STAMP).write_text(f"hk-dsl 0.8.0\nsha256:{content(include)}\n")
    found = find_checkout()
    assert (found.root, found.variable, found.package, found.changed) == (include.parent, None, "hk-dsl 0.8.0", False)
    assert found.versions(Dialect.CDNA4) == {
        "hipkittens": "cdna4@hk-dsl 0.8.0",
        "hipkittens_include": f"sha256:{found.content}",
    }
    (include / "cdna4" / "new.cuh").write_text("// one more\n")
    assert find_checkout().versions(Dialect.CDNA4)["hipkittens"] == "cdna4@hk-dsl 0.8.0 with changes"


def test_a_git_checkout_has_a_commit_and_may_be_changed(tmp_path: Path) -> None:
    root = _tree(tmp_path, TREES["both"])
    _git(root, "init", "--quiet")
    _git(root, "add", "include")
    _git(root, "commit", "--quiet", "-m", "headers")
    commit = _git(root, "rev-parse", "HEAD")
    clean = read_checkout(root)
    assert (clean.commit, clean.changed) == (commit, False)
    assert clean.versions(Dialect.CDNA3)["hipkittens"] == f"cdna3@{commit}"
    (root / "include" / "cdna4" / "new.cuh").write_text("// one more\n")
    changed = read_checkout(root)
    assert changed.versions(Dialect.CDNA4)["hipkittens"] == f"cdna4@{commit} with changes"
    assert changed.content != clean.content


def test_an_exported_tree_has_its_content_only_even_within_a_repository(tmp_path: Path) -> None:
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "somebody else's")
    inner, copy = (read_checkout(_tree(tmp_path / name, TREES["both"])) for name in ("inner", "copy"))
    assert (inner.commit, inner.changed) == (None, False)
    assert inner.versions(Dialect.CDNA4)["hipkittens"] == "cdna4@unknown"
    assert inner.content == copy.content
    assert inner.versions(Dialect.CDNA4)["hipkittens_include"] == f"sha256:{copy.content}"


def test_a_renamed_file_changes_the_content(tmp_path: Path) -> None:
    one = read_checkout(_tree(tmp_path / "one", TREES["both"] | {"cdna4/a.cuh": "x"}))
    other = read_checkout(_tree(tmp_path / "other", TREES["both"] | {"cdna4/b.cuh": "x"}))
    assert one.content != other.content


def test_architectures_have_dialects() -> None:
    assert dialect_for("gfx942:sramecc+:xnack-") is Dialect.CDNA3
    assert dialect_for("gfx950") is Dialect.CDNA4
    assert dialect_for("gfx1250") is Dialect.CDNA5
    assert {dialect_for(arch) for arch in ("gfx1100", "gfx1101", "gfx1102")} == {Dialect.RDNA3}
    assert dialect_for("gfx1200") is Dialect.RDNA4 and Dialect.RDNA4.arch == "gfx1201"
    with pytest.raises(ToolchainUnavailable, match="backend hip"):
        dialect_for("gfx90a")


def test_compilers_that_are_known_to_be_wrong_are_named() -> None:
    (said,) = wrong_results(Dialect.CDNA4, "AMD clang version 20.0.0git (ROCm 7.1.0)")
    assert "GEMM" in said
    assert wrong_results(Dialect.CDNA3, "AMD clang version 20.0.0git") == ()
    debian = "Debian clang version 22.1.8 (1~deb12u1)"
    assert wrong_results(Dialect.CDNA4, debian) == wrong_results(Dialect.CDNA4, "unknown") == ()
    assert "attention" in refusals(Dialect.CDNA4, debian)[0]
    assert refusals(Dialect.CDNA4, "AMD clang version 20.0.0git") == ()


def _call(*flags: str, source: str = '#include "kittens.cuh"\n', folders: tuple[str, ...] = ()) -> ExtensionCall:
    return ExtensionCall(name="e", cuda_sources=(source,), extra_cuda_cflags=flags, extra_include_paths=folders)


def test_doubts_name_the_other_dialect_a_missing_macro_and_a_folder_for_hipify(tmp_path: Path) -> None:
    assert doubts(_call("-DKITTENS_CDNA4"), Dialect.CDNA4) == ()
    assert doubts(_call(source="int x;"), Dialect.CDNA4) == ()
    assert doubts(_call(source='#define KITTENS_CDNA3\n#include "kittens.cuh"'), Dialect.CDNA3) == ()
    assert doubts(_call("-DKITTENS_CDNA4"), Dialect.CDNA3) == ("e: written for cdna4, compiled for cdna3 (gfx942)",)
    (missing,) = doubts(_call(), Dialect.CDNA3)
    assert "does not define KITTENS_CDNA3" in missing
    include = str(_tree(tmp_path, TREES["both"]) / "include")
    (rewritten,) = doubts(_call("-DKITTENS_CDNA3", folders=(include,)), Dialect.CDNA3)
    assert "extra_include_paths" in rewritten
    bound = _call().model_copy(update={"bound": {"dispatch": ("x",)}})
    assert doubts(bound, Dialect.CDNA3) == ()  # the macro is the build's own
