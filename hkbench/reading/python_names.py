"""Which imported names belong to which rule."""

from __future__ import annotations

EXACT: dict[str, str] = {}
PREFIX: dict[str, str] = {}


def _exact(rule: str, names: str) -> None:
    EXACT.update(dict.fromkeys(names.split(), rule))


def _prefix(rule: str, names: str) -> None:
    PREFIX.update(dict.fromkeys(names.split(), rule))


_exact("py-thread", "threading.Thread threading.Timer")
_exact("py-thread", "_thread.start_new_thread thread.start_new_thread asyncio.to_thread")
_exact("py-thread", "multiprocessing.pool.ThreadPool multiprocessing.dummy torch.jit.fork torch.jit._fork")
_prefix("py-thread", "concurrent.futures multiprocessing.dummy")
_exact("py-process", "os.fork os.forkpty os.system os.popen os.posix_spawn os.posix_spawnp pty.fork pty.spawn")
_exact("py-process", "os.execv os.execve os.execvp os.execl os.execlp os.spawnv os.spawnl os.spawnvp os.spawnlp")
_exact("py-process", "concurrent.futures.ProcessPoolExecutor")
_exact("py-process", "asyncio.create_subprocess_exec asyncio.create_subprocess_shell")
_prefix("py-process", "multiprocessing torch.multiprocessing")
_exact("py-sys-modules", "sys.modules sys.meta_path sys.path_hooks importlib.reload")
_exact("py-frames", "sys._getframe sys._current_frames inspect.stack inspect.currentframe inspect.getouterframes")
_exact("py-frames", "inspect.trace traceback.walk_stack traceback.extract_stack")
_exact("py-frames", "sys.settrace sys.setprofile sys.call_tracing")
_exact("py-gc-objects", "gc.get_objects gc.get_referrers gc.get_referents")
_exact("py-exec", "types.FunctionType types.CodeType marshal.loads")
_exact("py-exec", "pickle.loads pickle.load runpy.run_path runpy.run_module")
_exact("py-decode", "base64.b64decode base64.b32decode base64.b85decode base64.a85decode base64.b16decode")
_exact("py-decode", "base64.urlsafe_b64decode base64.standard_b64decode base64.decodebytes zlib.decompress")
_exact("py-decode", "codecs.decode lzma.decompress bz2.decompress")
_exact("py-decode", "gzip.decompress binascii.unhexlify binascii.a2b_base64")
_exact("py-graph", "torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.make_graphed_callables")
_prefix("py-graph", "torch.cuda.graphs")
_exact("py-compile", "torch.compile torch.jit.script torch.jit.trace torch.jit.freeze torch.export.export")
_prefix("py-compile", "torch._dynamo torch._inductor")
_exact("py-tensor-subclass", "torch.Tensor._make_subclass")
_exact("py-tensor-subclass", "torch.Tensor._make_wrapper_subclass torch.Tensor.__torch_function__")
_prefix("py-tensor-subclass", "torch.overrides torch.utils._python_dispatch")
_exact("py-file", "os.open os.read os.pread os.write os.fdopen")
_exact("py-file", "os.listdir os.scandir os.walk os.remove os.unlink glob.glob")
_exact("py-file", "torch.load numpy.load numpy.fromfile numpy.memmap torch.from_file mmap.mmap os.memfd_create")
_exact("py-file-write", "torch.save numpy.save")
_exact("py-environment", "sys.argv platform.node platform.uname os.environb")
_prefix("py-network", "socket urllib http requests ftplib httpx aiohttp huggingface_hub torch.hub smtplib xmlrpc")
_exact("py-exit", "sys.exit os._exit os.abort builtins.exit builtins.quit builtins.SystemExit weakref.finalize")
_prefix("py-exit", "atexit")
_prefix("py-signal", "signal faulthandler")
_exact("py-signal", "os.kill os.killpg threading.pthread_kill")
_prefix("py-install", "pip ensurepip")
_exact("py-time-random", "time.time time.time_ns time.perf_counter")
_exact("py-time-random", "time.perf_counter_ns time.monotonic time.process_time")
_exact("py-time-random", "time.sleep time.monotonic_ns datetime.datetime.now os.urandom os.times")
_prefix("py-time-random", "random numpy.random secrets uuid")
_exact("py-global-setting", "torch.set_num_threads torch.set_num_interop_threads")
_exact("py-global-setting", "torch.set_default_dtype torch.set_flush_denormal")
_exact("py-global-setting", "torch.set_default_device torch.set_default_tensor_type torch.use_deterministic_algorithms")
_exact("py-global-setting", "torch.set_float32_matmul_precision torch.manual_seed")
_exact("py-global-setting", "torch.cuda.manual_seed torch.cuda.set_device")
_exact("py-global-setting", "torch.cuda.manual_seed_all torch.cuda.set_per_process_memory_fraction torch.seed")
_exact("py-low-precision", "torch.autocast torch.cuda.amp.autocast")
_exact("py-low-precision", "torch.amp.autocast torch.set_float32_matmul_precision")
_exact("py-low-precision", "torch.float8_e4m3fn torch.float8_e5m2 torch.float8_e4m3fnuz torch.float8_e5m2fnuz")
_exact("py-ctypes-hook", "ctypes.memmove ctypes.memset ctypes.pythonapi ctypes.util.find_library ctypes.string_at")
_prefix("py-harness", "hkbench __main__")

