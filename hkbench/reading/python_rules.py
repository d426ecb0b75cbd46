"""The rules over Python: names of what expressions stand for, once imports, aliases and constants are followed."""

from __future__ import annotations

import re


def _by_name(rules: dict[str, str]) -> dict[str, str]:
    return {name: rule for rule, names in rules.items() for name in names.split()}


#: Dotted names; `x.*` is `x` and all below it.
USES = _by_name(
    {
        "py-harness": "hkbench.* __main__.*",
        "py-thread": "threading.Thread threading.Timer _thread.start_new_thread thread.start_new_thread "
        "concurrent.futures.* asyncio.to_thread multiprocessing.pool.ThreadPool multiprocessing.dummy.* torch.jit.fork "
        "torch.jit._fork",
        "py-process": "os.fork os.forkpty os.system os.popen os.posix_spawn os.posix_spawnp pty.fork pty.spawn "
        "os.execv os.execve os.execvp os.execl os.execlp os.spawnv os.spawnl os.spawnvp os.spawnlp multiprocessing.* "
        "torch.multiprocessing.* concurrent.futures.ProcessPoolExecutor asyncio.create_subprocess_exec "
        "asyncio.create_subprocess_shell",
        "py-sys-modules": "sys.modules sys.meta_path sys.path_hooks importlib.reload",
        "py-frames": "sys._getframe sys._current_frames sys.settrace sys.setprofile sys.call_tracing inspect.stack "
        "inspect.currentframe inspect.getouterframes inspect.trace traceback.walk_stack traceback.extract_stack",
        "py-gc-objects": "gc.get_objects gc.get_referrers gc.get_referents",
        "py-exec": "types.FunctionType types.CodeType marshal.loads pickle.loads pickle.load runpy.run_path "
        "runpy.run_module",
        "py-graph": "torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.make_graphed_callables torch.cuda.graphs.*",
        "py-compile": "torch.compile torch.jit.script torch.jit.trace torch.jit.freeze torch.export.export "
        "torch._dynamo.* torch._inductor.*",
        "py-tensor-subclass": "torch.Tensor._make_subclass torch.Tensor._make_wrapper_subclass torch.overrides.* "
        "torch.Tensor.__torch_function__ torch.utils._python_dispatch.*",
        "py-file": "os.open os.read os.pread os.write os.fdopen os.listdir os.scandir os.walk os.remove os.unlink "
        "glob.glob torch.load numpy.load numpy.fromfile numpy.memmap torch.from_file mmap.mmap os.memfd_create",
        "py-file-write": "torch.save numpy.save",
        "py-environment": "sys.argv platform.node platform.uname os.environb",
        "py-network": "socket.* urllib.* http.* requests.* ftplib.* httpx.* aiohttp.* huggingface_hub.* torch.hub.* "
        "smtplib.* xmlrpc.*",
        "py-exit": "sys.exit os._exit os.abort builtins.exit builtins.quit builtins.SystemExit weakref.finalize "
        "atexit.*",
        "py-signal": "signal.* faulthandler.* os.kill os.killpg threading.pthread_kill",
        "py-install": "pip.* ensurepip.*",
        "py-time-random": "time.time time.time_ns time.perf_counter time.perf_counter_ns time.monotonic "
        "os.urandom os.times time.monotonic_ns time.process_time time.sleep datetime.datetime.now random.* "
        "numpy.random.* secrets.* uuid.*",
        "py-global-setting": "torch.set_num_threads torch.set_num_interop_threads torch.set_default_dtype torch.seed "
        "torch.set_flush_denormal torch.set_default_device torch.set_default_tensor_type torch.manual_seed "
        "torch.use_deterministic_algorithms torch.cuda.manual_seed torch.cuda.manual_seed_all torch.cuda.set_device "
        "torch.cuda.set_per_process_memory_fraction",
        "py-low-precision": "torch.autocast torch.cuda.amp.autocast torch.amp.autocast torch.float8_e4m3fn "
        "torch.float8_e5m2 torch.float8_e4m3fnuz torch.float8_e5m2fnuz torch.set_float32_matmul_precision",
        "py-ctypes-hook": "ctypes.memmove ctypes.memset ctypes.pythonapi ctypes.util.find_library ctypes.string_at",
    }
)
#: Dotted names of what is called.
CALLS = _by_name(
    {
        "py-stream": "torch.cuda.Stream torch.Stream torch.cuda.ExternalStream cupy.cuda.Stream torch.xpu.Stream",
        "py-decode": "base64.b64decode base64.b32decode base64.b85decode base64.a85decode base64.b16decode "
        "base64.urlsafe_b64decode base64.standard_b64decode base64.decodebytes zlib.decompress codecs.decode "
        "lzma.decompress bz2.decompress gzip.decompress binascii.unhexlify binascii.a2b_base64",
    }
)
#: First names of imported modules.
IMPORTS = _by_name(
    {
        "py-harness": "hkbench __main__",
        "py-install": "pip ensurepip",
        "py-network": "requests httpx aiohttp huggingface_hub",
    }
)
#: Attributes of whatever object: those that are read, those that are called, those that a class defines.
ATTRIBUTES = _by_name({"py-frames": "f_back f_locals f_globals tb_frame gi_frame cr_frame"})
METHODS = _by_name(
    {
        "py-file": "read_text read_bytes iterdir rglob",
        "py-file-write": "write_text write_bytes",
        "py-tensor-subclass": "as_subclass",
    }
)
OVERRIDES = _by_name({"py-tensor-subclass": "__torch_function__ __torch_dispatch__"})
#: Constants, also those that are put together.
STRINGS = {
    "py-proc-mem": re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?mem$"),
    "py-proc": re.compile(r"/proc/(?![^/]+/(?:task/[^/]+/)?mem$)"),
    "py-preload": re.compile(r"LD_PRELOAD=|LD_(?:PRELOAD|AUDIT)$"),
    "py-install": re.compile(r"(?=.{0,299}\Z).*\bpip3? install\b", re.DOTALL),
}

