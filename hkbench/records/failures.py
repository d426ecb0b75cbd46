"""The kinds of failure and, of each that refuses by a rule, which rule it is and what would have to be changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hkbench.records.trust import Rule


class FailureKind(StrEnum):
    """Why a candidate is not correct; `SLOW` names the one failing of a correct one. Keys of reflection_hints."""

    NO_CODE = "no_code"  #: the reply holds nothing that could be code
    SYNTAX_ERROR = "syntax_error"  #: the file is not Python
    NO_MODEL_NEW = "no_model_new"  #: the file defines no class ModelNew
    BUILD_ERROR = "build_error"  #: a compiler or linker refused it
    BUILD_TIMEOUT = "build_timeout"  #: the compiler did not end in time
    LOAD_ERROR = "load_error"  #: importing the file, or making ModelNew, raised
    RUNTIME_ERROR = "runtime_error"  #: forward raised
    CRASH = "crash"  #: the process died by a signal or left without a word
    TIMEOUT = "timeout"  #: load or forward did not end in time
    OUT_OF_MEMORY = "out_of_memory"  #: host or device memory limit reached
    WRONG_TYPE = "wrong_type"  #: not the tensors (or number of them) that the reference returns
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_STRIDES = "wrong_strides"  #: elements share memory where the reference's do not
    NOT_FINITE = "not_finite"  #: NaN or Inf where the reference has a number
    WRONG_VALUES = "wrong_values"
    INPUT_MODIFIED = "input_modified"
    STATE_MODIFIED = "state_modified"  #: forward changed parameters or buffers that the reference leaves alone
    WRONG_PARAMETERS = "wrong_parameters"  #: the reference's parameters do not fit into ModelNew
    STALE_PARAMETERS = "stale_parameters"  #: after a change of the parameters the result belongs to the earlier ones
    ALIASED_OUTPUT = "aliased_output"  #: an output shares memory with an input or with an earlier output
    SHAPES = "shapes"  #: right at the problem's own shape, but not at further ones, where those are required
    NOT_REPEATABLE = "not_repeatable"  #: the same inputs gave answers that differ by more than rounding
    DEVICE_ERROR = "device_error"  #: the device's last error was set after a call: a launch that failed unseen
    RACE = "race"  #: emulated: a value was used before its load was waited for, or two waves meet in LDS unordered
    OUT_OF_BOUNDS = "out_of_bounds"  #: emulated: a kernel touched memory that is not the call's
    UNSUPPORTED = "unsupported"  #: emulated: the emulated GPU cannot execute it, so that nothing is known of it
    LIMIT = "limit"  #: a limit ended it: processes, disk, CPU time, the size of its file
    FORBIDDEN = "forbidden"  #: a static rule without honest exception (see `findings`)
    PROTOCOL = "protocol"  #: the runner's messages were not what a runner sends
    SUSPECT = "suspect"  #: right answers, but the clocks disagree or work went on outside of the calls
    IMPOSSIBLE = "impossible"  #: right answers, but faster than the device can move the bytes
    NOT_OWN = "not_own"  #: right answers, but kernels of PyTorch or of a library did the work (track `own`)
    SLOW = "slow"


#: What ends as `Status.REFUSED`: the answers were right.
REFUSALS = frozenset({FailureKind.SUSPECT, FailureKind.IMPOSSIBLE, FailureKind.NOT_OWN})

SAME = "the same"


@dataclass(frozen=True)
class Demand:
    """What a kind of failure refuses."""

    rule: Rule
    asks: str  #: what has to hold
    kernelbench: str | None  #: what KernelBench asks in its place, and `--rules kernelbench` too; `None`: nothing
    change: str  #: the one change by which a candidate would pass, as an imperative


#: Of every kind that refuses by a rule. Prompts, terminals, reports and docs/rules.md take their words from here.
DEMANDS: dict[FailureKind, Demand] = {
    FailureKind.NO_MODEL_NEW: Demand(
        Rule.EXACT_FORM,
        "the file defines a class `ModelNew`",
        SAME,
        "define `class ModelNew(nn.Module)` at the top level of the file",
    ),
    FailureKind.WRONG_TYPE: Demand(
        Rule.EXACT_FORM,
        "outputs are plain tensors in the reference's structure and on its device",
        SAME,
        "return plain torch.Tensor objects, in the structure and on the device of what Model.forward returns",
    ),
    FailureKind.WRONG_SHAPE: Demand(
        Rule.EXACT_FORM,
        "outputs have the reference's shapes",
        SAME,
        "return a tensor of the reference's shape: slice padding off, and undo what was flattened",
    ),
    FailureKind.WRONG_DTYPE: Demand(
        Rule.EXACT_FORM,
        "outputs have the reference's dtypes",
        "the same (`torch.allclose` takes no other)",
        "allocate the output in the reference's dtype; compute in another one within the kernel alone",
    ),
    FailureKind.WRONG_STRIDES: Demand(
        Rule.EXACT_FORM,
        "no two elements of an output share a place in memory, and it does not lie widely spread",
        "the same: the evaluator reads outputs from where they lie",
        "return the output contiguous (`torch.empty`, or `.contiguous()` of an expanded or strided view)",
    ),
    FailureKind.ALIASED_OUTPUT: Demand(
        Rule.OWN_MEMORY,
        "an output lies in memory of its own: not in an input's, not in that of an earlier result",
        None,
        "allocate the output in each forward (`torch.empty`), or return a copy (`return out.clone()`) of what is kept: "
        "a static buffer, an input, the output of a CUDA graph",
    ),
    FailureKind.INPUT_MODIFIED: Demand(
        Rule.UNTOUCHED,
        "inputs stay as they were given",
        None,
        "write to a tensor that forward allocates (`torch.empty_like(x)`) in place of the input",
    ),
    FailureKind.STATE_MODIFIED: Demand(
        Rule.UNTOUCHED,
        "parameters and buffers stay as they were given, as far as the reference leaves them alone",
        None,
        "work on a copy of the parameter or buffer that is made in forward, or on a plain attribute",
    ),
    FailureKind.WRONG_PARAMETERS: Demand(
        Rule.SAME_PARAMETERS,
        "`ModelNew` has `Model`'s parameters by name and shape, or by shape and order; names of one tensor count once",
        None,
        "keep exactly Model's parameters as `nn.Parameter`s, and what is derived from one as a plain attribute that "
        "forward makes anew when the parameter's `_version` or `data_ptr()` has changed",
    ),
    FailureKind.STALE_PARAMETERS: Demand(
        Rule.PARAMETERS_CHANGE,
        "the result follows parameters that change after construction",
        None,
        "derive it in each forward, or anew when the parameter's `_version` or `data_ptr()` has changed",
    ),
    FailureKind.NOT_REPEATABLE: Demand(
        Rule.FRESH_RESULTS,
        "the same inputs give a right answer each time",
        "the same: each call's answer is compared",
        "compute the result from this call's inputs alone: nothing kept from the call before, nothing read before it "
        "is written",
    ),
    FailureKind.IMPOSSIBLE: Demand(
        Rule.FRESH_RESULTS,
        "a call takes at least three quarters of the least time that the device needs for its bytes and operations",
        SAME,
        "read all inputs and write all outputs in each call",
    ),
    FailureKind.SUSPECT: Demand(
        Rule.NO_LEFTOVERS,
        "when forward returns, its work is done or queued on the current stream, and all clocks agree",
        SAME,
        "end or join everything before forward returns: threads, processes, and streams by "
        "`torch.cuda.current_stream().wait_stream(s)`",
    ),
    FailureKind.NOT_OWN: Demand(
        Rule.OWN_KERNELS,
        "in track own, the kernels of the file do the work",
        SAME,
        "write the operation that the message names as a kernel of the file, or ask for `--track any`",
    ),
    FailureKind.DEVICE_ERROR: Demand(
        Rule.CLEAN_LAUNCHES,
        "the device reports no error after a call",
        "the same (PyTorch's next operator would raise it)",
        "launch within the device's limits of threads, registers and shared memory, and check `cudaGetLastError()` "
        "(`hipGetLastError()`) after each launch",
    ),
    FailureKind.BUILD_TIMEOUT: Demand(
        Rule.CONFINED,
        "a build ends within --build-timeout",
        SAME,
        "instantiate fewer templates and unroll less, or give `--build-timeout` more seconds",
    ),
    FailureKind.TIMEOUT: Demand(
        Rule.CONFINED,
        "importing and each forward pass end within --load-timeout and --run-timeout",
        SAME,
        "find the loop or barrier that does not end, or give the limit that the message names more seconds",
    ),
    FailureKind.OUT_OF_MEMORY: Demand(
        Rule.CONFINED,
        "the candidate's processes stay within --memory-gib and the device's memory",
        SAME,
        "allocate the output and no intermediates of its size",
    ),
    FailureKind.LIMIT: Demand(
        Rule.CONFINED,
        "the candidate stays within the limits of its cage: processes, disk, output, CPU time, the size of its file",
        SAME,
        "start no processes of your own, write only small files to the working folder, and print little",
    ),
    FailureKind.FORBIDDEN: Demand(
        Rule.CONFINED,
        "no static rule of severity hard fits (below)",
        SAME,
        "remove the line: a kernel needs nothing of what it reaches for",
    ),
    FailureKind.PROTOCOL: Demand(
        Rule.CONFINED,
        "nothing but the runner speaks on the runner's channel",
        SAME,
        "write to no file descriptor that you did not open, and do not fork, exec or exit",
    ),
}


#: Rules of which KernelBench asks nothing.
BEYOND_KERNELBENCH = frozenset(
    rule for rule in Rule if all(demand.kernelbench is None for demand in DEMANDS.values() if demand.rule is rule)
)
