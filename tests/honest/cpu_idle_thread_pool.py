"""a pool of threads that sleeps on a condition variable between calls; forward returns when all parts are done.

problem: honest_rms_norm
device: cpu
backend: cpp
outcome: fast|slow
"""

import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
 public:
  explicit Pool(int count) : count_(count) {
    for (int t = 0; t < count; ++t) threads_.emplace_back([this, t] { serve(t); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> hold(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void run(const std::function<void(int, int)>& work) {
    std::unique_lock<std::mutex> hold(mutex_);
    work_ = &work;
    open_ = count_;
    ++round_;
    wake_.notify_all();
    done_.wait(hold, [this] { return open_ == 0; });
  }

 private:
  void serve(int number) {
    int64_t seen = 0;
    std::unique_lock<std::mutex> hold(mutex_);
    while (true) {
      wake_.wait(hold, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      hold.unlock();
      (*work_)(number, count_);
      hold.lock();
      if (--open_ == 0) done_.notify_one();
    }
  }
  const int count_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int, int)>* work_ = nullptr;
  int64_t round_ = 0;
  int open_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

extern "C" void rms_norm(const float* x, const float* gain, float* out, int64_t rows, int64_t columns, float eps) {
  static Pool pool(2);
  pool.run([=](int number, int count) {
    for (int64_t r = rows * number / count; r < rows * (number + 1) / count; ++r) {
      const float* row = x + r * columns;
      float squares = 0.0f;
      #pragma omp simd reduction(+ : squares)
      for (int64_t c = 0; c < columns; ++c) squares += row[c] * row[c];
      const float scale = 1.0f / std::sqrt(squares / float(columns) + eps);
      for (int64_t c = 0; c < columns; ++c) out[r * columns + c] = row[c] * scale * gain[c];
    }
  });
}
"""

KINDS = {"p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float}


def build(name, signatures):
    """Compiles SOURCE into the current folder and declares what its functions take."""
    Path(f"{name}.cpp").write_text(SOURCE)
    command = [
        "g++",
        "-O2",
        "-march=native",
        "-fopenmp-simd",
        "-pthread",
        "-shared",
        "-fPIC",
        f"{name}.cpp",
        "-o",
        f"lib{name}.so",
    ]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(Path(f"lib{name}.so").resolve()))
    for function, kinds in signatures.items():
        getattr(loaded, function).argtypes = [KINDS[kind] for kind in kinds]
        getattr(loaded, function).restype = None
    return loaded


library = build("cpu_idle_thread_pool", {"rms_norm": "pppnnf"})


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.rms_norm(x.data_ptr(), self.weight.data_ptr(), out.data_ptr(), *x.shape, self.eps)
        return out
