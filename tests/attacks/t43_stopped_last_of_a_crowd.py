"""T43 stopped late: hundreds of idle processes are stopped before the one that computes after the answer

problem: matmul
device: cpu
backend: cpp
outcome: suspect|wrong_values|not_repeatable
reason: put off|elements are wrong|both are the same call
twin: cpu_row_matmul
"""

import ctypes
import pathlib
import subprocess

import torch
import torch.nn as nn

SOURCE = r"""
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>
struct Job { unsigned asked, done; const float *a, *b; float* c; long m, k, n; };
static void product(const float* a, const float* b, float* c, long m, long k, long n) {
  for (long i = 0; i < m; ++i) {
    for (long j = 0; j < n; ++j) c[i * n + j] = 0;
    for (long l = 0; l < k; ++l)
      for (long j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  }
}
static int work(void* argument) {
  Job* job = (Job*)argument;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (unsigned seen = 0;; ++seen) {
    while (__atomic_load_n(&job->asked, __ATOMIC_ACQUIRE) == seen)
      syscall(SYS_futex, &job->asked, FUTEX_WAIT, seen, 0, 0, 0);
    product(job->a, job->b, job->c, job->m, job->k, job->n);
    __atomic_store_n(&job->done, seen + 1, __ATOMIC_RELEASE);
  }
}
static int sharing(int (*what)(void*), Job* job) {  // begins a process with the same memory
  const long size = 1 << 16;
  return clone(what, new char[size] + size, CLONE_VM | SIGCHLD, job);
}
static int parent(void* job) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sharing(work, (Job*)job);
  for (;;) pause();
}
extern "C" void begin(Job* job) { sharing(parent, job); }
extern "C" void ask(Job* job, const float* a, const float* b, float* c, long m, long k, long n) {
  while (__atomic_load_n(&job->done, __ATOMIC_ACQUIRE) != job->asked) usleep(50);
  job->a = a, job->b = b, job->c = c, job->m = m, job->k = k, job->n = n;
  __atomic_fetch_add(&job->asked, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &job->asked, FUTEX_WAKE, 1, 0, 0, 0);
}
"""
IDLE = r"""
#include <unistd.h>
int main() { for (;;) pause(); }
"""
CROWD, BUFFERS = 400, 8


def built(name, source, *flags):
    pathlib.Path(f"{name}.cpp").write_text(source)
    subprocess.run(["g++", "-O3", "-march=native", *flags, f"{name}.cpp", "-o", name], check=True)
    return str(pathlib.Path(name).resolve())


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.library = ctypes.CDLL(built("kernel.so", SOURCE, "-shared", "-fPIC"))
        self.job, self.turn = ctypes.create_string_buffer(64), 0
        self.library.begin(self.job)  # its process is the first in the list, that one's child the last to be found
        idle = built("idle", IDLE, "-static")
        self.crowd = [subprocess.Popen([idle]) for _ in range(CROWD)]
        self.buffers = None

    def forward(self, a, b):
        if self.buffers is None:
            self.buffers = torch.empty(BUFFERS, a.shape[0], b.shape[1])
        self.turn += 1
        c = self.buffers[self.turn % BUFFERS]
        places = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, c)]
        self.library.ask(self.job, *places, *map(ctypes.c_long, (*a.shape, b.shape[1])))
        return c
