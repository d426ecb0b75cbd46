"""Classes of errors on the real messages of the real compilers, and on the same messages as recorded.

`data/errors` holds sources with mistakes. `// how:` says how each is compiled, `// -> CLASS` marks the line of a
mistake and what its message has to be taken for, `// link:` the classes of errors that have no line. Beside each lie
the errors of clang 22 with HIP 7.2 headers, g++ 12 and GNU ld, as `errors` cuts them; RECORD_ERRORS=1 writes them anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.kittens import kittens_or_skip

from hkbench.errors import ToolchainUnavailable
from hkbench.prompts import load_prompts
from hkbench.prompts.error_classes import KEYS, SHOWN_CLASSES, classify
from hkbench.toolchain import hip
from hkbench.toolchain.diagnostics import SHOWN_LINES, errors, first_error
from hkbench.toolchain.hipkittens import Dialect

DATA = Path(__file__).parent / "data" / "errors"
SOURCES = sorted(path for path in DATA.iterdir() if path.suffix in (".hip", ".cpp"))
WORKER = Path(hip.__file__).with_name("hipify_worker.py")
# As the HipKittens prompts tell candidates to compile.
KITTENS_FLAGS = ("-U__HIP_NO_HALF_OPERATORS__", "-U__HIP_NO_HALF_CONVERSIONS__", "-Wno-invalid-constexpr", "-w")
MARK = re.compile(r"// -> (\w+)$")


def how(source: Path) -> list[str]:
    return source.read_text().splitlines()[0].removeprefix("// how: ").split()


def needs_hipcc(source: Path) -> bool:
    return how(source)[0] != "c++" or "hip/" in source.read_text()


def ids(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


def toolchain() -> hip.HipToolchain:
    try:
        return hip.find_hip()
    except ToolchainUnavailable as error:
        pytest.skip(f"NO HIP COMPILER, so no class was tested on its messages: {error}")


def kittens(dialect: str) -> Path:
    """The HipKittens tree for a dialect."""
    return kittens_or_skip(Dialect(dialect), "its real messages were not tested")


def messages(source: Path, folder: Path) -> str:
    """What the compiler says to `source`, paths of this machine left out."""
    kind, *flags = how(source)
    copy = folder / source.name
    shutil.copy(source, copy)
    roots = {f"{folder}/": ""}
    if needs_hipcc(source):
        tools = toolchain()
        roots |= {f"{tools.root}/": "/opt/rocm/"}
    if kind == "c++":
        torch = hip.find_torch()
        command = ["c++", "-std=c++20", "-isystem", str(torch.root / "include"), *flags, str(copy)]
        command += ["-o", str(folder / "out.so"), *(["-isystem", str(tools.include)] if needs_hipcc(source) else [])]
    else:
        if kind == "hipify":
            worker = [sys.executable, "-I", str(WORKER), str(hip.find_torch().root), str(folder), str(copy)]
            subprocess.run(worker, check=True, capture_output=True)
            copy = next(path for path in folder.iterdir() if path.suffix == ".hip" and path.name != copy.name)
            roots[copy.name] = source.name
        if kind in ("cdna3", "cdna4"):
            root = kittens(kind)
            roots |= {f"{root}/": "HipKittens/"}
            flags += [*KITTENS_FLAGS, f"-DKITTENS_{kind.upper()}", "-I", str(root / "include")]
            flags += ["-I", str(tools.include / "hip")]
        arch = next(word for word in how(source) if word.startswith("gfx"))
        flags = ["--cuda-device-only", *hip.TORCH_HIP_FLAGS, *(flag for flag in flags if flag != arch)]
        command = tools.compile_command(copy, folder / "out.o", arch, flags, remarks=False)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    for real, shown in roots.items():
        said = said.replace(real, shown)
    return said


def check(source: Path, shown: list[str]) -> None:
    """Each error leads to a marked line and is taken for what the mark says; no mark is left without an error."""
    lines = source.read_text().splitlines()
    marks = {number: mark[1] for number, line in enumerate(lines, 1) if (mark := MARK.search(line))}
    expected = next((line.split()[2:] for line in lines if line.startswith("// link: ")), [])
    seen: dict[int, str] = {}
    without_line: list[str] = []
    for one in shown:
        assert len(one.splitlines()) <= SHOWN_LINES
        classes = tuple(classify(one))
        places = re.findall(rf"{re.escape(source.name)}:(\d+)[:,]", one)
        number = next((int(place) for place in places if int(place) in marks), None)
        if number is None:  # what follows from a marked mistake, or has no place at all
            without_line += [] if marks else classes
        elif number not in seen:
            assert classes == (marks[number],), one
            seen[number] = marks[number]
    assert seen == marks
    assert without_line == expected


@pytest.mark.parametrize("source", SOURCES, ids=ids(SOURCES))
def test_recorded_messages_are_known(source: Path) -> None:
    recorded = source.with_suffix(".txt").read_text()
    check(source, list(errors(recorded)))


@pytest.mark.hipcc
@pytest.mark.parametrize("source", SOURCES, ids=ids(SOURCES))
def test_real_messages_are_known(source: Path, tmp_path: Path) -> None:
    shown = list(errors(messages(source, tmp_path)))
    check(source, shown)
    if os.environ.get("RECORD_ERRORS"):
        source.with_suffix(".txt").write_text(recordable(shown))


def recordable(shown: list[str]) -> str:
    """The errors without this machine's folders and without the lines of headers."""
    text = re.sub(r"/usr/lib/llvm-\d+/lib/", "/opt/rocm/lib/llvm/lib/", "\n\n".join(shown))
    text = re.sub(r"/usr/lib/gcc/\S*/include/c\+\+", "/usr/include/c++", text)
    return re.sub(r"^((?:HipKittens|/opt|/usr)/.*\n)( *\d* \| .*\n)+", r"\1", text + "\n", flags=re.MULTILINE)


