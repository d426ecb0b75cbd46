/* Stands for libamdhip64 on a machine without an AMD GPU: it keeps what the last launch was given, and launches
   nothing. */
#include <stddef.h>
#include <string.h>

typedef struct { unsigned x, y, z; } dim3_t;
typedef struct { dim3_t grid, block; size_t lds; void *stream; } launch_t;

enum { ARGUMENT = 512 };
launch_t last_launch;
unsigned char last_argument[ARGUMENT]; /* what the kernel's first parameter points to, and what lies behind it */
int launches;
int refuse_next; /* the error that the next launch ends with */

static int last_error;
static launch_t configured;
static unsigned char handle[8];

void **__hipRegisterFatBinary(const void *data) { return (void **)handle; }
void __hipUnregisterFatBinary(void **binary) {}
void __hipRegisterFunction(void **binary, const void *function, char *device, const char *name, unsigned limit,
                           void *thread, void *block, void *block_size, void *grid_size, int *wave) {}
void __hipRegisterVar(void) {}

int __hipPushCallConfiguration(dim3_t grid, dim3_t block, size_t lds, void *stream) {
  configured = (launch_t){grid, block, lds, stream};
  return 0;
}

int __hipPopCallConfiguration(dim3_t *grid, dim3_t *block, size_t *lds, void **stream) {
  *grid = configured.grid;
  *block = configured.block;
  *lds = configured.lds;
  *stream = configured.stream;
  return 0;
}

int hipLaunchKernel(const void *function, dim3_t grid, dim3_t block, void **arguments, size_t lds, void *stream) {
  last_error = refuse_next;
  refuse_next = 0;
  if (last_error) return last_error;
  ++launches;
  last_launch = (launch_t){grid, block, lds, stream};
  memcpy(last_argument, arguments[0], 256);
  return 0;
}

int hipFuncSetAttribute(const void *function, int attribute, int value) { return 0; }

int hipGetLastError(void) {
  const int error = last_error;
  last_error = 0;
  return error;
}
const char *hipGetErrorName(int error) { return error == 9 ? "hipErrorInvalidConfiguration" : "another"; }
const char *hipGetErrorString(int error) { return error == 9 ? "invalid configuration argument" : "another error"; }
