"""Find results that are kept and handed out again."""

from __future__ import annotations

import ast

from hkbench.reading.budget import Budget
from hkbench.reading.forward import Reach
from hkbench.reading.names import Names
from hkbench.reading.report import Report
from hkbench.reading.scopes import Function, is_value

_CACHES = {"functools.lru_cache", "functools.cache", "functools.lru_cache()", "functools.cached_property"}
_CONTAINERS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp)


class MemoRules:
    """Look at what `forward` reaches: what it compares, what it stores, what it returns."""

    def __init__(self, tree: ast.Module, names: Names, reach: Reach, report: Report, budget: Budget) -> None:
        self._nodes = names.scopes.walk(tree)
        self._names = names
        self._reach = [(node, function) for function in reach.functions for node in names.scopes.walk(function)]
        self._report = report
        budget.spend(3 * len(self._reach))
        self._stored: set[str | None] | None = None  #: what is written while `forward` runs, once it is known
        written = set().union(*(self._written(node, function) for node, function in self._reach))
        self._stored = written - {None}

    def read(self) -> None:
        stored = self._stored or set()
        for node in self._nodes:
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            if isinstance(node, ast.FunctionDef) and any(self._names.resolve(one) & _CACHES for one in decorators):
                self._memoised(node)
        for node, function in self._reach:
            inputs = _inputs(function)
            if self._recognises(node, inputs):
                self._report.add("py-memo-pointer", node)
            value = node.value if isinstance(node, ast.Return) and _is_public(function) else None
            if any(self._place(item) in stored for item in _opened(value)):
                self._report.add("py-memo-result", node)

    def _memoised(self, definition: ast.FunctionDef) -> None:
        calls = [(node, _inputs(function)) for node, function in self._reach if isinstance(node, ast.Call)]
        called_with_tensor = any(
            (isinstance(argument, ast.Name) and argument.id in inputs) or self._is_address(argument, inputs)
            for call, inputs in calls
            if self._names.definitions.get(next(iter(self._names.resolve(call.func)), "")) is definition
            for argument in call.args
        )
        if _is_public(definition) or called_with_tensor:
            self._report.add("py-memo-result", definition)
        elif _inputs(definition):
            self._report.add("py-memo-helper", definition)

    def _recognises(self, node: ast.AST, inputs: set[str]) -> bool:
        """Return whether it asks if an input is one that was seen: `x.data_ptr() == self.p`, `cache.get(id(x))`."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                sides = [left, *comparators]
                others = [side for side in sides if not self._is_address(side, inputs)]
                if any(isinstance(op, ast.Is | ast.IsNot) for op in ops) and self._meets_kept(sides, inputs):
                    return True
                return len(others) < len(sides) and any(self._place(other) for other in others)
            case ast.Call(func=ast.Attribute(value=kept, attr="get" | "setdefault"), args=[key, *_]):
                return self._is_address(key, inputs) and self._place(kept) is not None
            case ast.Call(func=ast.Attribute(value=owner, attr="equal" | "allclose"), args=arguments):
                return self._meets_kept([owner, *arguments], inputs)
            case ast.Call(func=function, args=arguments):
                is_equal = self._names.resolve(function) & {"torch.equal", "torch.allclose"}
                return bool(is_equal) and self._meets_kept(arguments, inputs)
            case ast.Subscript(slice=index):
                return self._is_address(index, inputs)
        return False

    def _meets_kept(self, sides: list[ast.expr], inputs: set[str]) -> bool:
        has_input = any(isinstance(side, ast.Name) and side.id in inputs for side in sides)
        return has_input and any(self._place(side) for side in sides)

    def _is_address(self, node: ast.expr, inputs: set[str]) -> bool:
        """Return whether it is `x.data_ptr()` or `id(x)` of an input, alone, in a tuple or by a local name."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="data_ptr")):
                return name in inputs
            case ast.Call(func=ast.Attribute(value=ast.Call(), attr="data_ptr")):
                return any(isinstance(part, ast.Name) and part.id in inputs for part in ast.walk(node))
            case ast.Call(func=ast.Name(id="id"), args=[ast.Name(id=name)]):
                return name in inputs
            case ast.Attribute(value=ast.Name(id=name), attr="_version"):
                return name in inputs
            case ast.Tuple(elts=items):
                return any(self._is_address(item, inputs) for item in items)
            case ast.Name():
                bound = [b for b in self._names.values(node) if is_value(b) and b is not node]
                return any(isinstance(b, ast.Call | ast.Tuple) and self._is_address(b, inputs) for b in bound[-4:])
        return False

    def _place(self, node: ast.expr, depth: int = 0) -> str | None:
        """Return where an expression is kept between calls: `self.x`, a global, a mutable default, an attribute."""
        match node:
            case ast.Subscript(value=value):
                return self._place(value, depth)
            case ast.Call(func=ast.Attribute(value=value, attr="get" | "setdefault" | "clone" | "detach")):
                return self._place(value, depth)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return f"{name}.{attribute}" if name == "self" or name in self._names.scopes.module.names else None
            case ast.Name():
                return self._place_of_name(node, depth)
        return None

    def _place_of_name(self, node: ast.Name, depth: int) -> str | None:
        scope = self._names.scopes.of.get(node)
        if scope is None or depth > 3:
            return None
        defaults = self._names.scopes.defaults
        if node.id not in scope.names:
            return node.id if any(is_value(b) and b not in defaults for b in self._names.values(node)) else None
        for bound in scope.names[node.id]:
            if bound in defaults and isinstance(bound, _CONTAINERS):
                return f"default {node.id}"
            if bound not in defaults and isinstance(bound, ast.Attribute | ast.Subscript | ast.Name | ast.Call):
                place = self._place(bound, depth + 1)
                if place is not None and (self._stored is None or place in self._stored):
                    return place
        return None

    def _written(self, node: ast.AST, function: Function) -> set[str | None]:
        """Return the places that a statement or a call writes to."""
        match node:
            case ast.Assign(targets=targets):
                return {self._target(target, function) for target in targets}
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                return {self._target(target, function)}
            case ast.Call(func=ast.Attribute(value=kept, attr="append" | "setdefault" | "update" | "insert" | "add")):
                return {self._place(kept)}
        return set()

    def _target(self, target: ast.expr, function: Function) -> str | None:
        if isinstance(target, ast.Name):
            return target.id if target.id in self._names.scopes.inside[function].outer else None
        return self._place(target)


def _opened(value: ast.expr | None) -> list[ast.expr]:
    """Return the items that are returned: of a tuple, of `tuple(item.clone() for item in kept)`."""
    match value:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return items
        case ast.Call(func=ast.Name(id="tuple" | "list"), args=[ast.GeneratorExp(generators=[one])]):
            return [one.iter]
    return [value] if value is not None else []


def _is_public(function: Function) -> bool:
    return getattr(function, "name", None) in {"forward", "__call__"}


def _inputs(function: Function) -> set[str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {argument.arg for argument in arguments} - {"self", "cls"}
