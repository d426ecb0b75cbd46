"""Is it HipKittens, or plain HIP beside an include of kittens.cuh? By the source, and by the kernels that ran.

HipKittens' operations are inlined: no name of theirs is left in a profile. So the source says which kernels call one,
also through device functions and macros of the candidate's own, and the profile, where there is one, says which kernels
ran. Code is read as it stands: a call in a branch that is never taken counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ast_grep_py import SgNode, SgRoot

from hkbench.profile.names import base
from hkbench.records import KernelLanguage
from hkbench.sandbox.apart import NotFinished, answered

MAX_CHARACTERS = 1 << 18  #: of C++ that is read
MAX_MACRO_LENGTH = 1_000  #: characters of one
MAX_NAME_LENGTH = 400
SHOWN = 6  #: names in a reason
SECONDS = 10.0  #: of processor time, to read all sources of a candidate
MEMORY = 2 << 30

_DEVICE_CODE = re.compile(r"#\s*include\b|\b__global__\b|\b__device__\b")
# The text is a candidate's: where a quantifier could be tried again for each place, it is possessive or bounded.
_LEXEME = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*+"?|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n]){1,8}+'""", re.DOTALL
)
_HEADER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<](?:[\w./-]*/)?kittens\.cuh[">]', re.MULTILINE)
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)]*\))?(.*)", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_LAUNCH = re.compile(r"(?<!<)<<<(?!<)([^;]{0,500}?)>>>")
_BOUNDS = re.compile(r"\b(?:__launch_bounds__|__attribute__|alignas)\s*\(")
_QUALIFIER = re.compile(r"\b(?:__device__|__host__|__forceinline__|__noinline__|__shared__|__restrict__)")
_GROUP_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*(?:kittens\s*::\s*)?group\s*<")
_LAMBDA = re.compile(r"\bauto\s*+&?\s*+(\w++)\s*+=\s*+\[")
_CALL = re.compile(r"\b((?:\w++\s*+(?:<[\w\s,:*]*+>)?+\s*+::\s*+)*+\w++)\s*+(?:<[\w\s,:*]*+>)?+\s*+\(")

#: Operations on tiles and vectors, and the fewest arguments that a call of each has.
_OPERATIONS = (
    (re.compile(r"zero|one|ones|pos_infty|neg_infty|tril|triu|make_causal|(?:left|right|upper|lower)_fill"), 1),
    (re.compile(r"mma_A\w+"), 4),
    (re.compile(r"(?:load|store)(?:_async)?|load_global_to_register_buffer|store_register_buffer_to_shared"), 2),
    (re.compile(r"copy|relu|gelu|dgelu|transpose(?:_\w+)?|swap_layout(?:_\w+)?|broadcast(?:_row|_col)?"), 2),
    (re.compile(r"(?:row|col)_(?:max|min|sum|prod)|sum|prod"), 2),
    (re.compile(r"unary_(?:map|op)|bin_(?:map|op)"), 2),
    (re.compile(r"(?:add|sub|mul|div|max|min)_(?:row|col)|add|sub|mul"), 3),
    (re.compile(r"exp2?|log2?|abs"), 2),  # with one argument these are the numbers' own
    (re.compile(r"div|max|min"), 3),  # with two these are
)


@dataclass
class _Function:
    """Functions (or macros) of one name, taken together."""

    is_kernel: bool = False
    operations: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)


def kernel_language(sources: Sequence[str], ran: Iterable[str] | None = None) -> KernelLanguage:
    """Return HipKittens if a `__global__` function of the `sources` reaches an operation of it, else plain HIP.

    `ran`: names of the kernels that a profiler saw, mangled or not; then one of those has to be among them.
    """
    ran = None if ran is None else tuple(ran)
    used, reason = _used(sources, ran)
    backend = "hipkittens" if used else "hip"
    return KernelLanguage(backend=backend, reason=reason, kernels=used, ran=ran is not None)


