// Kernels: what a program registers when it is loaded, modules, and launches. Nothing is executed here.
#include "device.h"

#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGUMENTS = 256, MAX_KERNARG = 4096, MAX_NAME = 4096, MAX_BLOCK = 1024 };

typedef struct { uint32_t offset, bytes; } place;

typedef struct kernel {
  struct kernel *next;
  char *name;
  uint32_t kernarg_bytes, lds, most_threads, registers, arguments;
  place places[MAX_ARGUMENTS];
} kernel;

struct ihipModule_t;
typedef struct function {  // a hipFunction_t, and what a host function stands for
  struct function *next;
  const void *host;
  struct module *module;
  char *name;
  kernel *known;
} function;

typedef struct module {
  const void *image;  // a bundle of code objects, or one code object
  uint32_t number;    // by which the device knows it
  int state;          // 0: not sent yet, 1: sent, -1: refused
  kernel *kernels;
  function *functions;
} module;

hipError_t hkbench_error(hipError_t error);  // runtime.c: keeps it as the last one

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static function *registered;

// --- Code objects

static uint64_t word(const char *at, int bytes) {
  uint64_t value = 0;
  memcpy(&value, at, (size_t)bytes);
  return value;
}

static uint64_t elf_bytes(const char *elf) {  // section headers come last
  return word(elf + 40, 8) + word(elf + 58, 2) * word(elf + 60, 2);
}

// The code object for this device within a bundle of clang's; null where there is none.
static const char *code_object(const char *image, uint64_t *bytes) {
  static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
  if (!memcmp(image, "\177ELF", 4)) return *bytes = elf_bytes(image), image;
  if (memcmp(image, bundle, sizeof bundle - 1)) return hkbench_refuse("compressed or unknown code objects"), NULL;
  char wanted[16];
  snprintf(wanted, sizeof wanted, "gfx%d", hkbench_the_gpu.arch);
  const uint64_t count = word(image + 24, 8);
  const char *at = image + 32;
  for (uint64_t i = 0; i < count && i < 64; ++i) {
    const uint64_t offset = word(at, 8), size = word(at + 8, 8), named = word(at + 16, 8);
    if (named < 256) {
      char name[256] = {0};
      memcpy(name, at + 24, named);
      const char *arch = strstr(name, wanted);
      if (!strncmp(name, "hip", 3) && arch && (arch[strlen(wanted)] == 0 || arch[strlen(wanted)] == ':'))
        return *bytes = size, image + offset;
    }
    at += 24 + named;
  }
  return NULL;
}

// "NAME KERNARG LDS THREADS REGISTERS COUNT offset bytes offset bytes ...", a line a kernel, as the device says.
static void read_kernels(module *into, char *text) {
  char *lines = NULL;
  for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
    char *words = NULL, *name = strtok_r(line, " ", &words);
    kernel *made = name ? calloc(1, sizeof *made) : NULL;
    if (!made) return;
    uint32_t *numbers[] = {&made->kernarg_bytes, &made->lds, &made->most_threads, &made->registers, &made->arguments};
    char *one = NULL;
    for (int i = 0; i < 5; ++i) *numbers[i] = (one = strtok_r(NULL, " ", &words)) ? (uint32_t)strtoul(one, NULL, 10) : 0;
    if (made->arguments > MAX_ARGUMENTS || made->kernarg_bytes > MAX_KERNARG) made->arguments = 0;
    for (uint32_t i = 0; i < made->arguments; ++i) {
      made->places[i].offset = (one = strtok_r(NULL, " ", &words)) ? (uint32_t)strtoul(one, NULL, 10) : 0;
      made->places[i].bytes = (one = strtok_r(NULL, " ", &words)) ? (uint32_t)strtoul(one, NULL, 10) : 0;
    }
    made->name = strdup(name), made->next = into->kernels, into->kernels = made;
  }
}

static hipError_t sent(module *wanted) {
  if (wanted->state) return wanted->state > 0 ? hipSuccess : hipErrorNoBinaryForGpu;
  uint64_t bytes = 0;
  const char *code = code_object(wanted->image, &bytes);
  if (!code) return wanted->state = -1, hipErrorNoBinaryForGpu;
  const hkbench_part part = {code, bytes};
  char *answer;
  size_t length;
  const int status = hkbench_ask(HKBENCH_LOAD, &part, 1, &answer, &length);
  wanted->state = status == HKBENCH_DONE && length >= 4 ? 1 : -1;
  if (wanted->state > 0) {
    memcpy(&wanted->number, answer, 4);
    read_kernels(wanted, answer + 4);
  } else if (answer) {
    fprintf(stderr, "the emulated GPU does not load a code object: %s\n", answer);
  }
  free(answer);
  return wanted->state > 0 ? hipSuccess : hipErrorNoBinaryForGpu;
}

