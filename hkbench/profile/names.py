"""Names of kernels: the parts of a demangled name, and what a source text or a built file defines."""

from __future__ import annotations

import ast
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hkbench.sandbox import folders
from hkbench.sandbox.apart import answered

ANONYMOUS = "(anonymous namespace)"
_NO_KERNEL = frozenset(("void", "sizeof", "alignas", "decltype", "template", "__launch_bounds__", "__attribute__"))
_COMMENT_BEGIN = re.compile(r"/\*|//[^\n]*")
_GLOBAL = re.compile(r"\b__global__\b([^;{}]{0,2000})[;{]")
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*[<(]")
_TRITON = re.compile(r"@(?:triton\.|gluon\.)?jit\b[^\n]*\n(?:[^\n]*\n){0,60}?\s*def\s+(\w+)")
_STRING = re.compile(rb"[A-Za-z_]\w{2,500}")
#: What nvcc and hipcc register at load: mangled names, extern "C" names and those of a kernel's own entry.
_BUILT_ENDINGS = (".so", ".cubin", ".hsaco", ".o", ".ptx")
#: Triton's first text of a kernel, which names the Python file of each function (`.source` has it unoptimised).
_TRITON_ENDINGS = (".ttir", ".source")
_TRITON_KERNEL = re.compile(r"\btt\.func public @\"?([\w.$]+)")
_TRITON_END = re.compile(r"^ {0,4}\} loc\((#\w+|\".*?\":\d+:\d+)\)", re.MULTILINE)
_TRITON_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":\d+:\d+')
_TRITON_ALIAS = r"^{} = loc\((.*)\)$"
MAX_ALIASES = 8
#: Where installed packages lie; a candidate's own file does not.
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
#: Functions by which PyTorch and libraries are told to compute with fewer bits; also within a mangled name.
LOWERING = re.compile(
    r"setAllowTF32(?:CuBLAS|CuDNN|OneDNN)|setFloat32(?:Matmul)?Precision|setAllow(?:FP16|BF16)Reduction(?:CuBLAS|CPU)"
    r"|setAllowFP16AccumulationCuBLAS|setAllowFP16BF16ReductionMathSDP|cublasSetMathMode|hipblasSetMathMode"
    r"|rocblas_set_math_mode|cudnnSet\w*MathType|(?:dnnl|mkldnn)_set_default_fpmath_mode"
    r"|(?:dnnl|mkldnn)_primitive_attr_set_fpmath_mode|cblas_set_fpmath_mode|vmlSetMode|set_autocast_enabled"
)
_INDUCTOR_MARKS = (b"torch._inductor", b"torch/csrc/inductor", b"inductor_entry_cpp", b"cpp_fused_")
_LIBRARY_MARKS = (b"OpenBLAS 0.", b"oneDNN v", b"oneAPI Math Kernel Library")  #: what these libraries say of themselves
SOURCE_ENDINGS = (".py", ".cu", ".cuh", ".hip", ".cpp", ".cc", ".cxx")
MAX_ENTRIES = 1_000_000  #: names that are looked through: more than the limits of a runner let it make
MAX_FILES = 2000
MAX_COMPARED = 10_000  #: names in a folder that is looked at for changes; one with more counts as changed
MAX_BYTES = 64 * 1024 * 1024  #: of one file
MAX_SOURCE = 1 << 22  #: bytes of a Python file that are looked through
MAX_BYTES_TOTAL = 512 * 1024 * 1024
READ_SECONDS = 60.0  #: of processor time, for all files that a build left
READ_MEMORY = 4 << 30


@dataclass(frozen=True)
class Built:
    """What a build left in the candidate's private folder."""

    kernels: frozenset[str] = frozenset()  #: base names that stand in binaries, also of host functions
    inductor: frozenset[str] = frozenset()  #: functions in what torch.compile wrote
    objects: dict[str, str] = field(default_factory=dict)  #: shared objects that are "inductor" or "library"
    #: Kernels whose text is an installed package's -> the file that it comes from.
    foreign: dict[str, str] = field(default_factory=dict)
    #: Functions that lower the precision, which a shared object imports or names -> the object's name.
    lowers: dict[str, str] = field(default_factory=dict)


def qualified(name: str) -> str:
    """Return the qualified name: `void ns::f<float, g<int> >(float*)` -> `ns::f`; mangled parts joined by `::`.

    The anonymous namespace and what a tool appends (`.kd`, `[clone ...]`) are left out.
    """
    if name.startswith("_Z"):
        return "::".join(_mangled_parts(name)) or name
    text = name.replace(f"{ANONYMOUS}::", "").replace(ANONYMOUS, "")
    kept, depth, before = [], 0, ""
    for sign in text:
        if not depth and sign in "([":
            break
        if sign == "<":
            depth += 1
        elif not depth:
            kept.append(sign)
        elif sign == ">" and before != "-":
            depth -= 1
        before = sign
    words = "".join(kept).strip().removesuffix(".kd").split()
    return words[-1] if words else ""


def base(name: str) -> str:
    """Return the identifier alone, without namespaces, templates and arguments."""
    return qualified(name).rsplit("::", 1)[-1]


def _mangled_parts(name: str) -> Iterator[str]:
    """Yield the identifiers of an Itanium-mangled name, outermost first."""
    place = 3 if name.startswith("_ZN") else 2
    while place < len(name) and name[place] in "KVrLS":
        place += 2 if name[place] == "S" else 1
    while digits := re.match(r"L?(\d{1,4})", name[place:]):
        place += digits.end()
        part = name[place : place + int(digits[1])]
        place += int(digits[1])
        if not part.startswith("_GLOBAL__N_"):
            yield part
        if not name.startswith("_ZN"):
            return
        if name[place : place + 1] == "I":  # template arguments: what follows is no part of the name but of nested ones
            return


def device_functions(source: str) -> set[str]:
    """Return the `__global__` functions in a candidate's text, also in strings.

    Generous: what stands before a parenthesis or `<` in a `__global__` declaration, macros included.
    """
    found: set[str] = set()
    for text in (source, without_comments(source)):
        for declaration in _GLOBAL.finditer(text):
            found.update(_CALLED.findall(declaration[1]))
    return found - _NO_KERNEL


def without_comments(source: str) -> str:
    """Return a text with a blank for each comment of C++. One that has no end is left as it is.

    In one pass: a regular expression for all of it takes the square of the time where many have no end.
    """
    kept: list[str] = []
    at, last_end = 0, source.rfind("*/")
    while begin := _COMMENT_BEGIN.search(source, at):
        end = begin.end()
        if begin[0] == "/*":
            if end > last_end:
                kept.append(source[at:end])
                at = end
                continue
            end = source.index("*/", end) + 2
        kept += [source[at : begin.start()], " "]
        at = end
    return "".join([*kept, source[at:]])


def triton_functions(source: str) -> set[str]:
    """Return Triton's jit functions in a candidate's Python text."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(_TRITON.findall(source))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(is_jit(decorator) for decorator in node.decorator_list):
            found.add(node.name)
        if isinstance(node, ast.Call) and is_jit(node.func):
            found.update(argument.id for argument in node.args if isinstance(argument, ast.Name))
    return found


def is_jit(node: ast.expr) -> bool:
    """Return whether it is `triton.jit`, `jit` or `triton.jit(...)`; `torch.jit.script` is none of these."""
    if isinstance(node, ast.Call):
        return is_jit(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr == "jit" and not (isinstance(node.value, ast.Name) and node.value.id == "torch")
    return isinstance(node, ast.Name) and node.id in ("jit", "triton_jit")


_KNOWN = TypeAdapter(dict[str, Built])


@dataclass(frozen=True)
class FolderRead:
    """What is known of a folder: its files by path and SHA-256 of the content, and those it had in its last state."""

    files: dict[str, Built] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    state: str | None = None  #: see `folders.state`


class BuildFolder:
    """What a build has left in a folder by now. A file whose bytes are known is not searched again."""

    def __init__(self, folder: str, read: FolderRead = FolderRead()) -> None:
        """Take what another one has `read` in the same folder."""
        self._folder = folder
        self.known = dict(read.files)  #: by path and SHA-256 of the content
        self._present, self._state = read.present, read.state
        self._copied: tuple[str, dict[str, str]] | None = None  # in a state

    @property
    def whole(self) -> FolderRead:
        """What is known, for another process."""
        return FolderRead(self.known, self._present, self._state)

    def read(self) -> Built:
        """Read the candidate's files, as bytes and within a bound.

        Raises:
            TooDeep: see `contents`.
        """
        return self._together([self._file(*file) for file in self._contents()])

    def read_apart(self) -> Built:
        """Read as `read`, in a process of its own: the files may take any time to look through. Nothing new is.

        Raises:
            TooDeep: as there.
            NotFinished: it takes more than `READ_SECONDS` or `READ_MEMORY`.
        """
        state = folders.state(self._folder, MAX_COMPARED)  # first: what is written meanwhile is read the next time
        if state is None or state != self._state:
            found = answered(self._read_new, READ_SECONDS, READ_MEMORY)
            if found is None:
                raise folders.TooDeep
            self.known |= _KNOWN.validate_python(found["new"])
            self._present, self._state = tuple(found["keys"]), state
        return self._together([self.known[key] for key in self._present])

    def copied(self, look: Callable[[], dict[str, str]]) -> dict[str, str]:
        """Return what `look` finds in the folder as it was read last; it looks again when that has changed."""
        if self._copied is not None and self._copied[0] == self._state:
            return self._copied[1]
        found = look()
        self._copied = None if self._state is None else (self._state, found)
        return found

    def _read_new(self) -> dict[str, Any] | None:
        """Return the keys of all files, and what of them was not known; None: they lie too deep."""
        before, keys = set(self.known), []
        try:
            for path, content in self._contents():
                self._file(path, content)
                keys.append(_key(path, content))
        except folders.TooDeep:
            return None
        new = {key: built for key, built in self.known.items() if key not in before}
        return {"keys": keys, "new": _KNOWN.dump_python(new, mode="json")}

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        return contents(self._folder, (*_BUILT_ENDINGS, *_TRITON_ENDINGS, ".py"))

    @staticmethod
    def _together(files: list[Built]) -> Built:
        return Built(
            frozenset(name for file in files for name in file.kernels),
            frozenset(name for file in files for name in file.inductor),
            {path: maker for file in files for path, maker in file.objects.items()},
            {name: source for file in files for name, source in file.foreign.items()},
            {name: path for file in files for name, path in file.lowers.items()},
        )

    def _file(self, path: str, content: bytes) -> Built:
        key = _key(path, content)
        if key not in self.known:
            self.known[key] = _read_file(path, content, self._folder)
        return self.known[key]


def _key(path: str, content: bytes) -> str:
    return f"{path} {sha256(content).hexdigest()}"


def triton_origin(text: str) -> tuple[str, str] | None:
    """Return the kernel in a text of Triton's (`.ttir`, `.source`) and the Python file that defines it, if it says."""
    kernel = _TRITON_KERNEL.search(text)
    end = _TRITON_END.search(text, kernel.end()) if kernel else None
    if kernel is None or end is None:
        return None
    place = end[1]
    for _ in range(MAX_ALIASES):
        if found := _TRITON_PLACE.search(place):
            return kernel[1], found[1]
        alias = re.search(r"#\w+", place)
        named = alias and re.search(_TRITON_ALIAS.format(re.escape(alias[0])), text, re.MULTILINE)
        if not named:
            return None
        place = named[1]
    return None


def _of_triton(content: bytes, folder: str) -> Built:
    """Return the kernel as an installed package's, or as another's where the file that it names does not define it.

    In `folder` the candidate's builds write: what it wrote there and removed does not speak for it.
    """
    origin = triton_origin(content.decode(errors="replace"))
    if origin is None:
        return Built()
    kernel, path = origin
    if _INSTALLED.search(path):
        return Built(foreign={kernel: path})
    if path.startswith("/") and _lacks(path, kernel):
        return Built(foreign={kernel: f"{path}, in which it is not"})
    if Path(path).is_relative_to(folder) and not os.path.lexists(path):
        return Built(foreign={kernel: f"{path}, which was removed"})
    return Built()


def _lacks(path: str, function: str) -> bool:
    """Return whether a Python file, whose name a candidate wrote, can be read here and has no function of that name."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return False
            text = file.read(MAX_SOURCE)
    except OSError:
        return False
    return re.search(rb"\bdef\s+%s\b" % re.escape(function.encode()), text) is None


def _read_file(path: str, content: bytes, folder: str) -> Built:
    if path.endswith(_TRITON_ENDINGS):
        return _of_triton(content, folder)
    made_by_inductor = "torchinductor_" in path or any(mark in content for mark in _INDUCTOR_MARKS[:2])
    if path.endswith(".py"):
        functions = re.findall(r"\bdef (\w+)\(", content.decode(errors="replace")) if made_by_inductor else ()
        return Built(inductor=frozenset(functions))
    if made_by_inductor or any(mark in content for mark in _INDUCTOR_MARKS):
        return Built(objects={os.path.realpath(path): "inductor"})
    if any(mark in content for mark in _LIBRARY_MARKS):
        return Built(objects={os.path.realpath(path): "library"})
    return Built(frozenset(_names_in(content, Path(path))), lowers=_lowering(content, path))


def _lowering(content: bytes, path: str) -> dict[str, str]:
    """Return what a shared object imports, or names for the dynamic linker, to lower the precision."""
    if not (path.endswith(".so") or ".so." in path):
        return {}
    texts = (match.decode() for match in _STRING.findall(content))
    return {found[0]: Path(path).name for text in texts if (found := LOWERING.search(text))}


def contents(folder: str, endings: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of files in `folder` with these endings (of versioned ones, `.so.1`, too); within bounds.

    No link is followed and nothing is waited for: whoever writes there may have put anything in its place. What of a
    path is not text stands as a question mark in it.

    Raises:
        TooDeep: folders are nested there as no build nests them.
    """
    left = MAX_BYTES_TOTAL
    found = 0
    for number, entry in enumerate(folders.walk(folder, in_order=True)):
        if number >= MAX_ENTRIES or found >= MAX_FILES or left <= 0:
            return
        if entry.is_folder or not (entry.name.endswith(endings) or ".so." in entry.name):
            continue
        content = folders.read(entry, min(MAX_BYTES, left))
        found += 1
        left -= len(content)
        yield entry.path.encode(errors="replace").decode(), content


def texts(folder: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of the sources that a build or the candidate has written into `folder`; within bounds."""
    for path, content in contents(folder, SOURCE_ENDINGS):
        yield path, content.decode(errors="replace")


def _names_in(content: bytes, path: Path) -> set[str]:
    names = {match.decode() for match in _STRING.findall(content)}
    found = {base(name) if name.startswith("_Z") else name for name in names}
    if path.suffix in (".cubin", ".hsaco", ".ptx"):
        found.add(path.stem)  # Triton names its files after the function
    return found
