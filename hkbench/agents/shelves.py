"""Where research looks: the prompts' cards, the headers and modules that kernels use, the examples that are shipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hipkittens_build.headers import checkout_root
from hkbench.backends import Backend
from hkbench.shipped import shipped_folder

#: Of torch's headers those that an extension uses; the thousands of generated ones say nothing of a name's meaning.
_TORCH = ("torch/*.h", "torch/csrc/utils/pybind.h", "ATen/*.h", "ATen/core/**/*.h", "ATen/cuda/*.h", "ATen/hip/*.h")
_TORCH_BELOW = ("c10/**/*.h", "pybind11/**/*.h")


@dataclass(frozen=True)
class Shelf:
    """Files of one kind."""

    title: str  #: before their names: "HipKittens", "torch"
    root: Path
    patterns: tuple[str, ...]

    def files(self) -> Iterator[Path]:
        """Yield the files, in the order of the patterns and their names."""
        for pattern in self.patterns:
            yield from sorted(path for path in self.root.glob(pattern) if path.is_file())

    def name_of(self, path: Path) -> str:
        """Return how a finding names a file of the shelf."""
        return f"{self.title} {path.relative_to(self.root).as_posix()}"


def shelves(backend: Backend, arch: str | None, prompts: Path) -> tuple[Shelf, ...]:
    """Return where names of a backend's kernels for an architecture are explained, the nearest to the kernel first."""
    dialect = backend.dialect(arch)
    own = (f"_{backend.name}_{dialect}.txt", f"_{backend.name}_example_*_{dialect}.txt") if dialect is not None else ()
    found = [Shelf("prompts", prompts, (backend.card, *own)), *_headers(backend, dialect)]
    found.append(_examples(backend, dialect))
    return tuple(shelf for shelf in found if shelf.root.is_dir())


def _headers(backend: Backend, dialect: str | None) -> Iterator[Shelf]:
    tree = checkout_root()
    if dialect is not None and tree is not None:
        include = tree[1] / "include"
        yield Shelf("HipKittens", include, (f"{dialect}/**/*.cuh",) if (include / dialect).is_dir() else ("**/*.cuh",))
    if backend.name == "triton":
        yield from _package("triton", "language", ("*.py", "extra/**/*.py"))
    if backend.builds_extensions:
        yield from _package("torch", "include", (*_TORCH, *_TORCH_BELOW))


def _package(name: str, folder: str, patterns: tuple[str, ...]) -> Iterator[Shelf]:
    """Yield a folder of an installed package, which is not imported for it."""
    spec = find_spec(name)
    for place in spec.submodule_search_locations or () if spec is not None else ():
        yield Shelf(f"{name}/{folder}", Path(place) / folder, patterns)


def _examples(backend: Backend, dialect: str | None) -> Shelf:
    if dialect is not None:
        return Shelf("examples/hipkittens", shipped_folder("examples") / "hipkittens", (f"{dialect}/*.py",))
    suffix = {"cuda": ".cu", "hip": ".hip", "cpp": ".cpp"}.get(backend.name)
    return Shelf("kernels", shipped_folder("kernels"), (f"*_{backend.name}{suffix or '.py'}",))
