// The socket to the device process. One frame at a time; threads take turns.
#define _GNU_SOURCE
#include "device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct { char magic[4]; uint32_t operation; uint32_t bytes; } head;

static const char MAGIC[4] = {'H', 'K', 'D', '1'};
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int device = -1;
hkbench_gpu hkbench_the_gpu;

void hkbench_heap(uint64_t base, uint64_t size);

int hkbench_attach(int socket, int arena, uint64_t base, uint64_t size, const hkbench_gpu *gpu) {
  if (device >= 0) return EALREADY;
  void *mapped = mmap((void *)base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, arena, 0);
  if (mapped != (void *)base) return mapped == MAP_FAILED ? errno : EEXIST;
  hkbench_the_gpu = *gpu;
  device = socket;
  hkbench_heap(base, size);
  return 0;
}

static int put(const void *data, size_t bytes) {
  for (const char *at = data; bytes;) {
    const ssize_t done = send(device, at, bytes, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    at += done, bytes -= (size_t)done;
  }
  return 1;
}

static int get(void *data, size_t bytes) {
  for (char *at = data; bytes;) {
    const ssize_t done = recv(device, at, bytes, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    at += done, bytes -= (size_t)done;
  }
  return 1;
}

static int put_frame(uint32_t operation, const hkbench_part *parts, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].bytes;
  if (bytes > UINT32_MAX) return 0;
  head frame = {.operation = operation, .bytes = (uint32_t)bytes};
  memcpy(frame.magic, MAGIC, sizeof MAGIC);
  if (device < 0 || !put(&frame, sizeof frame)) return 0;
  for (int i = 0; i < count; ++i)
    if (!put(parts[i].data, parts[i].bytes)) return 0;
  return 1;
}

void hkbench_tell(uint32_t operation, const hkbench_part *parts, int count) {
  pthread_mutex_lock(&turn);
  (void)put_frame(operation, parts, count);
  pthread_mutex_unlock(&turn);
}

int hkbench_ask(uint32_t operation, const hkbench_part *parts, int count, char **answer, size_t *bytes) {
  head frame;
  int status = -1;
  *answer = NULL, *bytes = 0;
  pthread_mutex_lock(&turn);
  if (put_frame(operation, parts, count) && get(&frame, sizeof frame) && !memcmp(frame.magic, MAGIC, sizeof MAGIC)) {
    char *text = malloc((size_t)frame.bytes + 1);
    if (text && get(text, frame.bytes)) {
      text[frame.bytes] = 0;
      *answer = text, *bytes = frame.bytes, status = (int)frame.operation;
    } else {
      free(text);
    }
  }
  pthread_mutex_unlock(&turn);
  return status;
}

void hkbench_refuse(const char *name) {
  const hkbench_part part = {name, strlen(name)};
  fprintf(stderr, "the emulated GPU has no %s\n", name);
  hkbench_tell(HKBENCH_REFUSED, &part, 1);
}
