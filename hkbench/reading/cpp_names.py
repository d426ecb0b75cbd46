"""Which C++ names belong to which rule. A name is the last part of a qualified one, unless the pattern has `::`."""

from __future__ import annotations

import re


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern})\Z")


#: rule -> pattern of called functions and constructed types
CALLS: dict[str, re.Pattern[str]] = {
    "cpp-process": _words(
        r"v?fork|system|popen|posix_spawnp?|exec[lv]p?e?|execveat|clone3?|daemon|(?:std::)?system|::fork|wordexp"
    ),
    "cpp-ptrace": _words(r"ptrace|process_vm_writev|process_vm_readv"),
    "cpp-hook": _words(
        r"mprotect|pkey_mprotect|dlv?sym|dlm?open|dl_iterate_phdr|dladdr1?|syscall|prctl|__libc_dlsym|personality"
        r"|cuptiSubscribe|cuptiEnableCallback|roctracer_enable\w*|rocprofiler_\w+|hipGetProcAddress|cu(?:da)?GetProcAddress"
        r"|cudaGetDriverEntryPoint|memfd_create|userfaultfd|hsa_amd_memory_lock"
    ),
    "cpp-python": _words(
        r"PyRun_\w+|PyEval_\w+|PyImport_\w+|PyFrame_\w+|PyThreadState_GetFrame|PyObject_SetAttr\w*|PyGC_\w+|Py_AddPendingCall"
        r"|(?:py|pybind11)::(?:exec|eval|eval_file|module_::import|globals)|PyCode_\w+|Py_AtExit|PySys_\w+"
    ),
    "cpp-file": _words(
        r"fopen(?:64)?|freopen|open(?:64|at)|creat|(?:std::)?[io]?fstream|mmap|readlink|opendir|shm_open|::open|rename|unlink"
    ),
    "cpp-environment": _words(r"(?:std::)?(?:secure_)?getenv|setenv|putenv|unsetenv|gethostname|uname"),
    "cpp-network": _words(r"socket|socketpair|connect|getaddrinfo|gethostbyname|sendto|curl_\w+"),
    "cpp-exit": _words(r"(?:std::)?_?exit|_Exit|quick_exit|(?:std::)?abort|(?:std::)?terminate|exit_group"),
    "cpp-signal": _words(
        r"kill|tgkill|(?:std::)?raise|(?:std::)?signal|sigaction|sigprocmask|(?:std::)?atexit|at_quick_exit|on_exit"
        r"|__cxa_atexit|setitimer|timer_create|pthread_kill|alarm"
    ),
    "cpp-graph": _words(r"(?:cuda|hip)Graph\w+|(?:cuda|hip)StreamBeginCapture\w*|cuGraph\w+|(?:at::cuda::)?CUDAGraph"),
    "cpp-time-random": _words(
        r"clock_gettime|gettimeofday|(?:std::)?time|(?:std::)?s?rand|random|getrandom|\w*_clock::now|(?:u|nano)?sleep"
        r"|std::random_device|sleep_for|sleep_until|clock64|__rdtsc|wall_clock64"
    ),
    "cpp-l2-window": _words(r"cudaCtxResetPersistingL2Cache|(?:cuda|hip)StreamSetAttribute"),
    "cpp-library": _words(
        r"cublas\w+|cudnn\w+|hipblas\w*|hipblaslt\w*|rocblas_\w+|miopen\w+|cusparse\w+|cufft\w+|hipfft\w+|rocfft\w+|cusolver\w+"
        r"|cblas_\w+|[sdcz]gem[mv]_|mkl_\w+|vm[sd]\w{2,8}|dnnl_\w+|v[sd](?:Exp|Tanh|Erf|Gelu)"
        r"|(?:cutlass|ck|dnnl|cub|hipcub|rocprim|thrust|ck_tile|aiter|Eigen)::\w[\w:]*"
        r"|(?:at|torch|torch::nn::functional|at::native)::(?:matmul|mm|bmm|addmm|baddbmm|addmv|mv|linear|conv\w*|convolution"
        r"|einsum|tensordot|softmax|log_softmax|layer_norm|native_layer_norm|rms_norm|group_norm|batch_norm|gelu|silu|relu"
        r"|sigmoid|tanh|scaled_dot_product_attention|cumsum|sum|mean|max_pool\w+|avg_pool\w+|embedding|topk|sort|\w*_out)"
        r"|torch::jit::\w+|c10::Dispatcher::singleton"
    ),
}

#: rule -> pattern of any identifier
IDENTIFIERS: dict[str, re.Pattern[str]] = {
    "cpp-l2-window": _words(r"cudaLimitPersistingL2CacheSize|accessPolicyWindow|cudaAccessPropertyPersisting"),
    "cpp-ptrace": _words(r"PTRACE_\w+|PT_ATTACH"),
}

NEW_STREAM = _words(
    r"(?:cuda|hip)StreamCreate\w*|(?:cuda|hip)ExtStreamCreate\w*|cuStreamCreate\w*|getStreamFromPool\w*"
    r"|hipExtStreamCreateWithCUMask"
)
OTHER_STREAM = _words(r"(?:cuda|hip)StreamPerThread|(?:cuda|hip)StreamNonBlocking|CU_STREAM_PER_THREAD")
JOIN_STREAM = _words(
    r"(?:cuda|hip)StreamWaitEvent|(?:cuda|hip)StreamSynchronize|(?:cuda|hip)DeviceSynchronize|cuStreamWaitEvent"
    r"|(?:cuda|hip)EventSynchronize|cuStreamSynchronize|cuCtxSynchronize"
)
NEW_THREAD = _words(r"(?:std::)?j?thread|pthread_create|(?:std::)?async|thrd_create|std::packaged_task")
JOIN_THREAD = _words(r"join|pthread_join|thrd_join|get|wait|jthread|std::jthread")
CLOCKS = _words(
    r"(?:cuda|hip)EventElapsedTime(?:_v2)?|(?:cuda|hip)EventRecord\w*|(?:cuda|hip)DeviceSynchronize|(?:cuda|hip)EventSynchronize"
    r"|(?:cuda|hip)StreamSynchronize|cuEventElapsedTime|cuEventRecord|clock_gettime|gettimeofday|cuCtxSynchronize"
    r"|_PyTime_\w+|cudaLaunchKernel|hipLaunchKernel"
)