static hipError_t found(function *wanted) {
  if (wanted->known) return hipSuccess;
  const hipError_t error = sent(wanted->module);
  if (error) return error;
  for (kernel *at = wanted->module->kernels; at && !wanted->known; at = at->next)
    if (!strcmp(at->name, wanted->name)) wanted->known = at;
  return wanted->known ? hipSuccess : hipErrorNotFound;
}

// --- Registration, by constructors of the programs

typedef struct { uint32_t magic, version; const void *binary, *unused; } wrapper;

void **__hipRegisterFatBinary(const void *data) {
  module *made = calloc(1, sizeof *made);
  if (made) made->image = ((const wrapper *)data)->binary;
  return (void **)made;
}

void __hipUnregisterFatBinary(void **modules) { (void)modules; }  // launches may follow from other destructors

void __hipRegisterFunction(void **modules, const void *host, char *device_name, const char *name, unsigned threads,
                           void *thread, void *block, void *block_size, void *grid, int *warp) {
  (void)device_name, (void)threads, (void)thread, (void)block, (void)block_size, (void)grid, (void)warp;
  function *made = calloc(1, sizeof *made);
  if (!made) return;
  made->host = host, made->module = (module *)modules, made->name = strdup(name);
  pthread_mutex_lock(&turn);
  made->next = registered, registered = made;
  pthread_mutex_unlock(&turn);
}

// A variable lies in the code object's image, which only the device has.
typedef struct variable {
  struct variable *next;
  const void *host;
  module *module;
  char *name;
  size_t bytes;
} variable;
static variable *variables;

void __hipRegisterVar(void **modules, void *var, char *host, char *device, int external, size_t bytes, int constant,
                      int global) {
  (void)host, (void)external, (void)constant, (void)global;
  variable *made = calloc(1, sizeof *made);
  if (!made) return;
  made->host = var, made->module = (module *)modules, made->name = strdup(device), made->bytes = bytes;
  pthread_mutex_lock(&turn);
  made->next = variables, variables = made;
  pthread_mutex_unlock(&turn);
}

static variable *variable_of(const void *host) {
  pthread_mutex_lock(&turn);
  variable *at = variables;
  while (at && at->host != host) at = at->next;
  pthread_mutex_unlock(&turn);
  return at;
}

static hipError_t variable_moved(uint32_t operation, const void *host, const void *from, void *to, size_t bytes,
                                 size_t offset) {
  variable *wanted = variable_of(host);
  if (!wanted) return hipErrorInvalidSymbol;
  if (offset > wanted->bytes || bytes > wanted->bytes - offset) return hipErrorInvalidValue;
  const hipError_t error = sent(wanted->module);
  if (error) return error;
  const struct { uint32_t module, name; uint64_t offset, bytes; } head = {wanted->module->number,
                                                                       (uint32_t)strlen(wanted->name), offset, bytes};
  const hkbench_part parts[3] = {{&head, sizeof head}, {wanted->name, head.name}, {from, bytes}};
  char *answer;
  size_t length;
  const int status = hkbench_ask(operation, parts, from ? 3 : 2, &answer, &length);
  const int whole = status == HKBENCH_DONE && (!to || length == bytes);
  if (whole && to) memcpy(to, answer, bytes);
  free(answer);
  return whole ? hipSuccess : hipErrorInvalidSymbol;
}

hipError_t hipMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, hipMemcpyKind kind) {
  (void)kind;
  return hkbench_error(variable_moved(HKBENCH_WRITE, symbol, from, NULL, bytes, offset));
}

hipError_t hipMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, hipMemcpyKind kind,
                                  hipStream_t stream) {
  return (void)stream, hipMemcpyToSymbol(symbol, from, bytes, offset, kind);
}

hipError_t hipMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, hipMemcpyKind kind) {
  (void)kind;
  return hkbench_error(variable_moved(HKBENCH_READ, symbol, NULL, to, bytes, offset));
}

hipError_t hipMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, hipMemcpyKind kind,
                                    hipStream_t stream) {
  return (void)stream, hipMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}

hipError_t hipGetSymbolSize(size_t *bytes, const void *symbol) {
  const variable *known = variable_of(symbol);
  if (known) *bytes = known->bytes;
  return hkbench_error(known ? hipSuccess : hipErrorInvalidSymbol);
}

void __hipRegisterManagedVar(void *module_, void **pointer, void *init, const char *name, size_t bytes, unsigned align) {
  (void)module_, (void)pointer, (void)init, (void)bytes, (void)align;
  hkbench_refuse(name);
}

