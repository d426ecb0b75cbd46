#!/usr/bin/env python3
"""Print figures on the package's code as a markdown table: one column a commit, then one for the working tree.

    python scripts/code_figures.py
    python scripts/code_figures.py --ref 6f14198 --ref HEAD

Lines are those of Python files below hkbench/, `__init__.py` among them; modules are files without it. A function's
size counts the lines from `def` to its end, docstring and nested functions among them. A one-caller helper is a
function of a module whose name begins with `_` and which the module names once outside of it. A branch is a member of
the enumeration in a comparison, in a match case or as the key of a dictionary display; those in the room that holds
backends or devices are not counted. A docstring of a function is imperative when its first word is one of `VERBS`
(pydocstyle's D401 passes "The names of ..." and "Whether ...", so its share says less). A process entry point is a
module that runs as `__main__`, that a fork server imports, or that calls `os.fork`.

The script needs git and the standard library only, so that it reads commits whose dependencies are not installed.
"""

from __future__ import annotations

import argparse
import ast
import io
import math
import re
import statistics
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "hkbench"
WORKING_TREE = "working tree"
MIN_MODULE_LINES = 30
MAX_TINY_LINES = 4
BROAD = frozenset({"Exception", "BaseException"})
OWN_ROOM = {"Backend": "backends", "DeviceKind": "devices"}  #: of each enumeration; its branches may stand there
VERBS = frozenset(
    re.findall(
        r"\S+",
        """
    abort accept acquire add adjust advance advise aggregate align allocate allow analyse annotate answer append apply
    arrange ask assemble assert assess assign attach average await begin bind blame blank block bound bring build cache
    calculate call cancel cap carry cast catch change check choose claim classify clean clear clip clone close collapse
    collect colour combine compare compile complete compose compress compute concentrate confine connect consume
    continue convert copy correct count cover create cut deal decide declare decode decompose deduplicate define delete
    deliver deny derive describe detach detect determine disable discard divide do download draw drive drop dump edit
    embed emit empty enable encode end enforce ensure enter enumerate erase escape estimate evaluate evict examine
    exclude execute exit expand explain export express extend extract fail fetch fill filter find finish fit fix flag
    flatten flush fold follow forbid forget fork form format forward free freeze gather generate get give go grant group
    guard guess hand handle hash have hide highlight hipify hold identify ignore import include index infer inherit
    initialise insert inspect install interpret intersect invert invoke issue iterate join judge keep kill label launch
    lay leave let limit link list listen load locate lock log look lower make map mark mask match measure merge mirror
    mount move multiply name narrow normalise note notify obtain offer omit open order override overwrite pack pad pair
    parse pass patch pause perform pick place plan plant poll pop predict prefer prepare press prevent print probe
    process produce profile prove provide publish pull push put query queue quote raise rank re-export reach read
    rebuild receive recognise record recover redirect redraw reduce refuse register reject release remember remove
    rename render repeat replace replay reply report represent request require reserve reset reshape resolve respond
    restore restrict resume retire retry return reuse reveal reverse rewrite round route run sample save say scale scan
    schedule score scrub search see seed select send separate serialise serve set shape share shorten show shrink shut
    sign signal simplify skip sleep sort spawn split spread stack stand start state stay step stop store stream strip
    submit substitute subtract succeed sum summarise supply suppress survey suspend swap switch take tell terminate test
    time toggle trace track transform translate trim truncate try turn type undo unlock unmap unpack update upgrade use
    validate verify view visit wait walk warm warn watch weaken weigh widen work wrap write yield
    """,
    )
)

Sources = Mapping[str, str]  #: text by path below the repository
Figures = dict[str, str]  #: what a row shows, by its name
Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ref", action="append", default=[], metavar="REF", help="a commit; may be repeated")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the repository (default: this one)")
    options = parser.parse_args()
    columns: dict[str, Code] = {}
    try:
        for ref in options.ref:
            columns[ref] = Code(sources_of_commit(options.root, ref))
    except subprocess.CalledProcessError as error:
        print(f"code_figures: {error.stderr.decode().strip()}: name a commit of {options.root}", file=sys.stderr)
        return 66
    columns[WORKING_TREE] = Code(sources_of_tree(options.root))
    print(table("figure", {name: figures(code) for name, code in columns.items()}))
    print()
    print(table("`Any` per thousand lines", {name: any_by_room(code) for name, code in columns.items()}))
    return 0


