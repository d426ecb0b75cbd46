"""The rules over C++, CUDA and HIP: names as patterns, the rest as rules of ast-grep over the preprocessed source."""

from __future__ import annotations

import re

from ast_grep_py import Rule


def _whole(rules: dict[str, str]) -> re.Pattern[str]:
    """Return a pattern of whole names with a group for each rule, see `rule_in`."""
    return re.compile("|".join(rf"(?P<{rule.replace('-', '_')}>(?:{names})\Z)" for rule, names in rules.items()))


def rule_in(patterns: re.Pattern[str], text: str) -> str:
    """Return the rule whose pattern matches the text, or nothing."""
    match = patterns.match(text)
    return (match.lastgroup or "").replace("_", "-") if match is not None else ""


#: Functions that are called, types that are constructed, addresses that are taken. A name is the last part of a
#: qualified one, unless its pattern has `::`.
CALLS = _whole(
    {
        "cpp-thread": "(?:std::)?j?thread|(?:std::)?async|pthread_create|thrd_create|std::packaged_task",
        "cpp-process": "v?fork|(?:std::)?system|popen|posix_spawnp?|exec[lv]p?e?|execveat|clone3?|daemon|wordexp",
        "cpp-ptrace": "ptrace|process_vm_writev|process_vm_readv",
        "cpp-hook": r"mprotect|pkey_mprotect|dlv?sym|dlm?open|dl_iterate_phdr|dladdr1?|syscall|prctl|__libc_dlsym"
        r"|personality|cuptiSubscribe|cuptiEnableCallback|roctracer_enable\w*|rocprofiler_\w+|hipGetProcAddress"
        r"|cu(?:da)?GetProcAddress|cudaGetDriverEntryPoint|memfd_create|userfaultfd|hsa_amd_memory_lock",
        "cpp-python": r"PyRun_\w+|PyEval_\w+|PyImport_\w+|PyFrame_\w+|PyThreadState_GetFrame|PyObject_SetAttr\w*"
        r"|PyGC_\w+|Py_AddPendingCall|(?:py|pybind11)::(?:exec|eval|eval_file|module_::import|globals)|PyCode_\w+"
        r"|Py_AtExit|PySys_\w+",
        "cpp-file": "fopen(?:64)?|freopen|open(?:64|at)|creat|(?:std::)?[io]?fstream|mmap|readlink|opendir|shm_open"
        "|::open|rename|unlink",
        "cpp-environment": "(?:std::)?(?:secure_)?getenv|setenv|putenv|unsetenv|gethostname|uname",
        "cpp-network": r"socket|socketpair|connect|getaddrinfo|gethostbyname|sendto|curl_\w+",
        "cpp-exit": "(?:std::)?_?exit|_Exit|quick_exit|(?:std::)?abort|(?:std::)?terminate|exit_group",
        "cpp-signal": "kill|tgkill|(?:std::)?raise|(?:std::)?signal|sigaction|sigprocmask|(?:std::)?atexit"
        "|at_quick_exit|on_exit|__cxa_atexit|setitimer|timer_create|pthread_kill|alarm",
        "cpp-graph": r"(?:cuda|hip)Graph\w+|(?:cuda|hip)StreamBeginCapture\w*|cuGraph\w+|(?:at::cuda::)?CUDAGraph",
        "cpp-time-random": r"clock_gettime|gettimeofday|(?:std::)?time|(?:std::)?s?rand|random|getrandom|\w*_clock::now"
        "|(?:u|nano)?sleep|std::random_device|sleep_for|sleep_until|clock64|__rdtsc|wall_clock64",
        "cpp-l2-window": "cudaCtxResetPersistingL2Cache|(?:cuda|hip)StreamSetAttribute",
        "cpp-library": r"cublas\w+|cudnn\w+|hipblas\w*|hipblaslt\w*|rocblas_\w+|miopen\w+|cusparse\w+|cufft\w+"
        r"|hipfft\w+|rocfft\w+|cusolver\w+|cblas_\w+|[sdcz]gem[mv]_|mkl_\w+|vm[sd]\w{2,8}|dnnl_\w+"
        r"|v[sd](?:Exp|Tanh|Erf|Gelu)|(?:cutlass|ck|dnnl|cub|hipcub|rocprim|thrust|ck_tile|aiter|Eigen)::\w[\w:]*"
        r"|(?:at|torch|torch::nn::functional|at::native)::(?:matmul|mm|bmm|addmm|baddbmm|addmv|mv|linear|conv\w*|convolution"
        r"|einsum|tensordot|softmax|log_softmax|layer_norm|native_layer_norm|rms_norm|group_norm|batch_norm|gelu|silu|relu"
        r"|sigmoid|tanh|scaled_dot_product_attention|cumsum|sum|mean|max_pool\w+|avg_pool\w+|embedding|topk|sort|\w*_out)"
        r"|torch::jit::\w+|c10::Dispatcher::singleton",
    }
)
#: Identifiers, whatever they name.
WORDS = _whole(
    {
        "cpp-stream": r"(?:cuda|hip)StreamCreate\w*|(?:cuda|hip)ExtStreamCreate\w*|cuStreamCreate\w*"
        r"|getStreamFromPool\w*|(?:cuda|hip)StreamPerThread|(?:cuda|hip)StreamNonBlocking|CU_STREAM_PER_THREAD",
        "cpp-low-precision": r"setAllowTF32\w+|setFloat32(?:Matmul)?Precision|setAllow(?:FP16|BF16)Reduction\w+"
        r"|setAllowFP16AccumulationCuBLAS|setAllowFP16BF16ReductionMathSDP|(?:cublas|hipblas)SetMathMode"
        r"|rocblas_set_math_mode|cudnnSet\w*MathType|CUBLAS_\w*(?:TF32|FAST_16F|FAST_16BF|FAST_TF32)\w*"
        r"|\w+_set_default_fpmath_mode|\w+_set_fpmath_mode",
        "cpp-l2-window": "cudaLimitPersistingL2CacheSize|accessPolicyWindow|cudaAccessPropertyPersisting",
        "cpp-ptrace": r"PTRACE_\w+|PT_ATTACH",
    }
)
#: Identifiers that make all findings of a rule harmless. Without one they are findings of `RULE-unjoined`.
JOINS = _whole(
    {
        "cpp-stream": "(?:cuda|hip)StreamWaitEvent|(?:cuda|hip)StreamSynchronize|(?:cuda|hip)DeviceSynchronize"
        "|cuStreamWaitEvent|(?:cuda|hip)EventSynchronize|cuStreamSynchronize|cuCtxSynchronize",
        "cpp-thread": "join|pthread_join|thrd_join|jthread",
    }
)
#: Called methods that do so, too.
JOINING_METHODS = _whole({"cpp-thread": "get|wait"})
#: Identifiers that undo it, behind the first finding.
RELEASES = _whole({"cpp-thread": "detach"})

