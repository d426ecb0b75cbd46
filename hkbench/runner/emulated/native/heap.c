// Memory of the device: pieces of the arena, in the order of their addresses, each between red zones that nobody owns.
// Whatever is handed out is told to the device process, which knows no other memory.
#define _GNU_SOURCE
#include "device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 512, RED_ZONE = 256, PAGE = 4096, NOT_A_NUMBER = 0xFF };
static const size_t LARGE = 1u << 20;  // from here on freed pages go back to the system

typedef struct piece {
  struct piece *next;
  uint64_t begin, end;    // of the piece, red zones included
  uint64_t address;       // of what was handed out; 0: free
  size_t bytes;           // that were asked for
} piece;

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static piece *first;
static uint64_t regions[4][2];  // begin and end of memory of the evaluator's
static uint64_t in_use, most;  // bytes, red zones included

void hkbench_heap(uint64_t base, uint64_t size) {
  first = calloc(1, sizeof *first);
  if (first) first->begin = base, first->end = base + size;
}

static uint64_t rounded(uint64_t value) { return (value + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void told(uint32_t operation, uint64_t address, uint64_t bytes) {
  const uint64_t range[2] = {address, bytes};
  const hkbench_part part = {range, operation == HKBENCH_ADD ? sizeof range : sizeof range[0]};
  hkbench_tell(operation, &part, 1);
}

static piece *taken(size_t bytes) {
  const uint64_t whole = rounded(RED_ZONE) + rounded(bytes + RED_ZONE);
  for (piece *at = first; at; at = at->next) {
    if (at->address || at->end - at->begin < whole) continue;
    if (at->end - at->begin > whole) {
      piece *rest = calloc(1, sizeof *rest);
      if (!rest) return NULL;
      rest->next = at->next, rest->begin = at->begin + whole, rest->end = at->end;
      at->next = rest, at->end = rest->begin;
    }
    at->address = at->begin + rounded(RED_ZONE), at->bytes = bytes;
    in_use += whole;
    if (most < in_use) most = in_use;
    return at;
  }
  return NULL;
}

void *hkbench_allocate(size_t bytes) {
  if (bytes > (1ull << 46)) return NULL;
  pthread_mutex_lock(&turn);
  piece *found = taken(bytes ? bytes : 1);
  const uint64_t address = found ? found->address : 0;
  pthread_mutex_unlock(&turn);
  if (!address) return NULL;
  memset((void *)address, NOT_A_NUMBER, bytes);
  told(HKBENCH_ADD, address, bytes ? bytes : 1);
  return (void *)address;
}

static void joined(piece *at) {
  while (at->next && !at->next->address) {
    piece *gone = at->next;
    at->end = gone->end, at->next = gone->next;
    free(gone);
  }
}

int hkbench_free(void *pointer) {
  pthread_mutex_lock(&turn);
  piece *before = NULL, *at = first;
  while (at && (at->address != (uint64_t)pointer || !at->address)) before = at, at = at->next;
  if (at) {
    const uint64_t address = at->address, whole = at->end - at->begin;
    const uint64_t begin = (at->begin + PAGE - 1) / PAGE * PAGE, end = at->end / PAGE * PAGE;
    if (whole >= LARGE) madvise((void *)begin, end - begin, MADV_REMOVE);
    at->address = 0, in_use -= whole;
    joined(at);
    if (before && !before->address) joined(before);
    told(HKBENCH_REMOVE, address, 0);
  }
  pthread_mutex_unlock(&turn);
  return at != NULL;
}

void hkbench_region(uint64_t address, uint64_t bytes) {
  pthread_mutex_lock(&turn);
  for (int i = 0; i < 4; ++i)
    if (!regions[i][0] || regions[i][0] == address) {
      regions[i][0] = address, regions[i][1] = address + bytes;
      break;
    }
  pthread_mutex_unlock(&turn);
}

int hkbench_find(const void *pointer, void **begin, size_t *bytes) {
  const uint64_t wanted = (uint64_t)pointer;
  int found = 0;
  pthread_mutex_lock(&turn);
  for (piece *at = first; at && !found; at = at->next) {
    if (!at->address || wanted < at->address || wanted >= at->address + at->bytes) continue;
    *begin = (void *)at->address, *bytes = at->bytes, found = 1;
  }
  for (int i = 0; i < 4 && !found; ++i) {
    if (wanted < regions[i][0] || wanted >= regions[i][1]) continue;
    *begin = (void *)regions[i][0], *bytes = regions[i][1] - regions[i][0], found = 1;
  }
  pthread_mutex_unlock(&turn);
  return found;
}

uint64_t hkbench_in_use(void) { return in_use; }

uint64_t hkbench_peak(int begin_anew) {
  pthread_mutex_lock(&turn);
  const uint64_t peak = most;
  if (begin_anew) most = in_use;
  pthread_mutex_unlock(&turn);
  return peak;
}

void hkbench_memory(uint64_t *free_bytes, uint64_t *total) {
  *total = hkbench_the_gpu.memory;
  *free_bytes = *total > in_use ? *total - in_use : 0;
}
