"""Results that are kept and handed out again."""

from __future__ import annotations

import ast

from hkbench.reading.budget import Budget
from hkbench.reading.forward import Definition, Reach
from hkbench.reading.names import Names
from hkbench.reading.report import Report

_CACHES = {"functools.lru_cache", "functools.cache", "functools.lru_cache()", "functools.cached_property"}
_THROUGH = (ast.Attribute, ast.Subscript, ast.Name, ast.Call)
_STORING = frozenset(["append", "setdefault", "update", "insert", "add"])
_CONTAINERS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp)


class MemoRules:
    """Looks at what `forward` reaches: what it compares, what it stores, what it returns."""

    def __init__(self, tree: ast.Module, names: Names, reach: Reach, report: Report, budget: Budget) -> None:
        self._tree = tree
        self._names = names
        self._reach = reach
        self._report = report
        self._budget = budget
        self._stored = self._stored_places()

    def read(self) -> None:
        memoised = [node for node in ast.walk(self._tree) if self._is_memoised(node)]
        for node in memoised:
            self._memoised(node)
        for function in self._reach.functions:
            inputs = _inputs(function)
            for node in ast.walk(function):
                self._budget.spend()
                if isinstance(node, ast.Compare):
                    self._compared([node.left, *node.comparators], node.ops, inputs, node)
                elif isinstance(node, ast.Call):
                    self._looked_up(node, inputs)
                elif isinstance(node, ast.Subscript) and self._is_address(node.slice, inputs):
                    self._report.add("py-memo-pointer", node)
                elif isinstance(node, ast.Return) and node.value is not None and self._public(function):
                    self._returned(node.value, node)

    def _is_memoised(self, node: ast.AST) -> bool:
        return isinstance(node, ast.FunctionDef) and any(
            self._names.resolve(decorator) & _CACHES for decorator in node.decorator_list
        )

    def _memoised(self, node: ast.AST) -> None:
        if not isinstance(node, ast.FunctionDef):
            return
        inputs = _inputs(node)
        called_with_tensor = any(
            isinstance(call, ast.Call)
            and self._names.definitions.get(next(iter(self._names.resolve(call.func)), "")) is node
            and any(self._is_tensor_or_address(a, _inputs(function)) for a in call.args)
            for function in self._reach.functions
            for call in ast.walk(function)
        )
        if node.name in {"forward", "__call__"} or called_with_tensor:
            self._report.add("py-memo-result", node)
        elif inputs:
            self._report.add("py-memo-helper", node)

    def _is_tensor_or_address(self, node: ast.expr, inputs: set[str]) -> bool:
        return (isinstance(node, ast.Name) and node.id in inputs) or self._is_address(node, inputs)

    def _is_address(self, node: ast.expr, inputs: set[str]) -> bool:
        """`x.data_ptr()`, `id(x)` of an input, alone, in a tuple or through a local name."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="data_ptr")):
                return name in inputs
            case ast.Call(func=ast.Attribute(value=ast.Call(), attr="data_ptr")):
                return any(isinstance(n, ast.Name) and n.id in inputs for n in ast.walk(node))
            case ast.Call(func=ast.Name(id="id"), args=[ast.Name(id=name)]):
                return name in inputs
            case ast.Attribute(value=ast.Name(id=name), attr="_version"):
                return name in inputs
            case ast.Tuple(elts=items):
                return any(self._is_address(item, inputs) for item in items)
            case ast.Name():
                bound = [b.node for b in self._names.values(node) if b.kind == "value" and b.node is not node]
                return any(isinstance(b, ast.Call | ast.Tuple) and self._is_address(b, inputs) for b in bound[-4:])
        return False

    def _compared(self, sides: list[ast.expr], ops: list[ast.cmpop], inputs: set[str], at: ast.AST) -> None:
        addresses = [side for side in sides if self._is_address(side, inputs)]
        others = [side for side in sides if not self._is_address(side, inputs)]
        if addresses and any(self._place(other) for other in others):
            self._report.add("py-memo-pointer", at)
        if any(isinstance(op, ast.Is | ast.IsNot) for op in ops):
            is_input = any(isinstance(side, ast.Name) and side.id in inputs for side in sides)
            if is_input and any(self._place(side) for side in sides):
                self._report.add("py-memo-pointer", at)

    def _looked_up(self, node: ast.Call, inputs: set[str]) -> None:
        """`torch.equal(x, self.last)`, `cache.get(x.data_ptr())`."""
        callees = self._names.resolve(node.func)
        is_equal = isinstance(node.func, ast.Attribute) and node.func.attr in {"equal", "allclose"}
        if callees & {"torch.equal", "torch.allclose"} or is_equal:
            sides = list(node.args) + ([node.func.value] if isinstance(node.func, ast.Attribute) else [])
            has_input = any(isinstance(s, ast.Name) and s.id in inputs for s in sides)
            if has_input and any(self._place(side) for side in sides):
                self._report.add("py-memo-pointer", node)
        match node:
            case ast.Call(func=ast.Attribute(value=kept, attr="get" | "setdefault"), args=[key, *_]):
                if self._is_address(key, inputs) and self._place(kept):
                    self._report.add("py-memo-pointer", node)

    def _public(self, function: Definition) -> bool:
        return isinstance(function, ast.FunctionDef) and function.name in {"forward", "__call__"}

    def _returned(self, value: ast.expr, at: ast.AST) -> None:
        for item in self._opened(value):
            place = self._place(item)
            if place is not None and place in self._stored:
                self._report.add("py-memo-result", at)

    def _opened(self, value: ast.expr) -> list[ast.expr]:
        """The items that are returned: of a tuple, of `tuple(item.clone() for item in kept)`."""
        match value:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return items
            case ast.Call(func=ast.Name(id="tuple" | "list"), args=[ast.GeneratorExp(generators=[one])]):
                return [one.iter]
        return [value]

    def _place(self, node: ast.expr, depth: int = 0) -> str | None:
        """Where an expression is kept between calls: `self.x`, a global, a mutable default, a function's attribute."""
        match node:
            case ast.Subscript(value=value):
                return self._place(value, depth)
            case ast.Call(func=ast.Attribute(value=value, attr="get" | "setdefault" | "clone" | "detach")):
                return self._place(value, depth)
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                return f"self.{attribute}"
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self._names.scopes.module.names:
                return f"{name}.{attribute}"
            case ast.Name(id=name):
                return self._place_of_name(node, name, depth)
        return None

    def _place_of_name(self, node: ast.Name, name: str, depth: int) -> str | None:
        scope = self._names.scopes.of.get(node)
        if scope is None or depth > 3:
            return None
        if name not in scope.names:
            kinds = {binding.kind for binding in self._names.values(node)}
            return name if "value" in kinds else None
        for binding in scope.names[name]:
            if binding.kind == "parameter" and isinstance(binding.node, _CONTAINERS):
                return f"default {name}"
            if binding.kind == "value" and isinstance(
                binding.node, ast.Attribute | ast.Subscript | ast.Name | ast.Call
            ):
                place = self._place(binding.node, depth + 1)
                if place is not None and place in getattr(self, "_stored", {place}):
                    return place
        return None

    def _stored_places(self) -> set[str]:
        """What is written while `forward` runs."""
        found: set[str] = set()
        for function in self._reach.functions:
            for node in ast.walk(function):
                self._budget.spend()
                targets: list[ast.expr] = []
                if isinstance(node, ast.Assign):
                    targets = node.targets
                elif isinstance(node, ast.AugAssign | ast.AnnAssign):
                    targets = [node.target]
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    place = self._place(node.func.value) if node.func.attr in _STORING else None
                    found |= {place} if place is not None else set()
                for target in targets:
                    place = self._target_place(target, function)
                    if place is not None:
                        found.add(place)
        return found

    def _target_place(self, target: ast.expr, function: Definition) -> str | None:
        if isinstance(target, ast.Name):
            scope = self._names.scopes.inside[function]
            return target.id if target.id in scope.outer else None
        return self._place(target)


def _inputs(function: Definition) -> set[str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {argument.arg for argument in arguments} - {"self", "cls"}
