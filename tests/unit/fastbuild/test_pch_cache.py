"""PCHs made and used by the real compiler, through the real `load_inline`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.object_code import differences, own_functions
from hkbench.fastbuild.inside import gxx as use
from hkbench.fastbuild.inside.patch_torch import PCH_REQUESTS
from hkbench.fastbuild.pch_cache import UNUSED_DAYS, NotMade, PchCache, PchRequest, requests

SOURCE = """
#include <cmath>
#include <pybind11/pybind11.h>
double squares(int count) {
    double sum = 0.0;
    for (int i = 0; i < count; ++i) sum += std::sqrt(double(i)) * i;
    return sum;
}
std::string named(const std::string& text) { return text + "!"; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("squares", &squares);
    m.def("named", &named, pybind11::arg("text") = "hello");
}
"""
CANDIDATE = """
import sys
from pathlib import Path
from hkbench.fastbuild.inside import patch_torch
from hkbench.runner import capture
if sys.argv[1]:
    patch_torch.enable_fast_builds(capture.cpp_extension, Path(sys.argv[1]))
built = capture.cpp_extension.load_inline(
    "squares", sys.argv[2], no_implicit_headers=True, extra_cflags=["-O1"], extra_ldflags=[]
)
print(built.squares(3), built.named())
"""

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here: PCHs are not tested")


@pytest.fixture(scope="module")
def pchs(tmp_path_factory: pytest.TempPathFactory) -> PchCache:
    return PchCache(tmp_path_factory.mktemp("pchs"))


def built(folder: Path, store: Path | str, source: str = SOURCE) -> subprocess.CompletedProcess[str]:
    """One build in a process of its own, its caches below `folder`."""
    (folder / "tmp").mkdir(parents=True)
    environment = dict(os.environ) | {"TMPDIR": str(folder / "tmp"), "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
    command = [sys.executable, "-c", CANDIDATE, str(store), source]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


WRONG = SOURCE.replace("std::sqrt", "std::no_such_function")


def error_of(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """What a model sees of a build in `folder`."""
    return done.stderr[done.stderr.rindex("RuntimeError") :].replace(str(folder), "FOLDER")


@pytest.fixture(scope="module")
def first(pchs: PchCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a build that found no PCH."""
    folder = tmp_path_factory.mktemp("first")
    done = built(folder, pchs.store)
    assert (done.returncode, done.stdout) == (0, f"{1 + 2 * 2**0.5} hello!\n"), done.stderr
    return folder


@pytest.fixture(scope="module")
def pch_request(pchs: PchCache, first: Path) -> PchRequest:
    """For the flags of the installed torch."""
    (pch_request,) = requests(first / PCH_REQUESTS)
    assert pch_request.pch == "pybind11" and "-O1" in pch_request.flags and not pchs.has(pch_request)
    return pch_request