def kernel_language_apart(sources: Sequence[str], ran: Iterable[str] | None = None) -> KernelLanguage | None:
    """Read `kernel_language` in a process of its own: the parser has texts that keep it busy for hours.

    None for such a one.
    """
    ran = None if ran is None else tuple(ran)
    try:
        found = answered(lambda: kernel_language(sources, ran).model_dump(mode="json"), SECONDS, MEMORY)
    except NotFinished:
        return None
    return KernelLanguage.model_validate(found)


def _used(sources: Sequence[str], ran: Sequence[str] | None) -> tuple[tuple[str, ...], str]:
    """Return the kernels that are HipKittens, and why these, or why none."""
    if sum(map(len, sources)) > MAX_CHARACTERS:
        return (), f"the sources have more than {MAX_CHARACTERS} characters and were not read"
    if not any(_HEADER.search(_LEXEME.sub(_without_comments, source)) for source in sources):
        return (), "no source includes kittens.cuh"
    functions = _functions(sources)
    kernels = [name for name, function in functions.items() if function.is_kernel]
    if not kernels:
        return (), "kittens.cuh is included, but no __global__ function was found"
    used = {name: operations for name in kernels if (operations := _reached(name, functions))}
    if not used:
        return (), f"kittens.cuh is included, but no operation of it is called in {_listed(kernels)}"
    if ran is not None:
        names = {base(name) for name in ran}
        if names.isdisjoint(used):
            return (), f"{_listed(used)}, written with HipKittens, did not run"
        used = {name: operations for name, operations in used.items() if name in names}
    return tuple(used), "; ".join(f"{name} uses {_listed(sorted(used[name]))}" for name in list(used)[:SHOWN])


def device_sources(candidate: str) -> tuple[str, ...]:
    """Return the strings of a candidate's Python file that look like device code; none where it is not Python."""
    try:
        tree = ast.parse(candidate)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(text for text in _strings(tree) if _DEVICE_CODE.search(text))


