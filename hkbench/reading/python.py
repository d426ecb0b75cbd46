"""Rules over a Python file, by what its expressions stand for."""

from __future__ import annotations

import ast
import re

from hkbench.reading.budget import Budget
from hkbench.reading.names import LOCAL, Names
from hkbench.reading.python_names import (
    BUILD_VARIABLES,
    COMPILERS,
    NATIVE_LIBRARIES,
    is_clock,
    rule_of,
)
from hkbench.reading.report import Report
from hkbench.reading.scopes import Scopes

_STREAMS = {"torch.cuda.Stream", "torch.Stream", "torch.cuda.ExternalStream", "cupy.cuda.Stream", "torch.xpu.Stream"}
_FRAME_ATTRIBUTES = frozenset(["f_back", "f_locals", "f_globals", "tb_frame", "gi_frame", "cr_frame"])
_OVERRIDES = frozenset(["__torch_function__", "__torch_dispatch__"])
_COPIES = frozenset(["copy_", "clone", "is_tensor", "data_ptr", "untyped_storage"])
_READS = frozenset(["read_text", "read_bytes", "iterdir", "rglob"])
_PROC_MEM = re.compile(r"^/proc/[^/]+/(?:task/[^/]+/)?mem$")
_LOW = re.compile(r"torch\.(?:float16|half|bfloat16|float8\w*)")
_HARNESS = re.compile(r"^hkbench(?:\.|$)")