@pytest.fixture(scope="module")
def usual_error(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of WRONG, built as torch alone does."""
    folder = tmp_path_factory.mktemp("usual")
    said = error_of(built(folder, "", WRONG), folder)
    assert "no_such_function" in said
    return said


@pytest.mark.slow
def test_a_build_requests_a_pch_and_later_ones_get_the_same_code(
    pchs: PchCache, first: Path, pch_request: PchRequest, usual_error: str, tmp_path: Path
) -> None:
    pchs.make(pch_request)
    assert pchs.has(pch_request)
    second = built(tmp_path / "second", pchs.store)
    assert second.stdout == f"{1 + 2 * 2**0.5} hello!\n"
    assert list((tmp_path / "second").rglob(f"*{use.MARK}")), "the second build used no PCH"
    assert not (tmp_path / "second" / PCH_REQUESTS).exists()
    stock, quick = (own_functions(path / "extensions" / "squares" / "main.o") for path in (first, tmp_path / "second"))
    assert len(stock) >= 2
    assert differences(stock, quick) == []
    tried = tmp_path / "tried"
    assert error_of(built(tried, pchs.store, WRONG), tried) == usual_error


@pytest.mark.slow
def test_what_fails_with_a_pch_is_built_as_usual_and_fails_with_the_usual_words(
    pchs: PchCache, pch_request: PchRequest, usual_error: str, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    broken = store / pch_request.name
    broken.mkdir(parents=True)
    shutil.copy(pchs.store / use.TOOLCHAIN, store)
    (broken / use.PRECOMPILED).touch()
    (broken / use.HEADER).write_text("#error a broken PCH\n")
    assert built(tmp_path / "good", store).returncode == 0
    tried = tmp_path / "tried"
    done = built(tried, store, WRONG)
    assert "broken PCH" not in done.stderr
    assert error_of(done, tried) == usual_error


def test_what_a_candidate_writes_in_place_of_a_request_is_not_believed(tmp_path: Path) -> None:
    folder = tmp_path / PCH_REQUESTS
    assert requests(folder) == []
    folder.mkdir()
    good = PchRequest("torch", ("-O2",))
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"pch": "torch", "flags": ["-O1"]}))
    (folder / f"{'0' * 32}.json").symlink_to(secret)
    os.mkfifo(folder / f"{'1' * 32}.json")
    for number, text in enumerate(("[]", "{", '{"pch": "torch"}', '{"pch": "torch", "flags": ["-fplugin=x"]}'), 2):
        (folder / f"{number:032x}.json").write_text(text)
    (folder / "0.json").write_text(secret.read_text())
    assert requests(folder) == []
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / f"{good.name}.json").write_text(json.dumps({"pch": "torch", "flags": ["-O2"]}))
    assert requests(folder) == [good]
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert requests(folder) == []


NO_REQUESTS = [
    "[" * 4000, "9" * 4000, "{", "[]", "7", "null", '{"pch": "torch"}', '{"pch": ["torch"], "flags": []}',
    '{"pch": "torch", "flags": 7}', '{"pch": "torch", "flags": [[]]}', '{"pch": "torch", "flags": [null]}',
    '{"pch": "\\ud800", "flags": ["-O2"]}',
]  # fmt: skip


@pytest.mark.parametrize("text", NO_REQUESTS)
def test_a_request_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / f"{'0' * 32}.json").write_text(text)
    assert requests(tmp_path) == []


def test_a_pch_that_cannot_be_made_says_why_and_leaves_nothing(pchs: PchCache) -> None:
    with pytest.raises(NotMade, match=r"march|arch"):
        pchs.make(PchRequest("pybind11", ("-march=no-such-cpu",)))
    assert not list(pchs.store.glob("making-*"))


def test_stores_of_toolchains_that_are_gone_are_removed_after_a_month(pchs: PchCache, tmp_path: Path) -> None:
    for name, days in (("recent", UNUSED_DAYS - 1), ("old", UNUSED_DAYS + 1)):
        (tmp_path / name / "pch").mkdir(parents=True)
        described = tmp_path / name / use.TOOLCHAIN
        described.write_text("{}")
        before = time.time() - days * 86_400
        os.utime(described, (before, before))
    (tmp_path / "something else").mkdir()
    there = PchCache(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"recent", "something else", there.store.name}
    assert there.store.name == pchs.store.name


def test_runs_in_other_environments_do_not_take_each_other_s_folders_away(
    pchs: PchCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", "/one")
    store = PchCache(tmp_path).store
    monkeypatch.setenv("CUDA_HOME", "/another")
    assert PchCache(tmp_path).store == store
    known = json.loads((store / use.TOOLCHAIN).read_text())["also"]
    assert known[0] == "/another/include" and "/one/include" in known
    for number in range(50):
        monkeypatch.setenv("CUDA_HOME", f"/{number}")
        PchCache(tmp_path)
    assert json.loads((store / use.TOOLCHAIN).read_text())["also"][0] == "/49/include"


def test_builds_that_find_other_headers_have_a_store_of_their_own(pchs: PchCache, tmp_path: Path) -> None:
    environment = {"CPATH": "/rocm", "LIBRARY_PATH": "/lib1:/lib2", "ROCM_HOME": str(tmp_path)}
    (tmp_path / "include" / "hip").mkdir(parents=True)
    there = PchCache(tmp_path / "pchs", environment)
    assert there.store.name != pchs.store.name and pchs.reads == ()
    assert there.reads == (Path("/rocm"), Path("/lib1"), Path("/lib2"))
    described = json.loads((there.store / use.TOOLCHAIN).read_text())
    assert described["environment"] == {"CPATH": "/rocm", "LIBRARY_PATH": "/lib1:/lib2"}
    assert str(tmp_path / "include") in described["also"]