#: Messages that no single source of data/errors brings about, as the tools write them.
TEXTS = [
    ("error: undefined symbol: launch(float*, int)", "launcher_mismatch"),  # a HIP build of this project
    ("ImportError: /x/ext.so: undefined symbol: _Z6launchPfi", "launcher_mismatch"),  # Python, at import
    ("error: a build does not pass on these flags: -fplugin=x.so", "refused_flag"),
    ("/usr/bin/ld: b.o: in function `f()':\nb.cpp:(.text+0x0): multiple definition of `f()'; a.o:a.cpp:(.text+0x0): "
     "first defined here", "redefinition"),
    ('cuda.cu(2): error: identifier "missing_name" is undefined', "undeclared"),
    ("ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x3a980 bytes, 0xc000 max)", "lds_overflow"),
    ("ptxas fatal   : Unresolved extern function '_Z7missingf'", "device_undefined"),
    ("cuda.cu(1): catastrophic error: cannot open source file \"nothere.h\"", "missing_header"),
    ("fatal error: error in backend: Cannot select: intrinsic %llvm.amdgcn.raw.buffer.load.lds", "target_feature"),
    ("main.cpp:3:5: error: \u2018nope\u2019 was not declared in this scope", "undeclared"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key"), TEXTS)
def test_messages_of_other_tools_are_known(text: str, key: str) -> None:
    assert tuple(classify(text)) == (key,)


def test_every_class_was_tested_on_a_message() -> None:
    tested = {key for _, key in TEXTS}
    for source in SOURCES:
        text = source.read_text()
        tested |= set(re.findall(r"// -> (\w+)$", text, re.MULTILINE))
        tested |= {key for line in re.findall(r"^// link: (.*)$", text, re.MULTILINE) for key in line.split()}
    assert tested == set(KEYS)


def test_the_documentation_has_every_class_with_its_hint() -> None:
    text = (hip.REPOSITORY / "docs" / "errors.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text, re.MULTILINE))
    book = load_prompts(hip.REPOSITORY / "prompts")
    shown = {key: hint.replace("\\|", "|") for key, hint in rows.items()}
    assert shown == {key: " ".join(book.config.reflection_hints[f"build_error.{key}"]) for key in KEYS}


def test_classes_come_in_the_order_of_the_text_with_the_candidates_line() -> None:
    lines = [
        "a.hip:1:1: error: expected ';'",
        "a.hip:2:1: error: use of undeclared identifier 'n'",
        "a.hip:3:1: error: use of undeclared identifier 'm'",
        "b.h:4:1: error: static assertion failed: Unsupported shape combination",
        "/tmp/x/a.hip:4:9: note: in instantiation of function template specialization 'mma' requested here",
        "a.hip:5:1: error: local memory (80000) exceeds limit (65536) in 'k(float*)'",
    ]
    assert list(classify("\n".join(lines)).items()) == [
        ("syntax", "a.hip:1"), ("undeclared", "a.hip:2"), ("shape_combination", "a.hip:4"), ("lds_overflow", "a.hip:5"),
    ]  # fmt: skip


def test_of_too_many_classes_the_most_specific_stay() -> None:
    lines = [f"a.hip:{number}:1: {text}" for number, (text, _) in enumerate(FORMS)]
    assert len(FORMS) == SHOWN_CLASSES + 1
    assert list(classify("\n".join(lines))) == [key for _, key in FORMS[1:]]


FORMS = [
    ("error: expected ';'", "syntax"),
    ("error: use of undeclared identifier 'n'", "undeclared"),
    ("error: no member named 'w' in 'float3'", "no_member"),
    ("error: too few arguments to function call", "call_arguments"),
    ("error: redefinition of 'f'", "redefinition"),
    ("error: call to 'f' is ambiguous", "ambiguous_call"),
    ("error: non-constant-expression cannot be narrowed from type 'long'", "narrowing"),
    ("error: kernel function type 'int ()' must have void return type", "kernel_return"),
    ("error: static assertion failed: Unsupported shape combination", "shape_combination"),
]


@pytest.mark.parametrize("text", ["", "all is well", "a.hip:1:1: warning: unused variable 'warp'", "TypeError: x\n"])
def test_text_without_a_known_error_has_no_class(text: str) -> None:
    assert classify(text) == {}


def test_a_cut_error_is_cut_the_same_again() -> None:
    for source in SOURCES:
        recorded = source.with_suffix(".txt").read_text()
        assert "\n\n".join(errors(recorded)) + "\n" == recorded
        first = first_error(recorded)
        assert first is not None
        assert recorded.startswith(first)
