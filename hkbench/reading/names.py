"""What the expressions of a Python file stand for: dotted names of imported things, and constants.

An expression resolves to a set of dotted names: `torch.cuda.Stream`, `torch.cuda.Stream()` for the result of a
call, `local:ModelNew.forward` for what the file defines itself. The empty set: not known.
"""

from __future__ import annotations

import ast
import builtins

from hkbench.reading import fold
from hkbench.reading.budget import Budget
from hkbench.reading.scopes import Binding, Scopes

_MOST = 12  #: names that one expression may stand for
_DEPTH = 60
LOCAL = "local:"
_BUILTINS = frozenset(dir(builtins))
# Standard modules are reached through others, too: `torch.os`, `threading._sys`.
_STANDARD = frozenset(
    [
        "atexit",
        "base64",
        "builtins",
        "ctypes",
        "gc",
        "importlib",
        "inspect",
        "io",
        "os",
        "pathlib",
        "pickle",
        "platform",
        "random",
        "shutil",
        "signal",
        "socket",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "types",
        "zlib",
    ]
)
_NAMESAKES = {("numpy", "random"), ("torch", "random"), ("torch", "types"), ("cupy", "random")}
_NONE: frozenset[str] = frozenset()


class Names:
    """Resolves and folds expressions of one module."""

    def __init__(self, scopes: Scopes, budget: Budget) -> None:
        self.scopes = scopes
        self._budget = budget
        self._resolved: dict[ast.AST, frozenset[str]] = {}
        self._folded: dict[ast.AST, fold.Constant | None] = {}
        self._busy: set[ast.AST] = set()
        self._folding: set[ast.AST] = set()
        self.definitions: dict[str, ast.AST] = {
            LOCAL + scope.qualified: node for node, scope in scopes.inside.items() if scope.parent is not None
        }

    def resolve(self, node: ast.AST) -> frozenset[str]:
        """The dotted names that an expression may stand for."""
        known = self._resolved.get(node)
        if known is not None:
            return known
        if node in self._busy or len(self._busy) > _DEPTH:
            return _NONE
        self._budget.spend()
        self._busy.add(node)
        try:
            found = frozenset(sorted(_canonical(name) for name in self._resolve(node))[:_MOST])
        finally:
            self._busy.discard(node)
        self._resolved[node] = found  # within a cycle of bindings: without what the cycle adds
        return found

    def constant(self, node: ast.AST) -> fold.Constant | None:
        """The value of an expression that can be computed here, or None."""
        if node in self._folded:
            return self._folded[node]
        if node in self._folding or len(self._folding) > 100:
            return None
        self._budget.spend()
        self._folding.add(node)
        try:
            value = fold.fold(node, self)
        finally:
            self._folding.discard(node)
        if isinstance(value, str | bytes | tuple):
            self._budget.spend(len(value) >> 4)
        self._folded[node] = value
        return value

    def last_constant(self, nodes: list[ast.AST]) -> fold.Constant | None:
        """The value of the last of several expressions bound to a name that is not being computed just now."""
        for node in reversed(nodes):
            if node not in self._folding:
                return self.constant(node)
        return None

    def text(self, node: ast.AST) -> str | None:
        """The value of an expression that is a constant string (bytes are decoded)."""
        value = self.constant(node)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def values(self, name: ast.Name) -> list[Binding]:
        """What is bound to a name."""
        return self.scopes.lookup(name.id, name)

    def _resolve(self, node: ast.AST) -> frozenset[str] | set[str]:
        match node:
            case ast.Name():
                return self._of_name(node)
            case ast.Attribute(value=value, attr=attribute):
                return self._of_attribute(value, attribute)
            case ast.Call():
                return self._of_call(node)
            case ast.Subscript(value=value, slice=index):
                return self._of_subscript(value, index)
            case ast.IfExp(body=body, orelse=other):
                return self.resolve(body) | self.resolve(other)
            case ast.BoolOp(values=values):
                return self._all(values)
            case ast.NamedExpr(value=value) | ast.Await(value=value) | ast.Starred(value=value):
                return self.resolve(value)
            case ast.Lambda():
                return {LOCAL + self.scopes.inside[node].qualified}
        return _NONE

    def _all(self, nodes: list[ast.expr]) -> frozenset[str]:
        return frozenset().union(*(self.resolve(node) for node in nodes[: 4 * _MOST]))

    def elements(self, node: ast.AST) -> list[ast.expr]:
        """The items of a literal container, found through names."""
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                return items
            case ast.Dict(values=items):
                return items
            case ast.Name():
                bound = [b.node for b in self.values(node) if b.kind == "value" and b.node is not node]
                if len(bound) == 1 and isinstance(bound[0], ast.Tuple | ast.List | ast.Set | ast.Dict):
                    return self.elements(bound[0])
        return []

    def _of_name(self, node: ast.Name) -> set[str]:
        bindings = self.values(node)
        found: set[str] = set()
        for binding in bindings[-_MOST:]:
            found |= self._of_binding(binding)
        if bindings:
            return found
        if node.id in _BUILTINS:
            return {f"builtins.{node.id}"}
        if node.id == "__builtins__":
            return {"builtins"}
        return {f"{module}.{node.id}" for module in self.scopes.star_imports}

    def _of_binding(self, binding: Binding) -> frozenset[str] | set[str]:
        if binding.kind == "import":
            return {binding.dotted}
        if binding.node is None or binding.kind == "opaque":
            return _NONE
        if binding.kind == "element":
            return self._all(self.elements(binding.node))
        if binding.kind in {"function", "class"}:
            return {LOCAL + self.scopes.inside[binding.node].qualified}
        return self.resolve(binding.node)

    def _of_attribute(self, value: ast.expr, attribute: str) -> set[str]:
        if isinstance(value, ast.Name) and value.id in {"self", "cls"}:
            return self._of_self(value, attribute)
        found: set[str] = set()
        for owner in self.resolve(value):
            found |= self._member(owner, attribute)
        return found

    def _of_self(self, at: ast.Name, attribute: str) -> set[str]:
        scope = self.scopes.of.get(at)
        holder = scope.enclosing_class() if scope is not None else None
        if holder is None:
            return set()
        found: set[str] = set()
        for binding in holder.names.get(attribute, [])[-_MOST:]:
            found |= self._of_binding(binding)
        return found or {f"{LOCAL}{holder.qualified}.{attribute}"}

    def _member(self, owner: str, attribute: str) -> set[str]:
        if owner.startswith(LOCAL):
            bare = owner.removesuffix("()")
            scope = self.scopes.inside.get(self.definitions.get(bare, self.scopes.module.node))
            if scope is not None and scope.is_class and attribute in scope.names:
                found: set[str] = set()
                for binding in scope.names[attribute][-_MOST:]:
                    found |= self._of_binding(binding)
                return found or {f"{bare}.{attribute}"}
            return {f"{bare}.{attribute}"}
        if attribute in {"__dict__", "__func__", "__wrapped__"}:
            return {owner}
        return {f"{owner}.{attribute}"}

    def _of_subscript(self, value: ast.expr, index: ast.expr) -> frozenset[str] | set[str]:
        key = self.constant(index)
        items = self.elements(value)
        if items:
            if isinstance(key, int) and -len(items) <= key < len(items):
                return self.resolve(items[key])
            return self._all(items)
        owners = self.resolve(value)
        if owners & {"builtins.globals()", "builtins.locals()"} and isinstance(key, str):
            found: set[str] = set()
            for binding in self.scopes.module.names.get(key, [])[-_MOST:]:
                found |= self._of_binding(binding)
            return found or ({"builtins"} if key == "__builtins__" else found)
        if "sys.modules" in owners and isinstance(key, str):
            return {key}
        if isinstance(key, str):
            return {f"{owner}.{key}" for owner in owners if not owner.startswith(LOCAL)}
        return {f"{owner}[]" for owner in owners if not owner.startswith(LOCAL)}

    def _of_call(self, node: ast.Call) -> set[str]:
        found: set[str] = set()
        for callee in self.resolve(node.func):
            found |= self._result(callee, node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"__getattribute__", "__getattr__", "get"}:
            name = self.text(node.args[-1 if node.func.attr != "get" else 0]) if node.args else None
            base = node.args[0] if len(node.args) == 2 and node.func.attr != "get" else node.func.value
            if name is not None:
                owners = {owner for owner in self.resolve(base) if not owner.startswith(LOCAL)}
                found |= {name if owner == "sys.modules" else f"{owner}.{name}" for owner in owners}
        if isinstance(node.func, ast.Call) and self.resolve(node.func.func) & {"operator.attrgetter"} and node.args:
            path = self.text(node.func.args[0]) if node.func.args else None
            found |= {f"{owner}.{path}" for owner in self.resolve(node.args[0])}
        return found

    def _result(self, callee: str, node: ast.Call) -> frozenset[str] | set[str]:
        first = node.args[0] if node.args else None
        if callee == "builtins.getattr" and first is not None and len(node.args) > 1:
            name = self.text(node.args[1])
            if name is None:
                return _NONE
            found: set[str] = set()
            for owner in self.resolve(first):
                found |= self._member(owner, name)
            return found
        if callee == "builtins.vars" and first is not None:
            return self.resolve(first)
        if callee in {"builtins.__import__", "importlib.import_module", "importlib.__import__"}:
            name = self.text(first) if first is not None else None
            return {name} if name else {f"{callee}()"}
        if callee in {"functools.partial", "functools.wraps", "torch.no_grad()"} and first is not None:
            return self.resolve(first)
        if callee.startswith(LOCAL):
            return self._local_result(callee)
        return {f"{callee}()"}

    def _local_result(self, callee: str) -> frozenset[str] | set[str]:
        definition = self.definitions.get(callee)
        match definition:
            case ast.Lambda(body=body):
                return self.resolve(body)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope = self.scopes.inside[definition]
                returned = [
                    node.value
                    for node in ast.walk(definition)
                    if isinstance(node, ast.Return) and node.value is not None and self.scopes.of.get(node) is scope
                ]
                self._budget.spend(len(scope.names) + 8)
                return self._all(returned)
        return {f"{callee}()"}


def _canonical(name: str) -> str:
    """`torch.cuda.threading.Thread` is `threading.Thread`."""
    parts = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        bare = parts[at].lstrip("_")
        if bare in _STANDARD and not name.startswith(LOCAL) and "()" not in "".join(parts[:at]):
            namesake = (parts[at - 1], bare) in _NAMESAKES or (at == len(parts) - 1 and parts[0] in _STANDARD)
            if namesake:  # `time.time` is a function
                continue
            return ".".join([bare, *parts[at + 1 :]])
    return name