class PythonRules:
    """Walks a module once. `decoded` collects text that is executed, to be read in turn."""

    def __init__(self, tree: ast.Module, names: Names, report: Report, budget: Budget) -> None:
        self._tree = tree
        self._names = names
        self._report = report
        self._budget = budget
        self.decoded: list[tuple[str, int]] = []
        self._streams: list[ast.AST] = []
        self._joined = False
        self._threads: list[ast.AST] = []
        self._awaited = False
        self._harness_words: list[ast.AST] = []
        self._looks_around = False

    def read(self) -> None:
        for node in list(self._names.scopes.of):
            self._budget.spend()
            if not hasattr(node, "lineno"):
                continue
            self._names_in(node)
            if isinstance(node, ast.Call):
                self._call(node)
            match node:
                case ast.Assign(targets=targets):
                    for target in targets:
                        self._assigned(target)
                case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                    self._assigned(target)
                case ast.Delete(targets=targets):
                    for target in targets:
                        self._assigned(target)
                case ast.Import() | ast.ImportFrom():
                    self._import(node)
                case ast.ClassDef(bases=bases):
                    if any(self._names.resolve(b) & {"torch.Tensor", "torch.nn.Parameter"} for b in bases):
                        self._report.add("py-tensor-subclass", node)
                case ast.FunctionDef(name=name) if name in _OVERRIDES:
                    self._report.add("py-tensor-subclass", node)
                case ast.Attribute(attr=attribute) if attribute in _FRAME_ATTRIBUTES:
                    self._report.add("py-frames", node)
                case ast.Constant() | ast.BinOp() | ast.JoinedStr() | ast.Call():
                    self._string(self._names.constant(node), node)
        for node in self._streams:
            self._report.add("py-stream" if self._joined else "py-stream-unjoined", node)
        for node in self._threads:
            self._report.add("py-thread" if self._awaited else "py-thread-unjoined", node)
        if self._looks_around:
            for node in self._harness_words:
                self._report.add("py-harness", node)

    def _names_in(self, node: ast.AST) -> None:
        if not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            return
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return
        for name in self._names.resolve(node):
            if name.startswith(LOCAL):
                continue
            rule = rule_of(name)
            if rule == "py-thread":
                self._threads.append(node)
            elif rule is not None and not (rule == "py-decode" and isinstance(node, ast.Name | ast.Attribute)):
                self._report.add(rule, node)
            if rule in {"py-sys-modules", "py-frames", "py-gc-objects"} or name == "importlib.import_module":
                self._looks_around = True
            if rule == "py-gc-objects":
                self._gc(node)
            if name.startswith("torch.backends.") and "allow_tf32" in name:
                self._report.add("py-low-precision", node)

    def _gc(self, node: ast.AST) -> None:
        scope = self._names.scopes.of[node]
        for other in ast.walk(scope.node):
            self._budget.spend()
            tensor = isinstance(other, ast.Attribute) and (
                other.attr in _COPIES or "torch.Tensor" in self._names.resolve(other)
            )
            if tensor:
                self._report.add("py-gc-copies", node)
                return

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for module in modules:
            root = module.split(".")[0]
            if root in {"hkbench", "__main__"}:
                self._report.add("py-harness", node)
            elif root in {"pip", "ensurepip"}:
                self._report.add("py-install", node)
            elif root in {"requests", "httpx", "aiohttp", "huggingface_hub"}:
                self._report.add("py-network", node)

    def _string(self, value: object, node: ast.AST) -> None:
        if not isinstance(value, str):
            return
        if _PROC_MEM.match(value):
            self._report.add("py-proc-mem", node)
        elif value.startswith("/proc/"):
            self._report.add("py-proc", node)
        if value in {"LD_PRELOAD", "LD_AUDIT"} or value.startswith("LD_PRELOAD="):
            self._report.add("py-preload", node)
        if re.search(r"\bpip3? install\b", value) and len(value) < 300:
            self._report.add("py-install", node)
        if _HARNESS.match(value):
            self._harness_words.append(node)

    def _assigned(self, target: ast.expr) -> None:
        match target:
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one in targets:
                    self._assigned(one)
            case ast.Attribute(value=owner, attr=attribute):
                self._patched(owner, attribute, target)
            case ast.Subscript(value=owner, slice=index):
                if isinstance(owner, ast.Call) or (isinstance(owner, ast.Attribute) and owner.attr == "__dict__"):
                    self._patched(owner, self._names.text(index) or "?", target)
                if "os.environ" in self._names.resolve(owner) and self._names.text(index) not in BUILD_VARIABLES:
                    self._report.add("py-environment", target)
                if "sys.modules" in self._names.resolve(owner):
                    self._report.add("py-patch", target)

    def _patched(self, owner: ast.expr, attribute: str, at: ast.AST) -> None:
        """`owner.attribute` is assigned or deleted: does it belong to something that was imported?"""
        if isinstance(owner, ast.Name) and owner.id in {"self", "cls"}:
            return
        for name in self._names.resolve(owner):
            if name.startswith((LOCAL, "builtins.vars", "builtins.globals", "builtins.locals")) or "()" in name[:-2]:
                continue
            whole = f"{name}.{attribute}"
            if name.endswith("()") and not name.startswith(("torch.cuda.Event()", "builtins.type()")):
                continue  # an attribute of an object that it made itself
            if whole.startswith("torch.backends."):
                self._report.add("py-global-setting", at)
                if "tf32" in whole or "reduced_precision" in whole:
                    self._report.add("py-low-precision", at)
            elif name.split(".")[0] in {"hkbench", "__main__"}:
                self._report.add("py-harness", at)
            else:
                self._report.add("py-patch-clock" if is_clock(whole) else "py-patch", at)

    def _call(self, node: ast.Call) -> None:
        callees = self._names.resolve(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if callees & _STREAMS:
            self._streams.append(node)
        if method in {"wait_stream", "wait_event", "synchronize"} and isinstance(node.func, ast.Attribute):
            made_here = self._names.resolve(node.func.value) & {f"{stream}()" for stream in _STREAMS}
            self._joined |= method == "synchronize" or not made_here
        self._awaited |= self._waits(node, method, callees)
        for callee in callees:
            self._builtin(callee, node)
            self._system(callee, node)
        if method in _READS or (method == "open" and self._opens_path(node)):
            self._report.add("py-file", node)
        if method in {"write_text", "write_bytes"}:
            self._report.add("py-file-write", node)
        if method == "as_subclass":
            self._report.add("py-tensor-subclass", node)
        self._precision(node, method)

    def _waits(self, node: ast.Call, method: str, callees: frozenset[str]) -> bool:
        """`thread.join()`, `future.result()`, `list(pool.map(...))`, `concurrent.futures.wait(...)`."""
        if callees & {"concurrent.futures.wait", "concurrent.futures.as_completed"}:
            return True
        if callees & {"builtins.list", "builtins.tuple"} and node.args and isinstance(node.args[0], ast.Call):
            inner = node.args[0].func
            return isinstance(inner, ast.Attribute) and inner.attr in {"map", "imap", "starmap"}
        return method == "result" or (method == "join" and not node.args)

    def _opens_path(self, node: ast.Call) -> bool:
        """`path.open("r+b")`: a file mode is the first argument, or there is none."""
        mode = self._names.text(node.args[0]) if node.args else "r"
        return not self._names.resolve(node.func) and mode is not None and bool(set("rwax+") & set(mode[:3]))

    def _builtin(self, callee: str, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        if callee in {"builtins.exec", "builtins.eval", "builtins.compile"}:
            self._executed(first, node)
        elif callee in {"builtins.setattr", "builtins.delattr", "builtins.type.__setattr__"} and len(node.args) > 1:
            self._patched(node.args[0], self._names.text(node.args[1]) or "?", node)
        elif callee == "builtins.getattr" and len(node.args) > 1 and self._names.text(node.args[1]) is None:
            if any(not name.startswith(LOCAL) for name in self._names.resolve(node.args[0])):
                self._report.add("py-dynamic-name", node)
        elif callee in {"unittest.mock.patch", "unittest.mock.patch.object"} and first is not None:
            target = self._names.text(first)
            if target is None and len(node.args) > 1:
                self._patched(first, self._names.text(node.args[1]) or "?", node)
            else:
                self._report.add("py-patch-clock" if is_clock(target or "") else "py-patch", node)
        elif callee in {"builtins.open", "io.open"}:
            mode = self._names.text(node.args[1]) if len(node.args) > 1 else None
            mode = mode or next((self._names.text(k.value) for k in node.keywords if k.arg == "mode"), None)
            self._report.add("py-file-write" if mode and set(mode) & set("wax") else "py-file", node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"update", "__setattr__", "__setitem__"}:
            owner = node.func.value
            is_dict = isinstance(owner, ast.Call) or (isinstance(owner, ast.Attribute) and owner.attr == "__dict__")
            if is_dict and not callee.startswith(LOCAL):
                keys = [k.arg for k in node.keywords if k.arg] or ["?"]
                self._patched(owner, keys[0], node)

    def _executed(self, what: ast.expr | None, node: ast.Call) -> None:
        hidden = what is not None and any(
            "py-decode" in {rule_of(name) for name in self._names.resolve(part)}
            or any("marshal" in name for name in self._names.resolve(part))
            for part in self._behind(what)
            if isinstance(part, ast.Call)
        )
        self._report.add("py-exec-decoded" if hidden else "py-exec", node)
        text = self._names.text(what) if what is not None else None
        if text is not None:
            self.decoded.append((text, node.lineno))

    def _behind(self, node: ast.expr) -> list[ast.AST]:
        """The parts of an expression, with what stands behind its names (two steps)."""
        parts = list(ast.walk(node))
        for _ in range(2):
            for name in [p for p in parts if isinstance(p, ast.Name)][:20]:
                for binding in self._names.values(name)[-4:]:
                    if binding.kind == "value" and binding.node is not None:
                        parts.extend(p for p in ast.walk(binding.node) if p not in parts)
                        self._budget.spend(len(parts))
        return parts

    def _system(self, callee: str, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        constant = self._names.constant(first) if first is not None else None
        if callee.startswith("subprocess."):
            self._subprocess(callee, first, node)
        elif callee.startswith("ctypes."):
            loads = callee.rsplit(".", 1)[-1] in {"CDLL", "PyDLL", "LoadLibrary", "WinDLL"}
            native = isinstance(first, ast.Constant) and first.value is None
            native |= first is None or any(part in str(constant) for part in NATIVE_LIBRARIES)
            if loads:
                self._report.add("py-ctypes-hook" if native else "py-ctypes", node)
            elif callee.endswith((".from_address", ".in_dll")):
                self._report.add("py-ctypes-hook", node)
        elif callee in {"os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.update", "os.putenv"} and (
            constant not in BUILD_VARIABLES
        ):
            self._report.add("py-environment", node)

    def _subprocess(self, callee: str, first: ast.expr | None, node: ast.Call) -> None:
        """A compiler that is called by its name is a build; anything else is a process."""
        if callee.rpartition(".")[2] not in {"run", "Popen", "call", "check_call", "check_output", "getoutput"}:
            return
        parts = self._names.elements(first) if first is not None else []
        words = [self._names.text(part) or _default(part, self._names) or "" for part in parts]
        if not words and first is not None:
            words = (self._names.text(first) or "").split()
        program = words[0].rsplit("/", 1)[-1] if words else ""
        self._report.add("py-compiler" if program in COMPILERS else "py-process", node)
        if "pip" in words or "conda" in words:
            self._report.add("py-install", node)

    def _precision(self, node: ast.Call, method: str) -> None:
        low = method in {"half", "bfloat16"} and not node.args
        if method in {"to", "type"}:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            low = any(_LOW.fullmatch(name) for argument in given for name in self._names.resolve(argument))
        if low:
            self._report.add("py-low-precision", node)


def _default(node: ast.expr, names: Names) -> str | None:
    """The program in `os.environ.get("CXX", "c++")` and `shutil.which("g++")`."""
    found = names.resolve(node.func) if isinstance(node, ast.Call) else frozenset()
    if isinstance(node, ast.Call) and node.args and found & {"os.environ.get", "os.getenv", "shutil.which"}:
        return names.text(node.args[-1])
    return None


def read_module(tree: ast.Module, report: Report, budget: Budget) -> tuple[Names, list[tuple[str, int]]]:
    """Applies the rules; gives the names, and the text that the module executes with its line."""
    names = Names(Scopes(tree, budget), budget)
    rules = PythonRules(tree, names, report, budget)
    rules.read()
    return names, rules.decoded