static function *of_host(const void *host) {
  pthread_mutex_lock(&turn);
  function *at = registered;
  while (at && at->host != host) at = at->next;
  pthread_mutex_unlock(&turn);
  return at;
}

// --- Launches

typedef struct { dim3 grid, block; size_t shared; hipStream_t stream; } configuration;
static _Thread_local configuration pushed[8];
static _Thread_local int depth;

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream) {
  if (depth == 8) return hkbench_error(hipErrorInvalidConfiguration);
  pushed[depth++] = (configuration){grid, block, shared, stream};
  return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream) {
  if (!depth) return hkbench_error(hipErrorMissingConfiguration);
  const configuration *top = &pushed[--depth];
  *grid = top->grid, *block = top->block, *shared = top->shared, *stream = top->stream;
  return hipSuccess;
}

static hipError_t launched(function *wanted, dim3 grid, dim3 block, size_t shared, const char *packed, uint32_t bytes) {
  const kernel *known = wanted->known;
  const uint64_t threads = (uint64_t)block.x * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || !threads || threads > MAX_BLOCK) return hipErrorInvalidConfiguration;
  if (known->most_threads && threads > known->most_threads) return hipErrorLaunchFailure;
  if (known->lds + shared > hkbench_the_gpu.lds) return hipErrorInvalidValue;
  const uint32_t words[10] = {wanted->module->number, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                              (uint32_t)shared, (uint32_t)strlen(known->name), bytes};
  const hkbench_part parts[3] = {{words, sizeof words}, {known->name, strlen(known->name)}, {packed, bytes}};
  char *answer;
  size_t length;
  const int status = hkbench_ask(HKBENCH_LAUNCH, parts, 3, &answer, &length);
  if (status > 0) fprintf(stderr, "the emulated GPU does not run %s: %s\n", known->name, answer);
  free(answer);
  if (status == HKBENCH_DONE) return hipSuccess;
  return status == HKBENCH_UNSUPPORTED ? hipErrorNotSupported : status < 0 ? hipErrorNoDevice : hipErrorLaunchFailure;
}

static hipError_t launched_with(function *wanted, dim3 grid, dim3 block, void **arguments, size_t shared) {
  if (!wanted) return hipErrorInvalidDeviceFunction;
  const hipError_t error = found(wanted);
  if (error) return error;
  char packed[MAX_KERNARG] = {0};
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < wanted->known->arguments; ++i) {
    const place *at = &wanted->known->places[i];
    if ((uint64_t)at->offset + at->bytes > MAX_KERNARG || !arguments || !arguments[i]) return hipErrorInvalidValue;
    memcpy(packed + at->offset, arguments[i], at->bytes);
    if (at->offset + at->bytes > bytes) bytes = at->offset + at->bytes;
  }
  return launched(wanted, grid, block, shared, packed, bytes);
}

hipError_t hipLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, hipStream_t stream) {
  (void)stream;
  return hkbench_error(launched_with(of_host(host), grid, block, arguments, shared));
}

hipError_t hipLaunchKernel_spt(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                               hipStream_t stream) {
  return hipLaunchKernel(host, grid, block, arguments, shared, stream);
}

hipError_t hipExtLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                              hipStream_t stream, hipEvent_t begin, hipEvent_t end, int flags) {
  (void)begin, (void)end, (void)flags;
  return hipLaunchKernel(host, grid, block, arguments, shared, stream);
}

hipError_t hipModuleLoadData(hipModule_t *made, const void *image) {
  module *one = calloc(1, sizeof *one);
  if (!one) return hkbench_error(hipErrorOutOfMemory);
  one->image = image;
  const hipError_t error = sent(one);
  *made = (hipModule_t)one;
  return hkbench_error(error);
}

hipError_t hipModuleLoadDataEx(hipModule_t *made, const void *image, unsigned count, hipJitOption *options, void **values) {
  (void)count, (void)options, (void)values;
  return hipModuleLoadData(made, image);
}

hipError_t hipModuleLoad(hipModule_t *made, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return hkbench_error(hipErrorFileNotFound);
  fseek(file, 0, SEEK_END);
  const long bytes = ftell(file);
  rewind(file);
  char *image = bytes > 64 ? malloc((size_t)bytes) : NULL;
  const int whole = image && fread(image, 1, (size_t)bytes, file) == (size_t)bytes;
  fclose(file);
  return whole ? hipModuleLoadData(made, image) : hkbench_error(hipErrorInvalidImage);
}

hipError_t hipModuleUnload(hipModule_t gone) { return (void)gone, hipSuccess; }