_PROC_MEM = r'/proc/[^/\s"]+/(?:task/[^/"]+/)?mem\b'
_ASM_SYSTEM = r"\.incbin|\bsyscall\b|\bsvc\b|int\s+\$?0x80|\.pushsection|\.section"
_CLOCKS = (
    "(?:cuda|hip)EventElapsedTime(?:_v2)?|(?:cuda|hip)EventRecord.*|(?:cuda|hip)(?:Device|Event|Stream)Synchronize"
    "|cuEventElapsedTime|cuEventRecord|clock_gettime|gettimeofday|cuCtxSynchronize|_PyTime_.+|(?:cuda|hip)LaunchKernel"
)
#: rule -> nodes; both kinds of string literals are of kind `string_content` here
NODES: dict[str, Rule] = {
    "cpp-patch-clock": {
        "kind": "function_declarator",
        "has": {"field": "declarator", "kind": "identifier", "regex": f"^(?:{_CLOCKS})$"},
        "inside": {"kind": "function_definition", "field": "declarator", "stopBy": "end"},
    },
    "cpp-static-tensor": {
        "any": [{"kind": "declaration"}, {"kind": "field_declaration"}],
        "regex": r"^(?:inline\s+)?(?:static|thread_local)\b[^(]*\bTensor\b",
    },
    "cpp-asm": {"kind": "gnu_asm_expression", "not": {"regex": _ASM_SYSTEM}},
    "cpp-asm-system": {
        "any": [{"kind": "gnu_asm_expression", "regex": _ASM_SYSTEM}, {"kind": "string_content", "regex": r"\.incbin"}]
    },
    "cpp-proc-mem": {"kind": "string_content", "regex": _PROC_MEM},
    "cpp-proc": {"kind": "string_content", "regex": "^/proc/", "not": {"regex": _PROC_MEM}},
    "cpp-harness": {"kind": "string_content", "regex": r"^(?:hkbench(?:\.[0-9A-Za-z_]+)*|__main__)$"},
}

#: Patterns of `#include X` and `#pragma X`.
DIRECTIVES = {
    "cpp-include-outside": re.compile(r'#include (?:[<"\s]*/|(?:.*[/<"\s])?\.\.(?:[/>"\s]|$)|(?![<"]))'),
    "fast-math": re.compile(
        r"#pragma .*(?:fast-math|fp_contract\s*\(\s*fast|float_control|\bfast\b.*math|associative-math|finite-math)"
    ),
}
#: Patterns of one flag of the compiler.
FLAGS = {
    "fast-math": re.compile(
        "--?(?:use_fast_math|ffast-math|Ofast|ffp-model=fast|funsafe-math-optimizations|ffinite-math-only)$"
    ),
    "flags-plugin": re.compile("-fplugin|-Xclang=-load|-fpass-plugin|-load|-specs|-wrapper|-B/"),
    "flags-outside": re.compile(r"-[IL]/|-(?:I|include|isystem|iquote|L|Wl,-rpath)(?=.*/).*\.\."),
    "cpp-hook": re.compile("-Wl,--?wrap"),
}
