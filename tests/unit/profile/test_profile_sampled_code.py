"""Code that is an installed library's, whatever the mapped file is called; and Sleef's within PyTorch's library."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from hkbench.profile import elf, sampled_code
from hkbench.profile.names import Built
from hkbench.profile.ownership import cpu_work, judgement, own_objects
from hkbench.profile.sampled_code import BLOCK_BYTES, MIN_BLOCKS, SLEEF, Place, copied, files_of
from hkbench.records import Track

SOURCE = """
double sum_of(const double* x, long n) { double s = 0; for (long i = 0; i < n; ++i) s += x[i] * x[i]; return s; }
double Own_max(const double* x, long n) {
  double s = x[0]; for (long i = 1; i < n; ++i) if (x[i] > s) s = x[i]; return s;
}
double Own_dot(const double* x, const double* y, long n) {
  double s = 0; for (long i = 0; i < n; ++i) s += x[i] * y[i] + 0.5 * y[i]; return s;
}
"""
PRIVATE = "/run/private"
COPY = f"{PRIVATE}/kernels.so"

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "lib.c").write_text(SOURCE)
    command = ["gcc", "-O3", "-funroll-loops", "-shared", "-fPIC", "lib.c", "-o", "libmath.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libmath.so"


def blocks(library: Path, path: str, shift: int = 0) -> list[Place]:
    """Lists the blocks of a library's exported functions as if the file `path` were mapped with them."""
    content = library.read_bytes()
    spans = [span for name in ("sum_of", "Own_") for span in elf.functions(library, name)]
    starts = sorted({at for first, end in spans for at in range(-(-first // 64) * 64, end - 63, 64)})
    return [Place(path, at + shift, content[at : at + BLOCK_BYTES]) for at in starts]


@needs_compiler
def test_functions_are_found_by_the_beginning_of_their_names(library: Path) -> None:
    listed = subprocess.run(["nm", "-D", "-S", str(library)], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    rows = [line.split() for line in listed if "Own_" in line]
    assert elf.functions(library, "Own_") == sorted((int(at, 16), int(at, 16) + int(size, 16)) for at, size, *_ in rows)
    assert elf.functions(library, "wn_") == []


def test_a_file_that_is_cut_or_no_library_has_no_functions(tmp_path: Path) -> None:
    text = tmp_path / "linker_script.so"
    text.write_text("INPUT(libc.so.6)")
    assert elf.functions(text, "x") == []
    cut = tmp_path / "cut.so"
    cut.write_bytes(b"\x7fELF\x02\x01" + b"\0" * 10)
    with pytest.raises(struct.error):
        elf.functions(cut, "x")
    assert copied([Place(COPY, 0, bytes(range(64)))], [text, cut, tmp_path / "missing.so"]) == {}


@needs_compiler
def test_a_copied_library_is_known_by_its_code(library: Path) -> None:
    mine = blocks(library, COPY, shift=4096)
    assert len(mine) >= MIN_BLOCKS
    assert copied(mine, [library]) == dict.fromkeys(mine, str(library))


@needs_compiler
def test_few_blocks_or_other_distances_are_chance(library: Path) -> None:
    mine = blocks(library, COPY)
    assert copied(mine[: MIN_BLOCKS - 1], [library]) == {}
    scattered = [Place(COPY, place.offset + 4096 * number, place.code) for number, place in enumerate(mine)]
    assert copied(scattered, [library]) == {}
    other_files = [Place(f"{COPY}.{number}", place.offset, place.code) for number, place in enumerate(mine)]
    assert copied(other_files, [library]) == {}


@needs_compiler
def test_code_of_ones_own_is_nobody_elses(library: Path) -> None:
    generator = random.Random(1)
    mine = [Place(COPY, at * 64, generator.randbytes(BLOCK_BYTES)) for at in range(100)]
    padding = [Place(COPY, at * 64, b"\xcc" * BLOCK_BYTES) for at in range(100)]
    places = dict.fromkeys((*mine, *padding), 1.0)
    assert files_of(places, {COPY}) == dict.fromkeys(places, COPY)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, library: Path) -> Path:
    monkeypatch.setattr(sampled_code, "installed", lambda: (library,))
    return library


@needs_compiler
@pytest.mark.parametrize("path", [COPY, f"{COPY} (deleted)", "[anonymous]"])
def test_samples_in_a_copy_are_the_librarys(installed: Path, path: str) -> None:
    counts = dict.fromkeys(blocks(installed, path), 100.0)
    files = files_of(counts, own_objects({path}, PRIVATE, Built()))
    assert set(files.values()) == {str(installed)}
    objects = {str(installed): sum(counts.values())}
    assert judgement(cpu_work(objects, 0.0, PRIVATE), Track.OWN) is not None


@needs_compiler
def test_code_outside_of_the_candidates_files_is_not_looked_for(installed: Path) -> None:
    counts = dict.fromkeys(blocks(installed, "/usr/lib/libother.so"), 100.0)
    assert set(files_of(counts, set()).values()) == {"/usr/lib/libother.so"}


def test_functions_of_sleef_are_arithmetic() -> None:
    (torch_library,) = {path for path in sampled_code._torch_libraries() if Path(path).exists()}
    first, _ = next(span for span in elf.functions(Path(torch_library), "Sleef_") if span[1] - span[0] >= 256)
    inside = Place(torch_library, first - first % 64 + 64)
    outside, elsewhere = Place(torch_library, 0), Place(COPY, inside.offset)
    assert files_of({inside: 1.0, outside: 1.0, elsewhere: 1.0}, set()) == {
        inside: SLEEF,
        outside: torch_library,
        elsewhere: COPY,
    }
    beside_own = cpu_work({COPY: 60.0, SLEEF: 200.0}, 0.0, PRIVATE)
    assert beside_own.own == 1.0
    assert cpu_work({torch_library: 60.0, SLEEF: 200.0}, 0.0, PRIVATE).own == 0.0
