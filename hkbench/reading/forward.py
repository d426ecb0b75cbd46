"""What `ModelNew.forward` reaches, and whether a kernel of its own does the work."""

from __future__ import annotations

import ast
import re

from hkbench.reading.budget import Budget
from hkbench.reading.names import LOCAL, Names
from hkbench.reading.report import Report
from hkbench.reading.scopes import Function

_PACKAGES = ("torch.", "xformers.", "flash_attn.", "scipy.", "numpy.", "transformers.")
_LIBRARY = frozenset(
    str.split(
        "matmul mm bmm addmm addbmm baddbmm addmv mv einsum tensordot chain_matmul linear bilinear conv1d conv2d "
        "conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution scaled_dot_product_attention _scaled_mm "
        "inner layer_norm rms_norm group_norm batch_norm instance_norm native_layer_norm softmax log_softmax "
        "cross_entropy multi_head_attention_forward embedding_bag lstm gru rnn_tanh rnn_relu max_pool2d avg_pool2d"
    )
)
_LIBRARY_METHODS = frozenset(["matmul", "mm", "bmm", "addmm", "baddbmm", "softmax", "log_softmax", "einsum", "conv2d"])
_MOVES = frozenset(["pad", "unfold", "fold", "one_hot", "pixel_shuffle", "pixel_unshuffle"])
_ARITHMETIC = frozenset(
    str.split(
        "sum mean exp log sqrt rsqrt tanh sigmoid relu var std cumsum cumprod norm amax amin max min argmax argmin "
        "sort topk add mul div sub pow erf where"
    )
)
_MODULE = re.compile(
    r"torch\.nn\.(?:modules\.\w+\.)?"
    r"(?!(?:Module|Parameter|ParameterList|ParameterDict|ModuleList|ModuleDict|Identity|Flatten|Buffer)\b)[A-Z]\w*\(\)"
)
_BUILDERS = re.compile(
    r"torch\.utils\.cpp_extension\.(?:load|load_inline)|hipkittens_build\.build|ctypes\.CDLL|torch\.ops\.load_library"
    r"|cupy\.(?:RawKernel|RawModule|ElementwiseKernel)|torch\.cuda\._compile_kernel|ctypes\.cdll\.LoadLibrary"
    r"|tilelang\.compile|tilelang\.jit"
)
_JITS = re.compile(
    r"triton\.(?:jit|autotune|heuristics)|triton\.runtime\.jit\.jit|numba\.(?:jit|njit|cuda\.jit|prange)"
)


class Reach:
    """The functions of the file that `ModelNew.forward` may run, and the names that they mention."""

    def __init__(self, names: Names, budget: Budget) -> None:
        self._names = names
        self._budget = budget
        self.functions: list[Function] = []
        self.mentioned: set[str] = set()
        self._pending = [f"{LOCAL}ModelNew.{entry}" for entry in ("forward", "__call__", "_call_impl")]
        for bound in names.scopes.module.names.get("ModelNew", []):
            if bound is not None and not isinstance(bound, ast.ClassDef):
                self._pending += [f"{name}.forward" for name in names.resolve(bound)]
        seen: set[str] = set()
        while self._pending:
            name = self._pending.pop().replace("()", "")
            if name not in seen:
                seen.add(name)
                self._visit(name)

    def _visit(self, name: str) -> None:
        definition = self._names.definitions.get(name)
        owner, _, method = name.rpartition(".")
        holder = self._names.definitions.get(owner)
        if isinstance(definition, ast.ClassDef):
            self._pending += [f"{name}.{method}" for method in ("forward", "__call__", "apply")]
        elif definition is None and isinstance(holder, ast.ClassDef):
            self._pending += [f"{one}.{method}" for base in holder.bases for one in self._names.resolve(base)]
        elif isinstance(definition, Function) and definition not in self.functions:
            self.functions.append(definition)
            for node in self._names.scopes.walk(definition):
                self._budget.spend()
                if isinstance(node, ast.Name | ast.Attribute | ast.Call):
                    found = self._names.resolve(node)
                    self.mentioned |= found
                    self._pending += [one for one in found if one.startswith(LOCAL)]


