"""hkbench compile: one kernel file, compiled alone."""

from __future__ import annotations

import argparse
import asyncio
import shutil
from pathlib import Path

from hkbench.cli.arguments import positive
from hkbench.cli.fields import add_field, options_of, with_default
from hkbench.cli.verdicts import kernel_resources
from hkbench.compile_only.kernel_file import Asked, compile_file
from hkbench.compile_only.workplace import Workplace
from hkbench.engine.private_folder import temporary_folder
from hkbench.errors import InputMissing, UsageError
from hkbench.records import EvaluationSettings
from hkbench.records.compiled import CompiledFile, PtxResources
from hkbench.registry import BACKENDS
from hkbench.store.sanitize import strip_escapes

DESCRIPTION = """Compile one kernel file alone, for a GPU that need not be there, and say which way it went.

FILE is a Triton kernel (.py), CUDA (.cu), HIP or HipKittens (.hip, .cpp), C++ (.cpp), or a candidate with ModelNew
(.py). Compilers, and what imports the file, run in a sandbox.

Exit code: 0 it compiles, 2 it does not; 64 usage, 66 no such file, 69 a compiler is missing."""

NOT_COMPILED = 2
ERROR_LINES = 40
_SETTINGS = ("build_timeout", "require_isolation")
_TRITON_OPTIONS = {"warps": "num_warps", "stages": "num_stages"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the kernel file")
    parser.add_argument(
        "--arch",
        metavar="TARGET",
        help="gfx942, gfx950, sm_90 and the like, or cpu (default: sm_90 for CUDA, cpu for C++, else gfx942)",
    )
    parser.add_argument(
        "--backend",
        choices=[entry.name for entry in BACKENDS],
        help="what it is written in, where suffix and text do not tell",
    )
    parser.add_argument(
        "--signature",
        action="append",
        default=[],
        metavar="TEXT",
        help='types and constants of a Triton kernel, as "kernel: *fp32, *fp32, i32, 1024"; may be repeated '
        "(default: by annotations and defaults)",
    )
    parser.add_argument("--warps", type=positive, metavar="N", help="num_warps of Triton kernels")
    parser.add_argument("--stages", type=positive, metavar="N", help="num_stages of Triton kernels")
    parser.add_argument(
        "--problem", type=Path, metavar="P", help="the problem of a candidate in Triton, with whose inputs it is called"
    )
    parser.add_argument(
        "-o",
        dest="output",
        type=Path,
        metavar="OUT",
        help="keep what came out: the form that the suffix names (.ptx, .cubin, .amdgcn, .hsaco, .o), or the last",
    )
    parser.add_argument("--json", action="store_true", help="print all that is known as JSON")
    for name in _SETTINGS:
        field = EvaluationSettings.model_fields[name]
        add_field(parser, name, field, with_default(field.description or "", field.default), field.default)


def run(options: argparse.Namespace) -> int:
    """Print what compiling came to; return its exit code."""
    if options.output is not None and not options.output.absolute().parent.is_dir():
        raise InputMissing(f"{options.output.parent}: there is no such folder for -o; make it first")
    settings = options_of(EvaluationSettings, options)
    asked = Asked(
        file=options.file,
        arch=options.arch,
        backend=options.backend,
        signatures=signatures(options.signature),
        options={name: getattr(options, flag) for flag, name in _TRITON_OPTIONS.items() if getattr(options, flag)},
        problem=options.problem,
    )
    with temporary_folder() as folder:
        found, place = asyncio.run(compile_file(asked, settings, folder / "compile"))
        kept = _keep(options.output, place) if found.error is None and options.output is not None else None
    print(found.model_dump_json(indent=2) if options.json else _shown(found))
    if kept is not None and not options.json:
        print(f"  {kept} kept in {options.output}")
    return NOT_COMPILED if found.error is not None else 0


def signatures(texts: list[str]) -> dict[str, tuple[str, ...]]:
    """Return by kernel, "" where none is named, the words of a signature. UsageError for one without words."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, colon, rest = text.partition(":")
        if not colon or not name.strip().isidentifier() or "," in name:
            name, rest = "", text
        words = tuple(word.strip() for word in rest.split(","))
        if not all(words) or name.strip() in found:
            raise UsageError(
                f"--signature {text!r}: write a kernel's name once, and a type or a number for each argument: "
                '"kernel: *fp32, *fp32, i32, 1024"'
            )
        found[name.strip()] = words
    return found


def _keep(output: Path, place: Workplace) -> str:
    """Copy one form of what came out, and return which. UsageError where there is not one of it."""
    wanted = {"o": "object", "": None}.get(output.suffix.removeprefix("."), output.suffix.removeprefix("."))
    forms = [form.form for form in place.forms()]
    chosen = wanted if wanted in forms else next(reversed(forms), None)
    found = list(place.kept(chosen)) if chosen is not None else []
    if len(found) != 1:
        named = ", ".join(sorted({one.kernel or "" for one, _ in found}))
        raise UsageError(
            f"-o {output}: {len(found)} kernels came out ({named}), and it names one file: say with --signature "
            "which kernel is meant"
            if found
            else f"-o {output}: nothing came out that could be kept; a candidate's builds are not"
        )
    shutil.copyfile(found[0][1], output)
    return found[0][0].form


def _shown(found: CompiledFile) -> str:
    word = "compiles" if found.error is None else "does not compile"
    lines = [
        f"{found.file}: {word} for {found.target} ({found.seconds:.1f} s)",
        f"  way       {found.way}",
        f"  compiler  {found.compiler}",
    ]
    for form in found.forms:
        whose = "" if form.kernel is None else f" of {form.kernel}"
        lines.append(f"  {form.form}{whose}: {form.bytes} bytes")
    lines += [kernel_resources(kernel) for kernel in found.resources]
    lines += [_ptx(kernel) for kernel in found.ptx_resources]
    lines += [f"  note: {note}" for note in found.notes]
    if found.error is not None:
        place = "" if found.line is None else f" (line {found.line})"
        lines.append(f"  error{place}:")
        lines += [f"  | {line}" for line in found.error.splitlines()[:ERROR_LINES]]
    return strip_escapes("\n".join(lines))


def _ptx(kernel: PtxResources) -> str:
    spilled = (kernel.spill_store_bytes or 0) + (kernel.spill_load_bytes or 0)
    return (
        f"  {kernel.arch} {kernel.name}: {kernel.registers} registers, {kernel.shared_bytes} bytes of shared memory, "
        f"{spilled} bytes of spills, {kernel.stack_bytes or 0} bytes of stack"
    )
