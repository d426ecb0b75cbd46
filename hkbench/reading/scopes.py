"""Which scope a name of a Python file belongs to, and what is bound to it there (order of execution is ignored)."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from hkbench.reading.budget import Budget

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Kind = Literal["value", "element", "import", "function", "class", "parameter", "opaque"]


@dataclass(frozen=True, eq=False)
class Binding:
    """One thing that a name may stand for. `element`: one item of what `node` iterates over."""

    kind: Kind
    node: ast.AST | None = None
    dotted: str = ""  #: of an import


@dataclass(eq=False)
class Scope:
    """A module, class, function or lambda; comprehensions share the scope around them."""

    node: ast.AST
    parent: Scope | None
    qualified: str
    names: dict[str, list[Binding]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  #: declared global or nonlocal

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def bind(self, name: str, binding: Binding) -> None:
        target = self
        if name in self.outer:
            while target.parent is not None:
                target = target.parent
        target.names.setdefault(name, []).append(binding)

    def enclosing_class(self) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope


class Scopes:
    """The scopes of one module. `of[node]` is the scope in which a node is evaluated."""

    def __init__(self, tree: ast.Module, budget: Budget) -> None:
        self.module = Scope(tree, None, "")
        self.of: dict[ast.AST, Scope] = {}
        self.inside: dict[ast.AST, Scope] = {tree: self.module}
        self.star_imports: list[str] = []
        self._walk(tree, budget)

    def _walk(self, tree: ast.Module, budget: Budget) -> None:
        pending: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        late: list[tuple[ast.AST, Scope]] = []
        while pending:
            budget.spend()
            node, scope = pending.pop()
            self.of[node] = scope
            if isinstance(node, ast.Global | ast.Nonlocal):
                scope.outer.update(node.names)
            late.append((node, scope))
            inner = scope
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                name = node.name if not isinstance(node, ast.Lambda) else f"<lambda {node.lineno}>"
                inner = Scope(node, scope, f"{scope.qualified}.{name}".lstrip("."))
                self.inside[node] = inner
            outside = _evaluated_outside(node)
            children = [(child, scope if child in outside else inner) for child in ast.iter_child_nodes(node)]
            pending.extend(reversed(children))  # a stack: what stands first is bound first
        for node, scope in late:
            self._bind(node, scope)

    def lookup(self, name: str, at: ast.AST) -> list[Binding]:
        """What `name` may stand for where the node `at` is. Class scopes are skipped from inside of methods."""
        first = scope = self.of.get(at, self.module)
        while True:
            if name in scope.names and (scope is first or not scope.is_class):
                return scope.names[name]
            if scope.parent is None:
                return []
            scope = scope.parent

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, value, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._bind_target(target, value, scope)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                before = next((b.node for b in reversed(scope.names.get(name, [])) if b.kind == "value"), None)
                if isinstance(before, ast.expr):
                    whole = ast.copy_location(ast.BinOp(before, op, value), node)
                    self.of[whole] = scope
                    scope.bind(name, Binding("value", whole))
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                self._bind_element(target, iterated, scope)
            case ast.comprehension(target=target, iter=iterated):
                self._bind_element(target, iterated, scope)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._bind_target(target, value, scope)
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.split(".")[0]
                    scope.bind(bound, Binding("import", dotted=alias.name if alias.asname else bound))
            case ast.ImportFrom(module=module, names=names):
                self._bind_from(module or "", names, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope.bind(node.name, Binding("function", node))
                self._bind_parameters(node.args, self.inside[node])
            case ast.Lambda():
                self._bind_parameters(node.args, self.inside[node])
            case ast.ClassDef():
                scope.bind(node.name, Binding("class", node))

    def _bind_target(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.bind(name, Binding("value", value))
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                if len(values) == len(targets):
                    for one, its in zip(targets, values, strict=True):
                        self._bind_target(one, its, scope)
                else:
                    self._bind_element(target, value, scope)
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
                holder = scope.enclosing_class()
                if holder is not None and owner in {"self", "cls"}:
                    holder.names.setdefault(attribute, []).append(Binding("value", value))

    def _bind_element(self, target: ast.expr, iterated: ast.expr, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.bind(name, Binding("element", iterated))
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one in targets:
                    if isinstance(one, ast.Name):
                        scope.bind(one.id, Binding("opaque"))

    def _bind_from(self, module: str, names: list[ast.alias], scope: Scope) -> None:
        for alias in names:
            if alias.name == "*":
                self.star_imports.append(module)
            else:
                scope.bind(alias.asname or alias.name, Binding("import", dotted=f"{module}.{alias.name}".lstrip(".")))

    @staticmethod
    def _bind_parameters(args: ast.arguments, scope: Scope) -> None:
        positional = [*args.posonlyargs, *args.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
        both = [*zip(positional, defaults, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)]
        for parameter, default in both:
            scope.bind(parameter.arg, Binding("parameter", default))
        for rest in (args.vararg, args.kwarg):
            if rest is not None:
                scope.bind(rest.arg, Binding("opaque"))


def _evaluated_outside(node: ast.AST) -> set[ast.AST]:
    """Children of a definition that belong to the scope around it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return {*node.decorator_list, *_annotations(node)}
        case ast.ClassDef():
            return {*node.decorator_list, *node.bases, *node.keywords}
    return set()


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    return [node.returns] if node.returns is not None else []
