"""Read a bare Triton kernel: what its file defines, its parameters, and how its programs share the work."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hkbench.binding.kernel import BLOCK, BareKernel, Kind, NotCertain, Parameter, Shape
from hkbench.llm.blocks import parsed
from hkbench.profile.names import triton_functions

_IMPORTED = ("import triton", "import triton.language as tl")  #: by the text around it
_CALLED_WITH = frozenset({"jit", "triton.jit"})


def read_triton(text: str) -> BareKernel:
    """Return the one kernel of a file. Raises NotCertain."""
    tree = parsed(text)
    if tree is None:
        raise NotCertain("its block is not Python")
    jitted = triton_functions(text)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in jitted}
    used = {name for node in functions.values() for name in _names(node) if name != node.name}
    kernels = [node for name, node in functions.items() if name not in used]
    if len(kernels) != 1:
        raise NotCertain(f"there are {len(kernels)} kernels that no other one calls; ask for one")
    kernel = kernels[0]
    decorators = {ast.unparse(one) for one in kernel.decorator_list}
    if not decorators <= _CALLED_WITH:
        more = ", ".join(sorted(decorators - _CALLED_WITH))
        raise NotCertain(f"@{more[:80]} decides about its launch; ask for ModelNew, or for @triton.jit alone")
    told = kernel.args
    if told.vararg or told.kwarg or told.kwonlyargs or told.posonlyargs:
        raise NotCertain("its parameters are not all plain ones")
    defaults = [None] * (len(told.args) - len(told.defaults)) + list(told.defaults)
    stored, loaded = _stored(kernel), _loaded(kernel)
    parameters = tuple(
        _parameter(argument, default, stored, loaded) for argument, default in zip(told.args, defaults, strict=True)
    )
    return BareKernel(kernel.name, _kept(text, tree, functions), parameters, _shape(kernel, parameters))


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _parameter(argument: ast.arg, default: ast.expr | None, stored: set[str], loaded: set[str]) -> Parameter:
    name = argument.arg
    annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    if annotation.endswith("constexpr"):
        value = default.value if isinstance(default, ast.Constant) else None
        if default is not None and value is None:
            raise NotCertain(f"the default of {name} is not a number")
        return Parameter(name, Kind.CONSTANT, default=value)
    if default is not None:
        raise NotCertain(f"{name} has a default and is no tl.constexpr")
    if name in stored or name in loaded:
        return Parameter(name, Kind.POINTER, written=name in stored)
    return Parameter(name, Kind.SCALAR)


def _stored(kernel: ast.FunctionDef) -> set[str]:
    """Return the parameters through which the kernel stores. Raises NotCertain for atomics and block pointers."""
    found: set[str] = set()
    for call in _calls(kernel):
        name = _called(call)
        if name in ("make_block_ptr", "advance", "make_tensor_descriptor"):
            raise NotCertain(f"tl.{name} hides which tensor it reads or writes; ask for pointers")
        if name.startswith("atomic"):
            raise NotCertain(f"tl.{name} adds to what the output held before; ask for ModelNew, which clears it")
        if name == "store" and call.args:
            found |= _sources(kernel, call.args[0])
    return found


def _loaded(kernel: ast.FunctionDef) -> set[str]:
    """Return the parameters through which the kernel loads."""
    return {
        name
        for call in _calls(kernel)
        if _called(call) == "load" and call.args
        for name in _sources(kernel, call.args[0])
    }


def _calls(kernel: ast.FunctionDef) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(kernel) if isinstance(node, ast.Call))


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _sources(kernel: ast.FunctionDef, address: ast.expr) -> set[str]:
    """Return the parameter that an address begins at: the first summand, through local names."""
    bound = {argument.arg for argument in kernel.args.args}
    given: dict[str, ast.expr] = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            given.setdefault(node.targets[0].id, node.value)
    at, steps = address, 0
    while steps < 20:
        steps += 1
        if isinstance(at, ast.BinOp) and isinstance(at.op, ast.Add):
            at = at.left
        elif isinstance(at, ast.Name) and at.id in given and at.id not in bound:
            at = given[at.id]
        else:
            break
    return {at.id} if isinstance(at, ast.Name) and at.id in bound else set()


def _shape(kernel: ast.FunctionDef, parameters: tuple[Parameter, ...]) -> Shape:
    """Return how programs share the work. Raises NotCertain where they have more than one dimension."""
    numbered = [call for call in _calls(kernel) if _called(call) == "program_id"]
    axes = {ast.unparse(one) for call in numbered for one in (*call.args, *(word.value for word in call.keywords))}
    if axes != {"0"}:
        raise NotCertain("its grid is not one-dimensional; ask for ModelNew, which launches it")
    if any(_called(call) == "num_programs" for call in _calls(kernel)):
        raise NotCertain("it asks for the number of programs, which only a launch decides; ask for ModelNew")
    blocks = {one.name for one in parameters if one.kind is Kind.CONSTANT and BLOCK.fullmatch(one.name)}
    names = {one.name for one in parameters if one.kind is not Kind.POINTER}
    factors = {name for pair in _products_of_id(kernel) for name in pair}
    if factors & blocks:
        return Shape.ELEMENTS
    if factors & names:
        return Shape.ROWS
    raise NotCertain("neither elements by a BLOCK_SIZE nor a row by its number of columns belong to a program; ask for "
                     "ModelNew, which launches it")  # fmt: skip


def _products_of_id(kernel: ast.FunctionDef) -> Iterator[set[str]]:
    """Yield the names that the number of the program is multiplied by."""
    ids = {
        node.targets[0].id
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and _has_id(node.value)
        and not isinstance(node.value, ast.BinOp)
    }
    for node in ast.walk(kernel):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if (isinstance(one, ast.Name) and one.id in ids) or _has_id(one):
                    yield _names(other)


def _has_id(node: ast.expr) -> bool:
    return any(_called(call) == "program_id" for call in ast.walk(node) if isinstance(call, ast.Call))


def _kept(text: str, tree: ast.Module, functions: dict[str, ast.FunctionDef]) -> str:
    """Return imports of Triton, the constants of the file and its Triton functions; no other code of it runs."""
    parts: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if functions.get(node.name) is node:
                decorators = "".join(f"@{ast.unparse(one)}\n" for one in node.decorator_list)
                parts.append(decorators + (ast.get_source_segment(text, node) or ast.unparse(node)))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if "triton" in ast.unparse(node) and ast.unparse(node) not in _IMPORTED:
                parts.append(ast.unparse(node))
        elif isinstance(node, ast.Assign) and _is_constant(node.value):
            parts.append(ast.unparse(node))
    return "\n\n\n".join(parts)


def _is_constant(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return _called(value) == "constexpr" and len(value.args) == 1 and isinstance(value.args[0], ast.Constant)
    return isinstance(value, ast.Constant)
