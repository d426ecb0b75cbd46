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
from hkbench.profile.sampled_code import (
    BLOCK_BYTES,
    COPIES,
    GENERATORS,
    MIN_BLOCKS,
    SLEEF,
    Place,
    copied,
    files_of,
)
from hkbench.records import Track

SOURCE = """
static __attribute__((noinline)) double hidden_sum(const double* x, long n) {
  double s = 0; for (long i = 0; i < n; ++i) s += x[i] / 3; return s;
}
double Own_hidden(const double* x, long n) { return hidden_sum(x, n) + 1; }
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


def symbols(library: Path, *which: str) -> list[tuple[int, int, str]]:
    """Lists address, size and name of a library's functions as nm does; the first segment's addresses are places."""
    command = ["nm", "-S", "--defined-only", *which, str(library)]
    rows = [
        line.split() for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    ]
    return [(int(row[0], 16), int(row[1], 16), row[3]) for row in rows if len(row) == 4 and row[2] in "tT"]


def blocks(library: Path, path: str, shift: int = 0) -> list[Place]:
    """Lists the blocks of a library's exported functions as if the file `path` were mapped with them."""
    content = library.read_bytes()
    spans = [(at, at + size) for at, size, _ in symbols(library)]
    starts = sorted({at for first, end in spans for at in range(-(-first // 64) * 64, end - 63, 64)})
    return [Place(path, at + shift, content[at : at + BLOCK_BYTES]) for at in starts]


@needs_compiler
@pytest.mark.parametrize("stripped", [False, True])
def test_functions_are_found_by_their_place(library: Path, tmp_path: Path, stripped: bool) -> None:
    path = tmp_path / "lib.so"
    shutil.copy(library, path)
    if stripped:
        subprocess.run(["strip", str(path)], check=True)
    functions = elf.Functions(path)
    rows = symbols(library)
    assert {"Own_max", "Own_dot", "hidden_sum"} <= {name for _, _, name in rows}
    for at, size, name in rows:
        # What is left when a file was stripped are the functions that it exports.
        known = name.startswith(("Own_", "sum_of")) or not stripped
        assert functions.name(at) == functions.name(at + size - 1) == (name if known else "")
        assert functions.name(at + size) != name
    assert functions.name(0) == functions.name(1 << 40) == ""


def test_a_file_that_is_cut_or_no_library_has_no_functions(tmp_path: Path) -> None:
    text = tmp_path / "linker_script.so"
    text.write_text("INPUT(libc.so.6)")
    assert elf.Functions(text).name(1) == ""
    cut = tmp_path / "cut.so"
    cut.write_bytes(b"\x7fELF\x02\x01" + b"\0" * 10)
    with pytest.raises(struct.error):
        elf.Functions(cut)
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


def test_packages_of_another_environment_in_sight_are_installed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "site-packages" / "numpy.libs" / "libopenblas.so.0"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "site-packages")])
    assert library.resolve() in sampled_code.installed.__wrapped__()


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


@pytest.fixture(scope="module")
def torch_library() -> str:
    (path,) = {path for path in sampled_code._torch_libraries() if Path(path).exists()}
    return path


@pytest.fixture(scope="module")
def torch_functions(torch_library: str) -> list[tuple[int, int, str]]:
    """Lists offset, size and name of the functions of PyTorch's library that are large enough to hold a block."""
    return [function for function in symbols(Path(torch_library)) if function[1] >= 4 * BLOCK_BYTES]


def within(library: str, function: tuple[int, int, str]) -> Place:
    offset = function[0] - function[0] % BLOCK_BYTES + BLOCK_BYTES
    with Path(library).open("rb") as file:
        file.seek(offset)
        return Place(library, offset, file.read(BLOCK_BYTES))


NAMES = [
    ("Sleef_expf8_u10", SLEEF),
    ("direct_copy_kernel", COPIES),
    ("reduced_float_copy_kernel", COPIES),
    ("11copy_kernel", COPIES),
    ("25copy_same_type_transpose_", COPIES),
    ("11fill_kernel", COPIES),
    ("20fill_non_native_type", COPIES),
    ("cpu_equal", COPIES),
    ("24stack_serial_kernel_impl", COPIES),
    ("brgemm_kernel_execute", GENERATORS),
    ("mkl_blas_def_sgemm_kernel_0", ""),
    ("10mul_kernel", ""),
    ("_vec_softmax_lastdim", ""),
    ("17index_copy_kernel", ""),
    ("18masked_fill_kernel", ""),
    ("mkldnn_convolution", ""),
]


@needs_compiler
@pytest.mark.parametrize(("part", "kind"), NAMES)
def test_what_functions_of_pytorch_do_is_told_by_their_names(
    torch_library: str, torch_functions: list[tuple[int, int, str]], part: str, kind: str
) -> None:
    function = next((function for function in torch_functions if part in function[2]), None)
    if function is None:
        pytest.skip(f"this PyTorch has no {part}")
    place = within(torch_library, function)
    elsewhere, written_over = place._replace(path=COPY), place._replace(code=bytes(range(BLOCK_BYTES)))
    assert files_of(dict.fromkeys((place, elsewhere, written_over), 1.0), set()) == {
        place: kind or torch_library,
        elsewhere: COPY,
        written_over: torch_library,
    }


def test_functions_of_sleef_are_arithmetic(torch_library: str) -> None:
    beside_own = cpu_work({COPY: 60.0, SLEEF: 200.0}, 0.0, PRIVATE)
    assert beside_own.own == 1.0
    assert cpu_work({torch_library: 60.0, SLEEF: 200.0}, 0.0, PRIVATE).own == 0.0
