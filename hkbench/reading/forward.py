"""What `ModelNew.forward` reaches, and whether a kernel of its own does the work."""

from __future__ import annotations

import ast
import re

from hkbench.reading.budget import Budget
from hkbench.reading.names import LOCAL, Names
from hkbench.reading.report import Report

_HEAVY = (
    "matmul mm bmm addmm addbmm baddbmm addmv mv einsum tensordot chain_matmul linear bilinear conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d convolution scaled_dot_product_attention _scaled_mm inner "
    "layer_norm rms_norm group_norm batch_norm instance_norm native_layer_norm softmax log_softmax "
    "cross_entropy multi_head_attention_forward embedding_bag lstm gru rnn_tanh rnn_relu max_pool2d avg_pool2d"
)
_LIBRARY = frozenset(_HEAVY.split())
_LIBRARY_METHODS = frozenset(["matmul", "mm", "bmm", "addmm", "baddbmm", "softmax", "log_softmax", "einsum", "conv2d"])
_MOVES = frozenset(["pad", "unfold", "fold", "one_hot", "pixel_shuffle", "pixel_unshuffle"])
_ARITHMETIC = frozenset(
    [
        *["sum", "mean", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "var", "std", "cumsum", "cumprod"],
        *["norm", "amax", "amin", "max", "min", "argmax", "argmin", "sort", "topk", "add", "mul", "div", "sub", "pow"],
        *["erf", "where"],
    ]
)
_PLAIN_MODULES = frozenset(
    [
        "Module",
        "Parameter",
        "ParameterList",
        "ParameterDict",
        "ModuleList",
        "ModuleDict",
        "Identity",
        "Flatten",
        "Buffer",
    ]
)
_BUILDERS = re.compile(
    r"torch\.utils\.cpp_extension\.(?:load|load_inline)|hipkittens_build\.build|cupy\.(?:RawKernel|RawModule|ElementwiseKernel)|ctypes\.CDLL"
    r"|torch\.cuda\._compile_kernel|torch\.ops\.load_library|ctypes\.cdll\.LoadLibrary|tilelang\.compile|tilelang\.jit"
)
_JITS = re.compile(
    r"triton\.(?:jit|autotune|heuristics)|triton\.runtime\.jit\.jit|numba\.(?:jit|njit|cuda\.jit|prange)"
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Reach:
    """The functions of the file that `ModelNew.forward` may run, and the names that they mention."""

    def __init__(self, names: Names, budget: Budget) -> None:
        self._names = names
        self._budget = budget
        self.functions: list[Definition] = []
        self.mentioned: set[str] = set()
        entries = ["ModelNew.forward", "ModelNew.__call__", "ModelNew._call_impl"]
        self._pending = [LOCAL + entry for entry in entries]
        aliases = names.scopes.module.names.get("ModelNew", [])
        for binding in aliases:
            if binding.node is not None and not isinstance(binding.node, ast.ClassDef):
                self._pending += [f"{name}.forward" for name in names.resolve(binding.node)]
        seen: set[str] = set()
        while self._pending:
            name = self._pending.pop().replace("()", "")
            if name in seen:
                continue
            seen.add(name)
            self._visit(name)

    def _visit(self, name: str) -> None:
        definition = self._names.definitions.get(name)
        if isinstance(definition, ast.ClassDef):
            self._pending += [f"{name}.{method}" for method in ("forward", "__call__", "apply")]
            return
        if definition is None:
            self._inherited(name)
        if not isinstance(definition, Definition) or definition in self.functions:
            return
        self.functions.append(definition)
        for node in ast.walk(definition):
            self._budget.spend()
            if isinstance(node, ast.Name | ast.Attribute | ast.Call):
                found = self._names.resolve(node)
                self.mentioned |= found
                self._pending += [one for one in found if one.startswith(LOCAL)]

    def _inherited(self, name: str) -> None:
        owner, _, method = name.rpartition(".")
        definition = self._names.definitions.get(owner)
        if isinstance(definition, ast.ClassDef):
            for base in definition.bases:
                self._pending += [f"{one}.{method}" for one in self._names.resolve(base) if one.startswith(LOCAL)]


class ForwardRules:
    """Own work, library work, hidden failures."""

    def __init__(self, tree: ast.Module, names: Names, report: Report, budget: Budget, has_native_source: bool) -> None:
        self._tree = tree
        self._names = names
        self._report = report
        self._budget = budget
        self._has_native_source = has_native_source
        self._branches: set[ast.AST] = set()
        self.reach = Reach(names, budget)

    def read(self) -> None:
        for function in self.reach.functions:
            if not self._is_kernel(function):
                self._branches = self._leaving_branches(function)
                for node in ast.walk(function):
                    self._budget.spend()
                    self._work(node)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Try):
                self._guarded(node)
        self._kernels()

    def _is_kernel(self, node: ast.AST) -> bool:
        decorators = getattr(node, "decorator_list", [])
        return any(_JITS.match(name) for one in decorators for name in self._names.resolve(one))

    def _leaving_branches(self, function: Definition) -> set[ast.AST]:
        """What stands in branches that return by themselves: a way for shapes that the kernel does not take."""
        found: set[ast.AST] = set()
        for node in ast.walk(function):
            self._budget.spend()
            if isinstance(node, ast.If):
                for branch in (node.body, node.orelse):
                    if branch and isinstance(branch[-1], ast.Return):
                        found.update(inner for statement in branch for inner in ast.walk(statement))
        return found

    def _library(self, node: ast.AST) -> None:
        self._report.add("py-library-branch" if node in self._branches else "py-library-op", node)

    def _work(self, node: ast.AST) -> None:
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            self._library(node)
        if not isinstance(node, ast.Call):
            return
        callees = self._names.resolve(node.func)
        for name in callees:
            parent, _, last = name.rpartition(".")
            if not name.startswith(("torch.", "xformers.", "flash_attn.", "scipy.", "numpy.", "transformers.")):
                continue
            if _BUILDERS.match(name):
                continue  # its own function may have any name
            if re.fullmatch(r"torch\.nn\.(?:modules\.\w+\.)?[A-Z]\w*\(\)", name) and last[:-2] not in _PLAIN_MODULES:
                self._report.add("py-library-module", node)
            elif (
                (name.startswith("torch.nn.functional.") and last not in _MOVES)
                or last in _LIBRARY
                or parent.startswith(("torch.ops.aten", "torch._C._nn", "torch.sparse"))
            ):
                self._library(node)
            elif last in _ARITHMETIC and parent in {"torch", "torch.Tensor", "torch.linalg", "torch.special"}:
                self._report.add("py-torch-math", node)
        if isinstance(node.func, ast.Attribute) and not any(_known_owner(name) for name in callees):
            if node.func.attr in _LIBRARY_METHODS:
                self._library(node)
            elif node.func.attr in _ARITHMETIC:
                self._report.add("py-torch-math", node)

    def _guarded(self, node: ast.Try) -> None:
        """A failure of a build or a kernel that goes on as if nothing had happened."""
        swallowed = [h for h in node.handlers if not any(isinstance(n, ast.Raise) for n in ast.walk(h))]
        if not swallowed:
            return
        inside = any(self._inside(node, function) for function in self.reach.functions)
        for part in node.body:
            for call in ast.walk(part):
                self._budget.spend()
                if isinstance(call, ast.Call):
                    names = self._names.resolve(call.func)
                    builds = any(_BUILDERS.match(name) for name in names)
                    if builds or (inside and not _harmless(names)):
                        self._report.add("py-except-fallback", swallowed[0])
                        return

    def _inside(self, node: ast.AST, function: ast.AST) -> bool:
        scope = self._names.scopes.of.get(node)
        while scope is not None:
            if scope.node is function:
                return True
            scope = scope.parent
        return False

    def _kernels(self) -> None:
        built = [
            (node, name)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Call)
            for name in self._names.resolve(node.func)
            if _BUILDERS.match(name)
        ]
        jitted = [node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef) and self._is_kernel(node)]
        if not built and not jitted and not self._has_native_source:
            self._report.add("py-no-kernel", None, "no extension, no Triton kernel, no C++ source")
        if not self.reach.functions:
            return
        uses_ops = any(name.startswith("torch.ops.") for name in self.reach.mentioned)
        if built and not uses_ops and not any(_BUILDERS.match(name) for name in self.reach.mentioned):
            used = {n.id for f in self.reach.functions for n in ast.walk(f) if isinstance(n, ast.Name)}
            if not used & self._imported_after_build():
                self._report.add("py-kernel-unused", built[0][0])
        for kernel in jitted:
            if not any(kernel is function for function in self.reach.functions):
                self._report.add("py-kernel-unused", kernel)

    def _imported_after_build(self) -> set[str]:
        """Names bound to modules that an import of the built extension may have given."""
        return {
            name
            for name, bindings in self._names.scopes.module.names.items()
            if any("import_module()" in r for b in bindings if b.node is not None for r in self._names.resolve(b.node))
        }


def _known_owner(name: str) -> bool:
    """A method of something that the file defines, builds or imports: not a tensor's."""
    return not name.startswith("torch.") or bool(_BUILDERS.match(name))


def _harmless(names: frozenset[str]) -> bool:
    return bool(names) and all(name.startswith(("importlib.", "builtins.", "warnings.")) for name in names)