def sources_of_tree(root: Path) -> Sources:
    """Read the Python files of the package, and its prompts, as they lie on the disk."""
    paths = (path for folder in (PACKAGE, "prompts") for path in (root / folder).rglob("*"))
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: names[name].read_text(encoding="utf-8") for name in sorted(filter(_counts, names))}


def sources_of_commit(root: Path, ref: str) -> Sources:
    """Read the same of a commit. Raises CalledProcessError when git does not know it."""
    archive = subprocess.run(["git", "archive", "--format=tar", ref], cwd=root, capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() and _counts(member.name) else None
            if file is not None:
                found[member.name] = file.read().decode("utf-8")
    return found


def _counts(path: str) -> bool:
    parts = PurePosixPath(path)
    return (parts.parts[0] == PACKAGE and parts.suffix == ".py") or (
        "prompts" in parts.parts[:-1] and _is_prompt(parts)
    )


def _is_prompt(path: PurePosixPath) -> bool:
    return path.suffix == ".txt" and path.parts[0] in {"prompts", PACKAGE}


@dataclass(frozen=True)
class Module:
    """A parsed file of the package."""

    path: str
    lines: int
    tree: ast.Module

    @property
    def room(self) -> str:
        """The folder below the package; the file's own name where it lies beside the rooms."""
        return self.path.split("/")[1].removesuffix(".py")

    @property
    def is_plain(self) -> bool:
        """True for all but `__init__.py` and `__main__.py`."""
        return not PurePosixPath(self.path).name.startswith("__")

    def functions(self) -> Iterator[Function]:
        """Find all functions, nested ones and methods among them."""
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))


class Code:
    """The package at one commit."""

    def __init__(self, sources: Sources) -> None:
        self.modules = [
            Module(path, len(text.splitlines()), ast.parse(text))
            for path, text in sources.items()
            if path.endswith(".py")
        ]
        self.prompts = [text for path, text in sources.items() if path.endswith(".txt")]


def figures(code: Code) -> Figures:
    """Compute the rows of the first table."""
    modules = [(module.lines, module.path) for module in code.modules if module.is_plain]
    functions = [(_size(node), f"{module.path}:{node.name}") for module in code.modules for node in module.functions()]
    helpers = [node for module in code.modules for node in one_caller_helpers(module.tree)]
    imperative, described = imperative_docstrings(code.modules)
    entries = process_entry_points(code.modules)
    found = {
        f"lines of {PACKAGE}/": f"{sum(module.lines for module in code.modules):,}",
        "modules": f"{len(modules)}",
        "lines of a module: median, 95 %, largest": _distribution(modules),
        f"modules under {MIN_MODULE_LINES} lines": str(sum(n < MIN_MODULE_LINES for n, _ in modules)),
        "functions": f"{len(functions):,}",
        "lines of a function: median, 95 %, largest": _distribution(functions),
        "one-caller helpers": str(len(helpers)),
        f"one-caller helpers of at most {MAX_TINY_LINES} lines": str(
            sum(_size(node) <= MAX_TINY_LINES for node in helpers)
        ),
        "broad excepts": str(sum(map(is_broad, _nodes(code.modules, ast.ExceptHandler)))),
        "`Any` per thousand lines": _rate(code.modules),
        "imperative docstrings of functions": _share(imperative, described),
    }
    for name in OWN_ROOM:
        places = Counter(module.path for module in code.modules for _ in branches(module, name))
        found[f"branches on {name}: places, files"] = f"{places.total()} in {len(places)}"
    found["branches on backend or device in prompts"] = str(sum(map(template_branches, code.prompts)))
    found["process entry points"] = f"{len(entries)}"
    return found


def any_by_room(code: Code) -> Figures:
    """Compute the rows of the second table: each room that has an `Any`, the worst first."""
    rooms: dict[str, list[Module]] = {}
    for module in code.modules:
        rooms.setdefault(module.room, []).append(module)
    rates = {room: _rate(modules) for room, modules in rooms.items()}
    ordered = sorted(rates, key=lambda room: (-float(rates[room]), room))
    return {room: rates[room] for room in ordered if float(rates[room])}


