// What the parts of the stand-in for libamdhip64 share: the link to the device process, the heap of its memory.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The device as the evaluator describes it; `attach.c` has it from Python.
typedef struct {
  int arch;            // 942, 950
  int compute_units;
  uint64_t memory;     // bytes, as the properties say
  uint64_t lds;        // bytes that a workgroup can have
  char name[256];
} hkbench_gpu;

extern hkbench_gpu hkbench_the_gpu;

// Takes over the socket and maps the arena's file at its address. 0, or an errno.
int hkbench_attach(int socket, int arena, uint64_t base, uint64_t size, const hkbench_gpu *gpu);

// Memory of the device: aligned to 512 bytes, with red zones, full of NaN. Null where there is none left.
void *hkbench_allocate(size_t bytes);
int hkbench_free(void *pointer);                      // 0 where it is no allocation
int hkbench_find(const void *pointer, void **begin, size_t *bytes);  // the allocation that holds an address
void hkbench_region(uint64_t address, uint64_t bytes);  // memory of the evaluator's, for inputs and outputs; of another size than before
void hkbench_memory(uint64_t *free_bytes, uint64_t *total);
uint64_t hkbench_in_use(void);               // bytes
uint64_t hkbench_peak(int begin_anew);       // the most that were in use since it began anew

// The protocol of hkbench/emulator/link.py.
enum { HKBENCH_LOAD = 1, HKBENCH_LAUNCH = 2, HKBENCH_ADD = 3, HKBENCH_REMOVE = 4, HKBENCH_REFUSED = 5,
       HKBENCH_WRITE = 6, HKBENCH_READ = 7 };
enum { HKBENCH_DONE = 0, HKBENCH_UNSUPPORTED = 1, HKBENCH_INVALID = 2 };
typedef struct { const void *data; size_t bytes; } hkbench_part;

// Sends one frame of several parts; no answer comes.
void hkbench_tell(uint32_t operation, const hkbench_part *parts, int count);
// Sends one, and returns the status of the answer, -1 where the device is gone. `answer` is to be freed.
int hkbench_ask(uint32_t operation, const hkbench_part *parts, int count, char **answer, size_t *bytes);
// Tells device and candidate that a function is not there on this device.
void hkbench_refuse(const char *name);
// The same for a function of HIP: its error, which becomes the last one.
int hkbench_refused_function(const char *name);

#ifdef __cplusplus
}
#endif
