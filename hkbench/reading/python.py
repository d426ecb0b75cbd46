"""Apply the rules to a Python file, by what its expressions stand for."""

from __future__ import annotations

import ast
import re

from hkbench.reading import python_rules as rules
from hkbench.reading.budget import Budget
from hkbench.reading.names import LOCAL, Names
from hkbench.reading.report import Report
from hkbench.reading.scopes import Scopes, is_value

_STREAMS = frozenset(name for name, rule in rules.CALLS.items() if rule == "py-stream")
_LOOKS_AROUND = {"py-sys-modules", "py-frames", "py-gc-objects"}
_COPIES = frozenset(["copy_", "clone", "is_tensor", "data_ptr", "untyped_storage"])
_LOW = re.compile(r"torch\.(?:float16|half|bfloat16|float8\w*)")
_HARNESS = re.compile(r"hkbench(?:\.|$)")
_ENVIRONMENT = {"os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.update", "os.putenv"}
_PROCESSES = {f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output", "getoutput")}


class PythonRules:
    """Walk a module once. `executed` collects text that is executed, with its line, to be read in turn."""

    def __init__(self, tree: ast.Module, report: Report, budget: Budget) -> None:
        self.names = Names(Scopes(tree, budget), budget)
        self.executed: list[tuple[str, int]] = []
        self._report = report
        self._budget = budget
        self._harness_words: list[ast.AST] = []
        self._looks_around = False

    def read(self) -> None:
        for node in list(self.names.scopes.of):
            self._budget.spend()
            self._look(node)
        for node in self._harness_words if self._looks_around else ():
            self._report.add("py-harness", node)

    def _look(self, node: ast.AST) -> None:
        match node:
            case ast.Call():
                self._used(node)
                self._call(node)
                self._string(node)
            case ast.Attribute(attr=attribute) if attribute in rules.ATTRIBUTES:
                self._report.add(rules.ATTRIBUTES[attribute], node)
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) | ast.Subscript(ctx=ast.Load()):
                self._used(node)
            case ast.Constant() | ast.BinOp() | ast.JoinedStr():
                self._string(node)
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for target in targets:
                    self._assigned(target)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                self._assigned(target)
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._report.add(rules.IMPORTS.get(alias.name.split(".")[0]), node)
            case ast.ImportFrom(module=str() as module):
                self._report.add(rules.IMPORTS.get(module.split(".")[0]), node)
            case ast.FunctionDef(name=name):
                self._report.add(rules.OVERRIDES.get(name), node)
            case ast.ClassDef(bases=bases):
                if any(self.names.resolve(base) & {"torch.Tensor", "torch.nn.Parameter"} for base in bases):
                    self._report.add("py-tensor-subclass", node)

    def _argument(self, node: ast.Call, at: int) -> str | None:
        return self.names.text(node.args[at]) if len(node.args) > at else None

    def _used(self, node: ast.AST) -> None:
        for name in self.names.resolve(node):
            if name.startswith(LOCAL):
                continue
            rule = rules.rule_of(name)
            self._report.add(rule, node)
            self._looks_around |= rule in _LOOKS_AROUND or name == "importlib.import_module"
            if rule == "py-gc-objects" and any(self._copies(one) for one in self._around(node)):
                self._report.add("py-gc-copies", node)
            if name.startswith("torch.backends.") and "allow_tf32" in name:
                self._report.add("py-low-precision", node)

    def _around(self, node: ast.AST) -> list[ast.AST]:
        found = self.names.scopes.walk(self.names.scopes.of[node].node)
        self._budget.spend(len(found))
        return found

    def _copies(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Attribute):
            return False
        return node.attr in _COPIES or "torch.Tensor" in self.names.resolve(node)

    def _string(self, node: ast.expr) -> None:
        value = self.names.constant(node)
        if not isinstance(value, str):
            return
        for rule, pattern in rules.STRINGS.items():
            if pattern.match(value):
                self._report.add(rule, node)
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
                if _is_dict(owner):
                    self._patched(owner, self.names.text(index), target)
                owners = self.names.resolve(owner)
                if "os.environ" in owners and self.names.text(index) not in rules.BUILD_VARIABLES:
                    self._report.add("py-environment", target)
                if "sys.modules" in owners:
                    self._report.add("py-patch", target)

    def _patched(self, owner: ast.expr, attribute: str | None, at: ast.AST) -> None:
        """Note where `owner.attribute` is assigned or deleted and belongs to something that was imported."""
        if isinstance(owner, ast.Name) and owner.id in {"self", "cls"}:
            return
        for name in self.names.resolve(owner):
            if name.startswith((LOCAL, "builtins.vars", "builtins.globals", "builtins.locals")) or "()" in name[:-2]:
                continue
            if name.endswith("()") and not name.startswith(("torch.cuda.Event()", "builtins.type()")):
                continue  # an attribute of an object that it made itself
            whole = f"{name}.{attribute or '?'}"
            if whole.startswith("torch.backends."):
                self._report.add("py-global-setting", at)
                if any(part in whole for part in ("tf32", "reduced_precision", "fp32_precision", "fp16_accumulation")):
                    self._report.add("py-low-precision", at)
            elif name.split(".")[0] in {"hkbench", "__main__"}:
                self._report.add("py-harness", at)
            else:
                self._report.add("py-patch-clock" if rules.is_clock(whole) else "py-patch", at)

    def _call(self, node: ast.Call) -> None:
        callees = self.names.resolve(node.func)
        for callee in callees:
            self._report.add(rules.CALLS.get(callee), node)
            self._called(callee, node)
        if callees & {"concurrent.futures.wait", "concurrent.futures.as_completed"}:
            self._report.join("py-thread")
        match node:
            case ast.Call(args=[ast.Call(func=ast.Attribute(attr="map" | "imap" | "starmap")), *_]):
                if callees & {"builtins.list", "builtins.tuple"}:
                    self._report.join("py-thread")
        if isinstance(node.func, ast.Attribute):
            self._method(node.func.value, node.func.attr, callees, node)

    def _method(self, owner: ast.expr, method: str, callees: frozenset[str], node: ast.Call) -> None:
        self._report.add(rules.METHODS.get(method), node)
        match method:
            case "wait_stream" | "wait_event" | "synchronize":
                made_here = self.names.resolve(owner) & {f"{stream}()" for stream in _STREAMS}
                if method == "synchronize" or not made_here:
                    self._report.join("py-stream")
            case "result":
                self._report.join("py-thread")
            case "join" if not node.args:
                self._report.join("py-thread")
            case "open" if not callees:  # `path.open("r+b")`: a mode is the first argument, or there is none
                mode = self._argument(node, 0) if node.args else "r"
                if mode is not None and set("rwax+") & set(mode[:3]):
                    self._report.add("py-file", node)
            case "half" | "bfloat16" if not node.args:
                self._report.add("py-low-precision", node)
            case "to" | "type":
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                if any(_LOW.fullmatch(name) for argument in given for name in self.names.resolve(argument)):
                    self._report.add("py-low-precision", node)
            case "update" | "__setattr__" | "__setitem__" if _is_dict(owner):
                if any(not callee.startswith(LOCAL) for callee in callees):
                    self._patched(owner, next((k.arg for k in node.keywords if k.arg), None), node)

    def _called(self, callee: str, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        constant = self.names.constant(first) if first is not None else None
        match callee:
            case "builtins.exec" | "builtins.eval" | "builtins.compile":
                self._executed(first, node)
            case "builtins.setattr" | "builtins.delattr" | "builtins.type.__setattr__" if len(node.args) > 1:
                self._patched(node.args[0], self._argument(node, 1), node)
            case "builtins.getattr" if len(node.args) > 1 and self._argument(node, 1) is None:
                if any(not name.startswith(LOCAL) for name in self.names.resolve(node.args[0])):
                    self._report.add("py-dynamic-name", node)
            case "unittest.mock.patch" | "unittest.mock.patch.object" if first is not None:
                target = self.names.text(first)
                if target is None and len(node.args) > 1:
                    self._patched(first, self._argument(node, 1), node)
                else:
                    self._report.add("py-patch-clock" if rules.is_clock(target or "") else "py-patch", node)
            case "builtins.open" | "io.open":
                keywords = (self.names.text(k.value) for k in node.keywords if k.arg == "mode")
                mode = self._argument(node, 1) or next(keywords, None) or ""
                self._report.add("py-file-write" if set(mode) & set("wax") else "py-file", node)
            case _ if callee in _ENVIRONMENT and constant not in rules.BUILD_VARIABLES:
                self._report.add("py-environment", node)
            case _ if callee in _PROCESSES:
                self._process(first, node)
            case _ if callee.startswith("ctypes.") and callee.endswith((".CDLL", ".PyDLL", ".LoadLibrary", ".WinDLL")):
                own = first is not None and not (isinstance(first, ast.Constant) and first.value is None)
                is_hook = not own or rules.NATIVE_LIBRARIES.search(str(constant))
                self._report.add("py-ctypes-hook" if is_hook else "py-ctypes", node)
            case _ if callee.startswith("ctypes.") and callee.endswith((".from_address", ".in_dll")):
                self._report.add("py-ctypes-hook", node)

    def _executed(self, what: ast.expr | None, node: ast.Call) -> None:
        calls = [part for part in self._behind(what) if isinstance(part, ast.Call)] if what is not None else []
        names = {name.removesuffix("()") for call in calls for name in self.names.resolve(call)}
        hidden = any(rules.CALLS.get(name) == "py-decode" or "marshal" in name for name in names)
        self._report.add("py-exec-decoded" if hidden else "py-exec", node)
        text = self.names.text(what)
        if text is not None:
            self.executed.append((text, node.lineno))

    def _behind(self, node: ast.expr) -> list[ast.AST]:
        """Return the parts of an expression, with what stands behind its names (two steps)."""
        parts = dict.fromkeys(ast.walk(node))
        for _ in range(2):
            for name in [part for part in parts if isinstance(part, ast.Name)][:20]:
                for bound in self.names.values(name)[-4:]:
                    if bound is not None and is_value(bound):
                        parts.update(dict.fromkeys(ast.walk(bound)))
                        self._budget.spend(len(parts))
        return list(parts)

    def _process(self, first: ast.expr | None, node: ast.Call) -> None:
        """Report a compiler called by its name as a build, and anything else as a process."""
        parts = self.names.elements(first) if first is not None else []
        words = [self.names.text(part) or self._default(part) or "" for part in parts]
        words = words or (self.names.text(first) or "").split()
        program = words[0].rsplit("/", 1)[-1] if words else ""
        self._report.add("py-compiler" if program in rules.COMPILERS else "py-process", node)
        if "pip" in words or "conda" in words:
            self._report.add("py-install", node)

    def _default(self, node: ast.expr) -> str | None:
        """Return the program in `os.environ.get("CXX", "c++")` and `shutil.which("g++")`."""
        if not isinstance(node, ast.Call) or not node.args:
            return None
        is_known = self.names.resolve(node.func) & {"os.environ.get", "os.getenv", "shutil.which"}
        return self.names.text(node.args[-1]) if is_known else None


def _is_dict(owner: ast.expr) -> bool:
    """Return whether it may be the attributes of something: `vars(x)`, `x.__dict__`."""
    return isinstance(owner, ast.Call) or (isinstance(owner, ast.Attribute) and owner.attr == "__dict__")
