"""Which scope a name of a Python file belongs to, and what is bound to it there (order of execution is ignored)."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from hkbench.reading.budget import Budget

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
#: What a name may stand for: an expression, the default of a parameter, a definition, the `ast.alias` of a dotted name,
#: an `ast.Starred` for one item of what it holds. None: not known.
Binding = ast.AST | None


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

    def bind(self, name: str, bound: Binding) -> None:
        target = self
        while name in self.outer and target.parent is not None:
            target = target.parent
        target.names.setdefault(name, []).append(bound)

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
        self.defaults: set[Binding] = set()  #: of parameters
        self.star_imports: list[str] = []
        self._walked: dict[ast.AST, list[ast.AST]] = {}
        pending: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        while pending:
            budget.spend()
            node, scope = pending.pop()
            self.of[node] = scope
            if isinstance(node, ast.Global | ast.Nonlocal):
                scope.outer.update(node.names)
            inner, outside = scope, []
            if isinstance(node, Function | ast.ClassDef):
                name = f"<lambda {node.lineno}>" if isinstance(node, ast.Lambda) else node.name
                inner = self.inside[node] = Scope(node, scope, f"{scope.qualified}.{name}".lstrip("."))
                outside = _evaluated_outside(node)
            # A stack: what stands first is bound first.
            children = reversed(list(ast.iter_child_nodes(node)))
            pending.extend((child, scope if child in outside else inner) for child in children)
        for node, scope in list(self.of.items()):
            self._bind(node, scope)

    def walk(self, node: ast.AST) -> list[ast.AST]:
        """Return a definition and all below it; it is kept, as several rules look at the same ones."""
        if node not in self._walked:
            self._walked[node] = list(ast.walk(node))
        return self._walked[node]

    def lookup(self, name: str, at: ast.AST) -> list[Binding]:
        """Return what `name` may stand for where the node `at` is. Class scopes are skipped from inside of methods."""
        first = scope = self.of.get(at, self.module)
        while name not in scope.names or (scope is not first and scope.is_class):
            if scope.parent is None:
                return []
            scope = scope.parent
        return scope.names[name]

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value, scope)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
                | ast.withitem(context_expr=value, optional_vars=ast.expr() as target)
            ):
                self._assign(target, value, scope)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                before = next((b for b in reversed(scope.names.get(name, [])) if is_value(b)), None)
                if isinstance(before, ast.expr):
                    whole = ast.copy_location(ast.BinOp(before, op, value), node)
                    self.of[whole] = scope
                    scope.bind(name, whole)
            case (
                ast.For(target=target, iter=items)
                | ast.AsyncFor(target=target, iter=items)
                | ast.comprehension(target=target, iter=items)
            ):
                self._assign(target, ast.Starred(items), scope)
            case ast.Import(names=aliases):
                for alias in aliases:
                    root = alias.name.split(".")[0]
                    scope.bind(alias.asname or root, alias if alias.asname else ast.alias(root))
            case ast.ImportFrom(module=module, names=aliases):
                for alias in aliases:
                    if alias.name == "*":
                        self.star_imports.append(module or "")
                    else:
                        scope.bind(alias.asname or alias.name, ast.alias(f"{module or ''}.{alias.name}".lstrip(".")))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                scope.bind(node.name, node)
        if isinstance(node, Function):
            self._bind_parameters(node.args, self.inside[node])

    def _assign(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope.bind(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                known = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets)
                for at, one in enumerate(targets):
                    self._assign(
                        one, value.elts[at] if known and isinstance(value, ast.Tuple | ast.List) else None, scope
                    )
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attribute):
                if (holder := scope.enclosing_class()) is not None:
                    holder.names.setdefault(attribute, []).append(value)

    def _bind_parameters(self, args: ast.arguments, scope: Scope) -> None:
        positional = [*args.posonlyargs, *args.args]
        defaults = [None] * (len(positional) - len(args.defaults)) + [*args.defaults, *args.kw_defaults]
        for parameter, default in zip([*positional, *args.kwonlyargs], defaults, strict=True):
            scope.bind(parameter.arg, default)
        for rest in (args.vararg, args.kwarg):
            if rest is not None:
                scope.bind(rest.arg, None)
        self.defaults.update(defaults)


def is_value(bound: Binding) -> bool:
    """Return whether it is an expression, and not one item of it."""
    return isinstance(bound, ast.expr) and not isinstance(bound, ast.Starred)


def _evaluated_outside(node: Function | ast.ClassDef) -> list[ast.AST | None]:
    """Return the children of a definition that belong to the scope around it."""
    match node:
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases, *node.keywords]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.decorator_list, node.returns]
    return []