# What the evaluator and honest timing rely on: replacing one of these has no other purpose.
_CLOCK_OWNERS = ("torch.cuda.Event", "torch.Event", "torch.cuda.events", "torch.cuda.streams", "time", "torch.testing")
_CLOCKS = frozenset(
    str.split(
        "torch.cuda.synchronize torch.cuda.Event torch.cuda.current_stream torch.cuda.default_stream "
        "torch.cuda.Stream torch.cuda.elapsed_time torch.allclose torch.equal torch.isclose torch.isnan "
        "torch.Tensor.__eq__ torch.Tensor.equal torch.Tensor.allclose torch.testing torch.accelerator.synchronize "
        "torch.cpu.synchronize torch.Event torch._C._cuda_synchronize triton.testing.do_bench statistics.mean "
        "statistics.median numpy.mean numpy.median numpy.allclose"
    )
)
#: Variables that steer a build.
BUILD_VARIABLES = frozenset(
    str.split(
        "HIPKITTENS_ROOT THUNDERKITTENS_ROOT CUDA_HOME CUDA_PATH ROCM_HOME ROCM_PATH HIP_PATH CXX CC CUDAHOSTCXX "
        "MAX_JOBS PYTORCH_ROCM_ARCH TORCH_CUDA_ARCH_LIST TORCH_EXTENSIONS_DIR CXXFLAGS CFLAGS NVCC_FLAGS "
        "TRITON_CACHE_DIR HIPCC"
    )
)
COMPILERS = frozenset(["nvcc", "hipcc", "g++", "gcc", "clang", "clang++", "c++", "cc", "ninja", "make", "cmake"])
NATIVE_LIBRARIES = re.compile(
    r"libcudart|libc\.so|libamdhip|libcuda\.|libtorch|libc10|libdl|libpthread|libcupti|libroctracer|librocprof|libhsa"
    "|libpython"
)


def rule_of(name: str) -> str | None:
    """Return the rule that a dotted name belongs to."""
    name = name.removesuffix("()")
    if name in USES:
        return USES[name]
    while name:
        if f"{name}.*" in USES:
            return USES[f"{name}.*"]
        name = name.rpartition(".")[0]
    return None


def is_clock(name: str) -> bool:
    """Return whether assigning `name` replaces a clock, a synchronisation or a comparison."""
    name = name.replace("()", "")
    return name in _CLOCKS or name.startswith(tuple(f"{owner}." for owner in _CLOCK_OWNERS))
