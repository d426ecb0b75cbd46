"""The same candidate in three forms: it builds at the level of its module, in `__init__`, or in its first `forward`.

The second and third are rewritten from the first: `extension = load_inline(...)` moves into the method, and the name
stays a global one, so that all that uses it stays as it is.
"""

from __future__ import annotations

import ast
from enum import StrEnum

_BUILDERS = frozenset({"load_inline", "load", "build"})


class Form(StrEnum):
    """Where a candidate builds."""

    MODULE = "module"
    INIT = "init"
    FORWARD = "forward"


def in_form(source: str, form: Form) -> str:
    """Return the candidate in a form. Raises ValueError where its module builds nothing, or it has no ModelNew."""
    tree = ast.parse(source)
    builds = [node for node in tree.body if isinstance(node, ast.Assign) and _is_build(node)]
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelNew"), None)
    if not builds or model is None:
        raise ValueError("the candidate builds nothing at the level of its module, or has no class ModelNew")
    if form is Form.MODULE:
        return source
    names = [name.id for node in builds for name in node.targets if isinstance(name, ast.Name)]
    empty = [ast.parse(f"{name} = None").body[0] for name in names]
    kept = [node for node in tree.body if node not in builds]
    tree.body = [*kept[: kept.index(model)], *empty, *kept[kept.index(model) :]]
    method = _method(model, "__init__" if form is Form.INIT else "forward")
    built: list[ast.stmt] = [*ast.parse(f"global {', '.join(names)}").body]
    if form is Form.INIT:
        built += builds
    else:
        first = ast.parse(f"if {names[-1]} is None:\n    pass").body[0]
        assert isinstance(first, ast.If)
        first.body = [*builds]
        built.append(first)
    method.body = built + method.body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _is_build(node: ast.Assign) -> bool:
    if not isinstance(node.value, ast.Call):
        return False
    called = node.value.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name in _BUILDERS


def _method(model: ast.ClassDef, name: str) -> ast.FunctionDef:
    """Return a method of the class, which gets the constructor that it inherits where it has none of its own."""
    for node in model.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    made = ast.parse(f"def {name}(self, *args, **kwargs):\n    super().{name}(*args, **kwargs)").body[0]
    assert isinstance(made, ast.FunctionDef)
    model.body.insert(0, made)
    return made