hipError_t hipModuleGetFunction(hipFunction_t *made, hipModule_t from, const char *name) {
  function *one = calloc(1, sizeof *one);
  if (!one) return hkbench_error(hipErrorOutOfMemory);
  one->module = (module *)from, one->name = strdup(name);
  *made = (hipFunction_t)one;
  return hkbench_error(found(one));
}

hipError_t hipModuleLaunchKernel(hipFunction_t wanted, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, hipStream_t stream, void **arguments, void **extra) {
  (void)stream;
  function *one = (function *)wanted;
  const dim3 grid = {gx, gy, gz}, block = {bx, by, bz};
  if (arguments || !extra) return hkbench_error(launched_with(one, grid, block, arguments, shared));
  const char *packed = NULL;
  size_t bytes = 0;
  for (void **at = extra; *at != HIP_LAUNCH_PARAM_END; at += 2) {
    if (*at == HIP_LAUNCH_PARAM_BUFFER_POINTER) packed = at[1];
    else if (*at == HIP_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(const size_t *)at[1];
    else return hkbench_error(hipErrorInvalidValue);
  }
  if (!packed || bytes > MAX_KERNARG) return hkbench_error(hipErrorInvalidValue);
  const hipError_t error = found(one);
  return hkbench_error(error ? error : launched(one, grid, block, shared, packed, (uint32_t)bytes));
}

// --- What is known of a kernel

static hipError_t described(function *wanted, hipFuncAttributes *into) {
  if (!wanted) return hipErrorInvalidDeviceFunction;
  const hipError_t error = found(wanted);
  if (error) return error;
  memset(into, 0, sizeof *into);
  into->sharedSizeBytes = wanted->known->lds;
  into->maxThreadsPerBlock = wanted->known->most_threads ? (int)wanted->known->most_threads : MAX_BLOCK;
  into->numRegs = (int)wanted->known->registers;
  into->maxDynamicSharedSizeBytes = (int)(hkbench_the_gpu.lds - wanted->known->lds);
  return hipSuccess;
}

hipError_t hipFuncGetAttributes(hipFuncAttributes *into, const void *host) {
  return hkbench_error(described(of_host(host), into));
}

hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute, hipFunction_t wanted) {
  hipFuncAttributes known;
  const hipError_t error = described((function *)wanted, &known);
  if (error) return hkbench_error(error);
  switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_NUM_REGS: *value = known.numRegs; break;
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = known.maxThreadsPerBlock; break;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)known.sharedSizeBytes; break;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = known.maxDynamicSharedSizeBytes; break;
    default: *value = 0;
  }
  return hipSuccess;
}

hipError_t hipFuncSetAttribute(const void *host, hipFuncAttribute attribute, int value) {
  if (!of_host(host)) return hkbench_error(hipErrorInvalidDeviceFunction);
  const int large = attribute == hipFuncAttributeMaxDynamicSharedMemorySize && (uint64_t)value > hkbench_the_gpu.lds;
  return hkbench_error(value < 0 || large ? hipErrorInvalidValue : hipSuccess);
}

hipError_t hipFuncSetCacheConfig(const void *host, hipFuncCache_t wanted) { return (void)host, (void)wanted, hipSuccess; }

hipError_t hipFuncSetSharedMemConfig(const void *host, hipSharedMemConfig wanted) {
  return (void)host, (void)wanted, hipSuccess;
}

// As many workgroups as threads and LDS allow; registers are not counted.
static int fitting(const kernel *known, int threads, size_t dynamic) {
  const uint64_t lds = known->lds + dynamic;
  const int by_threads = threads > 0 ? 2048 / threads : 0;
  const int by_lds = lds ? (int)(hkbench_the_gpu.lds / lds) : by_threads;
  return by_threads < by_lds ? by_threads : by_lds;
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int threads, size_t dynamic) {
  function *wanted = of_host(host);
  const hipError_t error = wanted ? found(wanted) : hipErrorInvalidDeviceFunction;
  if (!error) *blocks = fitting(wanted->known, threads, dynamic);
  return hkbench_error(error);
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads,
                                                                 size_t dynamic, unsigned flags) {
  (void)flags;
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads, dynamic);
}

hipError_t hipOccupancyMaxPotentialBlockSize(int *grid, int *block, const void *host, size_t dynamic, int limit) {
  hipFuncAttributes known;
  const hipError_t error = hipFuncGetAttributes(&known, host);
  if (error) return error;
  *block = limit > 0 && limit < known.maxThreadsPerBlock ? limit : known.maxThreadsPerBlock;
  int blocks = 1;
  (void)hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, host, *block, dynamic);
  *grid = hkbench_the_gpu.compute_units * (blocks > 0 ? blocks : 1);
  return hipSuccess;
}
