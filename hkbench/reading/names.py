"""What the expressions of a Python file stand for: dotted names of imported things, and constants.

An expression resolves to a set of dotted names: `torch.cuda.Stream`, `torch.cuda.Stream()` for the result of a
call, `local:ModelNew.forward` for what the file defines itself. The empty set: not known.

Both are followed here, on the tree of `ast`: patterns of syntax (ast-grep) know neither, and astroid, which infers them
from the modules that a candidate imports, takes 27 times as long as all of this reading.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from hkbench.reading.budget import Budget
from hkbench.reading.folding import Constant, fold
from hkbench.reading.scopes import Binding, Scopes, is_value

_MAX_NAMES = 12  #: names that one expression may stand for
_DEPTH = 60
LOCAL = "local:"
_BUILTINS = frozenset(dir(builtins))
# Standard modules are reached through others, too: `torch.os`, `threading._sys`.
_STANDARD = frozenset(
    str.split(
        "atexit base64 builtins ctypes gc importlib inspect io os pathlib pickle platform random shutil signal "
        "socket subprocess sys tempfile threading time types zlib"
    )
)
_NAMESAKES = {("numpy", "random"), ("torch", "random"), ("torch", "types"), ("cupy", "random")}
_IMPORTERS = {"builtins.__import__", "importlib.import_module", "importlib.__import__"}
_SAME = {"functools.partial", "functools.wraps", "torch.no_grad()", "builtins.vars"}  # of their first argument
_NONE: frozenset[str] = frozenset()


class Names:
    """Resolve and fold expressions of one module."""

    def __init__(self, scopes: Scopes, budget: Budget) -> None:
        self.scopes = scopes
        self.budget = budget
        self._resolved: dict[ast.AST, frozenset[str]] = {}
        self._folded: dict[ast.AST, Constant | None] = {}
        self._busy: set[ast.AST] = set()
        self._folding: set[ast.AST] = set()
        self.definitions: dict[str, ast.AST] = {
            LOCAL + scope.qualified: node for node, scope in scopes.inside.items() if scope.parent is not None
        }

    def resolve(self, node: ast.AST) -> frozenset[str]:
        """Return the dotted names that an expression may stand for."""
        known = self._resolved.get(node)
        if known is not None:
            return known
        if node in self._busy or len(self._busy) > _DEPTH:
            return _NONE
        self.budget.spend()
        self._busy.add(node)
        try:
            found = frozenset(sorted(map(_canonical, self._resolve(node)))[:_MAX_NAMES])
        finally:
            self._busy.discard(node)
        self._resolved[node] = found  # within a cycle of bindings: without what the cycle adds
        return found

    def constant(self, node: ast.AST) -> Constant | None:
        """Return the value of an expression that can be computed here, or None."""
        if node in self._folded:
            return self._folded[node]
        if node in self._folding or len(self._folding) > 100:
            return None
        self.budget.spend()
        self._folding.add(node)
        try:
            value = fold(node, self)
        finally:
            self._folding.discard(node)
        if isinstance(value, str | bytes | tuple):
            self.budget.spend(len(value) >> 4)
        self._folded[node] = value
        return value

    def last_constant(self, name: ast.Name) -> Constant | None:
        """Return the value of the last expression bound to a name that is not being computed just now."""
        for bound in reversed(self.values(name)):
            if bound is not None and is_value(bound) and bound not in self._folding:
                return self.constant(bound)
        return None

    def text(self, node: ast.AST | None) -> str | None:
        """Return the value of an expression that is a constant string (bytes are decoded)."""
        value = self.constant(node) if node is not None else None
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def values(self, name: ast.Name) -> list[Binding]:
        """Return what is bound to a name."""
        return self.scopes.lookup(name.id, name)

    def elements(self, node: ast.AST) -> list[ast.expr]:
        """Return the items of a literal container, found through names."""
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items) | ast.Dict(values=items):
                return items
            case ast.Name():
                bound = [b for b in self.values(node) if is_value(b) and b is not node]
                if len(bound) == 1 and isinstance(bound[0], ast.Tuple | ast.List | ast.Set | ast.Dict):
                    return self.elements(bound[0])
        return []

    def _resolve(self, node: ast.AST) -> Iterable[str]:
        match node:
            case ast.Name():
                return self._of_name(node)
            case ast.Attribute(value=ast.Name(id="self" | "cls") as owner, attr=attribute):
                return self._of_self(owner, attribute)
            case ast.Attribute(value=value, attr=attribute):
                return self._members(value, attribute)
            case ast.Call():
                return self._of_call(node)
            case ast.Subscript(value=value, slice=index):
                return self._of_subscript(value, index)
            case ast.IfExp(body=body, orelse=other):
                return self._all([body, other])
            case ast.BoolOp(values=values):
                return self._all(values)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.resolve(value)
            case ast.Starred(value=value):
                return self._all(self.elements(value))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                return {LOCAL + self.scopes.inside[node].qualified}
            case ast.alias(name=dotted):
                return {dotted}
        return _NONE

    def _all(self, nodes: list[ast.expr]) -> frozenset[str]:
        return _NONE.union(*(self.resolve(node) for node in nodes[: 4 * _MAX_NAMES]))

    def _bound(self, bindings: list[Binding]) -> frozenset[str]:
        return _NONE.union(*(self.resolve(bound) for bound in bindings[-_MAX_NAMES:] if bound is not None))

    def _of_name(self, node: ast.Name) -> Iterable[str]:
        if bindings := self.values(node):
            return self._bound(bindings)
        if node.id in _BUILTINS:
            return {f"builtins.{node.id}"}
        if node.id == "__builtins__":
            return {"builtins"}
        return {f"{module}.{node.id}" for module in self.scopes.star_imports}

    def _of_self(self, at: ast.Name, attribute: str) -> Iterable[str]:
        scope = self.scopes.of.get(at)
        holder = scope.enclosing_class() if scope is not None else None
        if holder is None:
            return _NONE
        return self._bound(holder.names.get(attribute, [])) or {f"{LOCAL}{holder.qualified}.{attribute}"}

    def _members(self, value: ast.expr, attribute: str) -> frozenset[str]:
        return _NONE.union(*(self._member(owner, attribute) for owner in self.resolve(value)))

    def _member(self, owner: str, attribute: str) -> Iterable[str]:
        if owner.startswith(LOCAL):
            bare = owner.removesuffix("()")
            scope = self.scopes.inside.get(self.definitions.get(bare, self.scopes.module.node))
            bound = scope.names.get(attribute, []) if scope is not None and scope.is_class else []
            return self._bound(bound) or {f"{bare}.{attribute}"}
        return {owner if attribute in {"__dict__", "__func__", "__wrapped__"} else f"{owner}.{attribute}"}

    def _of_subscript(self, value: ast.expr, index: ast.expr) -> Iterable[str]:
        key = self.constant(index)
        if items := self.elements(value):
            at_one = isinstance(key, int) and -len(items) <= key < len(items)
            return self.resolve(items[key]) if at_one and isinstance(key, int) else self._all(items)
        owners = self.resolve(value)
        if isinstance(key, str):
            if owners & {"builtins.globals()", "builtins.locals()"}:
                bound = self._bound(self.scopes.module.names.get(key, []))
                return bound or ({"builtins"} if key == "__builtins__" else _NONE)
            if "sys.modules" in owners:
                return {key}
        return {f"{o}.{key}" if isinstance(key, str) else f"{o}[]" for o in owners if not o.startswith(LOCAL)}

    def _of_call(self, node: ast.Call) -> Iterable[str]:
        found = _NONE.union(*(self._result(callee, node) for callee in self.resolve(node.func)))
        match node:
            case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[key, *_]):
                return found | self._looked_up(base, key)
            case ast.Call(func=ast.Attribute(attr="__getattribute__" | "__getattr__"), args=[base, key]):
                return found | self._looked_up(base, key)
            case ast.Call(func=ast.Attribute(value=base, attr="__getattribute__" | "__getattr__"), args=[*_, key]):
                return found | self._looked_up(base, key)
            case ast.Call(func=ast.Call(func=getter, args=[path, *_]), args=[base, *_]):
                if "operator.attrgetter" in self.resolve(getter):
                    return found | {f"{owner}.{self.text(path)}" for owner in self.resolve(base)}
        return found

    def _looked_up(self, base: ast.expr, key: ast.expr) -> set[str]:
        name = self.text(key)
        owners = [o for o in self.resolve(base) if not o.startswith(LOCAL)] if name is not None else []
        return {str(name) if owner == "sys.modules" else f"{owner}.{name}" for owner in owners}

    def _result(self, callee: str, node: ast.Call) -> Iterable[str]:
        if callee.startswith(LOCAL):
            return self._local_result(callee)
        if callee == "builtins.getattr" and len(node.args) > 1:
            name = self.text(node.args[1])
            return self._members(node.args[0], name) if name is not None else _NONE
        if callee in _IMPORTERS:
            name = self.text(node.args[0]) if node.args else None
            return {name or f"{callee}()"}
        if callee in _SAME and node.args:
            return self.resolve(node.args[0])
        return {f"{callee}()"}

    def _local_result(self, callee: str) -> Iterable[str]:
        definition = self.definitions.get(callee)
        match definition:
            case ast.Lambda(body=body):
                return self.resolve(body)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope = self.scopes.inside[definition]
                returned = [
                    node.value
                    for node in self.scopes.walk(definition)
                    if isinstance(node, ast.Return) and node.value is not None and self.scopes.of.get(node) is scope
                ]
                self.budget.spend(len(scope.names) + 8)
                return self._all(returned)
        return {f"{callee}()"}


def _canonical(name: str) -> str:
    """Return the canonical name: `torch.cuda.threading.Thread` is `threading.Thread`."""
    if name.startswith(LOCAL):
        return name
    parts = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        bare = parts[at].lstrip("_")
        if bare in _STANDARD and "()" not in "".join(parts[:at]):
            namesake = (parts[at - 1], bare) in _NAMESAKES or (at == len(parts) - 1 and parts[0] in _STANDARD)
            if not namesake:  # `time.time` is a function
                return ".".join([bare, *parts[at + 1 :]])
    return name
