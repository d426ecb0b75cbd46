"""Write the candidate that calls a bare kernel: its text, what builds it, and a `ModelNew` that launches it."""

from __future__ import annotations

import ast
import keyword

from hkbench.binding.kernel import BLOCK, BareKernel, Kind, NotCertain, Parameter, Shape
from hkbench.binding.match import Plan
from hkbench.records import BackendName, Problem
from hkbench.specs import KernelSpec, Launch, Role, Scalar, Tensor
from hkbench.specs.write import LANGUAGES

GRID = "hkbench_grid"
#: What the generated text calls its own.
_TAKEN = frozenset(
    {"self", "given", "output", "columns", "rows", "elements", "device", "extension", "launch", "stream", "error",
     "status", "torch", "nn", "triton", "tl", "load_inline", "KERNEL", "BINDING", "ModelNew", "Model", "At", "cdiv",
     GRID}
)  # fmt: skip


def write_candidate(kernel: BareKernel, plan: Plan, language: BackendName, problem: Problem) -> str:
    """Return the candidate. Raises NotCertain where names of the kernel would hide those of the text around it."""
    own = [one.name for one in kernel.parameters]
    names = {name: f"{name}_" if name in _TAKEN or keyword.iskeyword(name) else name for name in own}
    if kernel.name in _TAKEN or keyword.iskeyword(kernel.name):
        raise NotCertain(f"the kernel is called {kernel.name}, as something that launches it; ask for another name")
    head, call = (_triton if language == "triton" else _native)(kernel, names, language)
    model = _model_text(problem, kernel) if plan.needs_model else ""
    _, quotes, rest = head.partition('"""\n')  # behind the docstring that a spec gives
    docstring = f'"""The kernel {kernel.name} of a reply for {problem.name}, bound by hkbench.'
    return f"{docstring}{quotes}{rest}{model}\n\n\n{_model_new(kernel, plan, names, call)}"


def _triton(kernel: BareKernel, names: dict[str, str], _language: BackendName) -> tuple[str, str]:
    words = [f"{one.name}={names[one.name]}" for one in kernel.parameters]
    block = next((names[one.name] for one in kernel.of_kind(Kind.CONSTANT) if BLOCK.fullmatch(one.name)), None)
    grid = f"(-(-elements // {block}),)" if kernel.shape is Shape.ELEMENTS else "(rows,)"
    if kernel.shape is Shape.ELEMENTS and block is None:
        raise NotCertain("no constant says how many elements a program has (BLOCK_SIZE: tl.constexpr)")
    if block is not None and kernel.shape is Shape.ROWS:
        words.append(f"num_warps=8 if {block} >= 2048 else 4")
    head = (
        '"""."""\n\nimport torch\nimport triton\nimport triton.language as tl\nfrom torch import nn\n\n\n'
        f"{kernel.source.strip()}"
    )
    return head, f"{kernel.name}[{grid}]({', '.join(words)})"


def _native(kernel: BareKernel, names: dict[str, str], language: BackendName) -> tuple[str, str]:
    """Build by what kernel specs are built by."""
    arguments = tuple(_argument(one, names[one.name]) for one in kernel.parameters)
    on_gpu = language != "cpp"
    spec = KernelSpec(
        name=f"bound_{kernel.name}"[:60],
        language=language,
        entry=kernel.name,
        source=kernel.source,
        arguments=arguments,
        shapes={GRID: 1} if on_gpu else {"unused": 1},
        launch=Launch(grid=(GRID,), block=(kernel.threads or 1,)) if on_gpu else Launch(),
    )
    return LANGUAGES[language](spec)


def _argument(parameter: Parameter, name: str) -> Tensor | Scalar:
    if parameter.kind is Kind.POINTER:
        role = Role.OUTPUT if parameter.written else Role.INPUT
        return Tensor.model_validate({"name": name, "dtype": parameter.dtype, "shape": (1,), "role": role})
    return Scalar.model_validate({"kind": "scalar", "name": name, "dtype": parameter.dtype, "value": name})


def _model_text(problem: Problem, kernel: BareKernel) -> str:
    """Return the problem's own `Model`, which makes the parameters. Raises NotCertain where it is not whole alone."""
    tree = ast.parse(problem.source)
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model")
    used = {one.id for one in ast.walk(model) if isinstance(one, ast.Name)}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    defined = {
        one.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.FunctionDef | ast.ClassDef)
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    } | {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    more = sorted(used & (defined - {"Model"} - _local(model)))
    if more or kernel.name in used:
        raise NotCertain(f"the problem's Model uses {', '.join(more) or kernel.name} of its file; ask for ModelNew")
    text = "\n".join(ast.unparse(node) for node in imports)
    return (
        f"\n\n\n# The problem's own, for its parameters.\n{text}\n\n\n{ast.get_source_segment(problem.source, model)}"
    )


def _local(model: ast.ClassDef) -> set[str]:
    """Return the names that the methods of a class bind themselves."""
    stored = {one.id for one in ast.walk(model) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return stored | {one.arg for one in ast.walk(model) if isinstance(one, ast.arg)}


def _model_new(kernel: BareKernel, plan: Plan, names: dict[str, str], call: str) -> str:
    base, made = ("Model", "*given") if plan.needs_model else ("nn.Module", "")
    lines = [
        f"class ModelNew({base}):",
        "    def __init__(self, *given):",
        f"        super().__init__({made})",
        "        self.given = given",
        "",
        "    def forward(self, *given):",
        "        given = [one.contiguous() if isinstance(one, torch.Tensor) else one for one in given]",
        f"        device = given[{plan.main}].device",
        f"        output = torch.empty({plan.output}, dtype=torch.{plan.output_dtype}, device=device)",
        f"        elements, columns = given[{plan.main}].numel(), given[{plan.main}].shape[-1]",
        "        rows = elements // columns",
    ]
    lines += [f"        {names[one.name]} = {_python(one, plan)}" for one in kernel.parameters]
    if GRID in call:
        grid = f"-(-elements // {kernel.threads})" if kernel.shape is Shape.ELEMENTS else "rows"
        lines.append(f"        {GRID} = {grid}")
    return "\n".join([*lines, f"        {call}", "        return output", ""])


def _python(parameter: Parameter, plan: Plan) -> str:
    value = plan.values[parameter.name]
    return f"{value}.contiguous()" if value.startswith("self.") and parameter.kind is Kind.POINTER else value