def one_caller_helpers(tree: ast.Module) -> list[Function]:
    """Find the private functions of a module that it names once outside of themselves."""
    names = Counter(_loaded(tree))
    private = [node for node in tree.body if isinstance(node, Function) and re.match(r"_[^_]", node.name)]
    return [node for node in private if names[node.name] - Counter(_loaded(node))[node.name] == 1]


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler catches everything."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or (isinstance(one, ast.Name) and one.id in BROAD) for one in caught)


def branches(module: Module, name: str) -> Iterator[ast.Attribute]:
    """Find the members of the enumeration `name` by which the module decides."""
    if module.room == OWN_ROOM[name]:
        return
    for node in ast.walk(module.tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                deciding: Iterable[ast.expr | None] = (left, *others)
            case ast.MatchValue(value=value):
                deciding = (value,)
            case ast.Dict(keys=keys):
                deciding = keys
            case _:
                continue
        for part in (inner for one in deciding if one is not None for inner in _members(one)):
            if isinstance(part.value, ast.Name) and part.value.id == name and part.attr.isupper():
                yield part


def _members(expression: ast.expr) -> Iterator[ast.Attribute]:
    parts = expression.elts if isinstance(expression, ast.Tuple | ast.Set | ast.List) else [expression]
    return (part for part in parts if isinstance(part, ast.Attribute))


def template_branches(text: str) -> int:
    """Count the conditions of a prompt's template that ask for the backend or the device."""
    return len(re.findall(r"\{%-?\s*(?:el)?if\b[^%]*\b(?:backend|device)\b", text))


def imperative_docstrings(modules: Iterable[Module]) -> tuple[int, int]:
    """Count the docstrings of functions that begin with a verb, and all of them. Properties name what they are."""
    texts = [
        text
        for module in modules
        for node in module.functions()
        if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        and (text := ast.get_docstring(node))
    ]
    return sum(map(is_imperative, texts)), len(texts)


def is_imperative(docstring: str) -> bool:
    """Tell whether a docstring begins with a verb in the imperative."""
    found = re.match(r"([A-Za-z-]+)( of\b)?", docstring)
    return bool(found and found[1].lower() in VERBS and not found[2])


def process_entry_points(modules: Iterable[Module]) -> set[str]:
    """Name the modules at which a process of its own begins."""
    found = set()
    for module in modules:
        name = module.path.removesuffix(".py").replace("/", ".")
        for node in ast.walk(module.tree):
            match node:
                case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                    found.add(name)
                case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="fork")):
                    found.add(name)
                case ast.Call(func=ast.Name(id="ForkServer"), args=[ast.Constant(value=str(served)), *_]):
                    found.add(served)
    return found


def table(title: str, columns: Mapping[str, Figures]) -> str:
    """Format figures as markdown: a row for each name that a column has."""
    rows = list(dict.fromkeys(name for column in columns.values() for name in column))
    lines = [(title, *columns), ("---", *("---:" for _ in columns))]
    lines += [(row, *(column.get(row, "-") for column in columns.values())) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _nodes(modules: Iterable[Module], kind: type[Node]) -> Iterator[Node]:
    return (node for module in modules for node in ast.walk(module.tree) if isinstance(node, kind))


def _loaded(tree: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def _size(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _rate(modules: Sequence[Module]) -> str:
    used = sum(node.id == "Any" for node in _nodes(modules, ast.Name))
    return f"{1000 * used / max(1, sum(module.lines for module in modules)):.1f}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} % of {whole:,}" if whole else "-"


def _distribution(named: Iterable[tuple[int, str]]) -> str:
    ordered = sorted(named)
    if not ordered:
        return "-"
    at_95, _ = ordered[math.ceil(0.95 * len(ordered)) - 1]
    most, largest = ordered[-1]
    median = statistics.median(lines for lines, _ in ordered)
    return f"{median:.0f}, {at_95}, {most} (`{largest.removeprefix(PACKAGE + '/')}`)"


if __name__ == "__main__":
    sys.exit(main())