def _strings(tree: ast.Module) -> Iterator[str]:
    formatted: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            formatted.update(map(id, node.values))
            # What stands in braces is a number or a name: either reads as a name.
            yield "".join(str(v.value) if isinstance(v, ast.Constant) else "_" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in formatted:
            yield node.value


def _listed(names: Iterable[str]) -> str:
    words = list(names)
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more


def _reached(kernel: str, functions: dict[str, _Function]) -> set[str]:
    """Return the operations that a kernel calls, itself or through functions of the candidate's own."""
    found: set[str] = set()
    seen, left = {kernel}, [kernel]
    while left:
        function = functions[left.pop()]
        found |= function.operations
        new = {name for name in function.calls if name in functions} - seen
        seen |= new
        left += new
    return found


def _functions(sources: Sequence[str]) -> dict[str, _Function]:
    """Return functions and macros by name, of all sources: a kernel may call what stands in another one."""
    texts = [_LEXEME.sub(_without_strings, source) for source in sources]
    groups = {name for text in texts for name in _GROUP_ALIAS.findall(text)}
    bodies: list[tuple[str, bool, list[tuple[str, int]]]] = []
    own = {name for text in texts for name in _LAMBDA.findall(text)}
    for text in texts:
        macros = filter(None, map(_DEFINE.fullmatch, _DIRECTIVE.findall(text)))
        bodies += [(macro[1], False, _macro_calls(macro[2][:MAX_MACRO_LENGTH])) for macro in macros]
        bodies += _parsed(_DIRECTIVE.sub(_blank, text))
    functions: dict[str, _Function] = {}
    own |= {name for name, *_ in bodies}
    for name, is_kernel, calls in bodies:
        function = functions.setdefault(name, _Function())
        function.is_kernel |= is_kernel
        for callee, arguments in calls:
            scope, _, word = callee.rpartition("::")
            if _is_operation(scope, word, arguments, groups, own):
                function.operations.add(word)
            else:
                function.calls.add(word)
        function.calls |= {word for callee, _ in calls if (word := callee.rpartition("::")[2]) in own}
    return functions


def _is_operation(scope: str, word: str, arguments: int, groups: set[str], own: set[str]) -> bool:
    head = scope.partition("::")[0]
    if scope and head not in {"kittens", "group"} and head not in groups:
        return False
    if not scope and word in own:
        return False  # a function of the candidate's own with that name: what it calls is looked at
    for pattern, fewest in _OPERATIONS:
        if pattern.fullmatch(word):
            return arguments >= (min(fewest, 2) if scope else fewest)
    return False


def _parsed(text: str) -> list[tuple[str, bool, list[tuple[str, int]]]]:
    """Return (name, is a kernel, [(callee, number of arguments)]) of each function defined in `text`."""
    plain = _QUALIFIER.sub(_blank, _without_bounds(_LAUNCH.sub(r"  (\1)  ", text)))
    # A kernel is told from the unchanged text; the parser gets a word of C++ of the same length.
    code = plain.replace("__global__", "extern    ").encode("ascii", "replace").decode()
    found: list[tuple[str, bool, list[tuple[str, int]]]] = []
    left: list[tuple[SgNode, list[tuple[str, int]] | None]] = [(SgRoot(code, "cpp").root(), None)]
    while left:
        node, calls = left.pop()
        kind = node.kind()
        if kind == "function_definition" and (body := node.field("body")) and (declarator := node.field("declarator")):
            name = _name(declarator)
            if calls is not None:
                calls.append((name, 0))  # a method of a local class: whoever holds it is taken to call it
            calls = []
            head = text[node.range().start.index : body.range().start.index]
            found.append((name, "__global__" in head, calls))
        elif kind == "call_expression" and calls is not None:
            calls += _call(node)
        left += [(child, calls) for child in reversed(node.children())]
    return found


def _call(node: SgNode) -> list[tuple[str, int]]:
    """Return what is called, and with how many arguments; nothing for a member."""
    callee, arguments = node.field("function"), node.field("arguments")
    if callee is None or arguments is None or callee.kind() == "field_expression":
        return []
    return [(_plain(callee.text()[:MAX_NAME_LENGTH]), len(arguments.named_children()))]


def _name(declarator: SgNode) -> str:
    """Return the identifier that a declarator declares, without scope and template arguments."""
    inner: SgNode | None = declarator
    while inner is not None and inner.kind() not in {"identifier", "field_identifier", "operator_name"}:
        following = inner.field("declarator") or inner.field("name")
        if following is None and inner.kind() == "reference_declarator":
            following = inner.named_children()[-1] if inner.named_children() else None
        inner = following
    return _plain((inner or declarator).text()[:MAX_NAME_LENGTH]).rpartition("::")[2]


def _plain(callee: str) -> str:
    """Return a plain name: `kittens :: group<4>::load<1>` is `kittens::group::load`."""
    kept, depth = [], 0
    for sign in callee:
        depth -= sign == ">"
        if depth <= 0 and sign not in "<> \t\n":
            kept.append(sign)
        depth += sign == "<"
    return "".join(kept).removeprefix("::")


def _macro_calls(body: str) -> list[tuple[str, int]]:
    """Return the calls in a macro's body, which is no whole piece of C++; assume enough where arguments are open."""
    return [(_plain(match[1]), 4 if "," in body[match.end() :] else 1) for match in _CALL.finditer(body)]


def _blank(match: re.Match[str]) -> str:
    """Return as many blanks as the match has characters, with its line ends kept."""
    return re.sub(r"[^\n]", " ", match[0])


def _without_comments(match: re.Match[str]) -> str:
    return _blank(match) if match[0].startswith("/") else match[0]


def _without_strings(match: re.Match[str]) -> str:
    if match[0].startswith("/"):
        return _blank(match)
    return f"{match[0][0]}{' ' * (len(match[0]) - 2)}{match[0][0]}"


def _without_bounds(text: str) -> str:
    """Launch bounds and attributes blanked, with what stands in their brackets."""
    pieces, at = [], 0
    for match in _BOUNDS.finditer(text):
        if match.start() < at:
            continue
        depth, end = 1, match.end()
        while depth and end < min(len(text), match.end() + 1000):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        pieces += [text[at : match.start()], re.sub(r"[^\n]", " ", text[match.start() : end])]
        at = end
    return "".join([*pieces, text[at:]])