# What the judge and honest timing rely on: replacing one of these has no other purpose.
CLOCK_OWNERS = ("torch.cuda.Event", "torch.Event", "torch.cuda.events", "torch.cuda.streams", "time", "torch.testing")
CLOCKS = frozenset(
    f"torch.{name}"
    for name in [
        "cuda.synchronize",
        "cuda.Event",
        "cuda.current_stream",
        "cuda.default_stream",
        "cuda.Stream",
        "cuda.elapsed_time",
        "allclose",
        "equal",
        "isclose",
        "isnan",
        "Tensor.__eq__",
        "Tensor.equal",
        "Tensor.allclose",
        "testing",
        "accelerator.synchronize",
        "cpu.synchronize",
        "Event",
        "_C._cuda_synchronize",
    ]
) | {"triton.testing.do_bench", "statistics.mean", "statistics.median", "numpy.mean", "numpy.median", "numpy.allclose"}

# Variables that steer a build.
BUILD_VARIABLES = frozenset(
    [
        "HIPKITTENS_ROOT",
        "THUNDERKITTENS_ROOT",
        "CUDA_HOME",
        "CUDA_PATH",
        "ROCM_HOME",
        "ROCM_PATH",
        "HIP_PATH",
        "CXX",
        "CC",
        "CUDAHOSTCXX",
        "MAX_JOBS",
        "PYTORCH_ROCM_ARCH",
        "TORCH_CUDA_ARCH_LIST",
        "TORCH_EXTENSIONS_DIR",
        "CXXFLAGS",
        "CFLAGS",
        "NVCC_FLAGS",
        "TRITON_CACHE_DIR",
        "HIPCC",
    ]
)
COMPILERS = frozenset(["nvcc", "hipcc", "g++", "gcc", "clang", "clang++", "c++", "cc", "ninja", "make", "cmake"])
NATIVE_LIBRARIES: tuple[str, ...] = (
    "libcudart",
    "libc.so",
    "libamdhip",
    "libcuda.",
    "libtorch",
    "libc10",
    "libdl",
    "libpthread",
    "libcupti",
    "libroctracer",
    "librocprof",
    "libhsa",
    "libpython",
)


def rule_of(name: str) -> str | None:
    """The rule that a dotted name belongs to."""
    name = name.removesuffix("()")
    if name in EXACT:
        return EXACT[name]
    while name:
        if name in PREFIX:
            return PREFIX[name]
        name = name.rpartition(".")[0]
    return None


def is_clock(name: str) -> bool:
    """Whether assigning `name` replaces a clock, a synchronisation or a comparison."""
    name = name.replace("()", "")
    return name in CLOCKS or any(name.startswith(f"{owner}.") for owner in CLOCK_OWNERS)