class ForwardRules:
    """Own work, library work, hidden failures."""

    def __init__(self, tree: ast.Module, names: Names, report: Report, budget: Budget, has_native_source: bool) -> None:
        self._names = names
        self._report = report
        self._budget = budget
        self._has_native_source = has_native_source
        self._nodes = names.scopes.walk(tree)
        self.reach = Reach(names, budget)

    def read(self) -> None:
        for function in self.reach.functions:
            if not self._is_kernel(function):
                aside = self._leaving_branches(function)
                for node in self._names.scopes.walk(function):
                    self._budget.spend()
                    for rule in self._work(node):
                        in_branch = rule == "py-library-op" and node in aside
                        self._report.add("py-library-branch" if in_branch else rule, node)
        for node in self._nodes:
            if isinstance(node, ast.Try):
                self._guarded(node)
        self._kernels()

    def _is_kernel(self, node: ast.AST) -> bool:
        decorators = getattr(node, "decorator_list", [])
        return any(_JITS.match(name) for one in decorators for name in self._names.resolve(one))

    def _leaving_branches(self, function: Function) -> set[ast.AST]:
        """Return what stands in branches that return by themselves: a way for shapes that the kernel does not take."""
        ifs = [node for node in self._names.scopes.walk(function) if isinstance(node, ast.If)]
        branches = [branch for node in ifs for branch in (node.body, node.orelse)]
        leaving = [branch for branch in branches if branch and isinstance(branch[-1], ast.Return)]
        self._budget.spend(len(leaving))
        return {inner for branch in leaving for statement in branch for inner in ast.walk(statement)}

    def _work(self, node: ast.AST) -> set[str]:
        match node:
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                return {"py-library-op"}
            case ast.Call(func=function):
                callees = self._names.resolve(function)
                found = {rule for name in callees for rule in _rules_of(name)}
                # Not a method of something that the file defines, builds or imports.
                is_tensors = all(name.startswith("torch.") and not _BUILDERS.match(name) for name in callees)
                if isinstance(function, ast.Attribute) and is_tensors:
                    found |= {"py-library-op"} if function.attr in _LIBRARY_METHODS else set()
                    found |= {"py-torch-math"} if function.attr in _ARITHMETIC else set()
                return found
        return set()

    def _guarded(self, node: ast.Try) -> None:
        """Report a failure of a build or a kernel that is caught as if nothing had happened."""
        swallowed = [h for h in node.handlers if not any(isinstance(n, ast.Raise) for n in ast.walk(h))]
        calls = [part for statement in node.body for part in ast.walk(statement) if isinstance(part, ast.Call)]
        if not swallowed:
            return
        inside = self._is_inside(node)
        for call in calls:
            self._budget.spend()
            names = self._names.resolve(call.func)
            harmless = bool(names) and all(name.startswith(("importlib.", "builtins.", "warnings.")) for name in names)
            if any(map(_BUILDERS.match, names)) or (inside and not harmless):
                self._report.add("py-except-fallback", swallowed[0])
                return

    def _is_inside(self, node: ast.AST) -> bool:
        """Return whether it stands in a function that is reached."""
        scope = self._names.scopes.of.get(node)
        while scope is not None and scope.node not in self.reach.functions:
            scope = scope.parent
        return scope is not None

    def _kernels(self) -> None:
        calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        built = [node for node in calls if any(map(_BUILDERS.match, self._names.resolve(node.func)))]
        jitted = [node for node in self._nodes if isinstance(node, ast.FunctionDef) and self._is_kernel(node)]
        if not built and not jitted and not self._has_native_source:
            self._report.add("py-no-kernel", None, "no extension, no Triton kernel, no C++ source")
        if not self.reach.functions:
            return
        if built and not any(name.startswith("torch.ops.") or _BUILDERS.match(name) for name in self.reach.mentioned):
            parts = [part for function in self.reach.functions for part in self._names.scopes.walk(function)]
            if not {part.id for part in parts if isinstance(part, ast.Name)} & self._imported_after_build():
                self._report.add("py-kernel-unused", built[0])
        for kernel in jitted:
            if kernel not in self.reach.functions:
                self._report.add("py-kernel-unused", kernel)

    def _imported_after_build(self) -> set[str]:
        """Return the names bound to modules that an import of the built extension may have given."""
        return {
            name
            for name, bindings in self._names.scopes.module.names.items()
            if any("import_module()" in r for b in bindings if b is not None for r in self._names.resolve(b))
        }


def _rules_of(name: str) -> list[str]:
    """Return what a call of a dotted name is in `forward`."""
    parent, _, last = name.rpartition(".")
    if not name.startswith(_PACKAGES) or _BUILDERS.match(name):  # a built function may have any name
        return []
    if _MODULE.fullmatch(name):
        return ["py-library-module"]
    is_functional = name.startswith("torch.nn.functional.") and last not in _MOVES
    if is_functional or last in _LIBRARY or parent.startswith(("torch.ops.aten", "torch._C._nn", "torch.sparse")):
        return ["py-library-op"]
    is_math = last in _ARITHMETIC and parent in {"torch", "torch.Tensor", "torch.linalg", "torch.special"}
    return ["py-torch-math"] if is_math else []
