// Runs workgroups: waves in turn until each is at a barrier or at its end; workgroups on threads.
#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <thread>

#include "entry.h"
#include "tracker.h"

namespace hkb {
namespace {

constexpr u32 TURN = 20000;           // instructions of a wave before the next has its turn
constexpr std::size_t FAULTS = 64;    // different ones that are told
constexpr u32 POISON = 0x7fe0dead;    // what registers and LDS hold before anything is written: NaN
// With late delivery LDS holds large numbers of both signs: a maximum or minimum passes over NaN, and not over these.
constexpr u64 LARGE = 0xff7f7f7f'7f7f7f7f;

u64 mixed(u64 x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

void mark_defined(Tracker& tracker, u32 first, u32 count) {
  for (u32 k = first; k < first + count; ++k) tracker.defined[k >> 6] |= u64{1} << (k & 63);
}

// The registers of a wave at its start: AMDGPUUsage, "Initial Kernel Execution State".
void start_wave(Wave& w, u32 number) {
  const LaunchRecord& launch = *w.group->run->launch;
  std::fill(&w.v[0][0], &w.v[0][0] + VGPRS * LANES, POISON);
  std::fill(w.s, w.s + SGPRS, POISON);
  w.scc = 0;
  w.pc = static_cast<u32>(launch.entry);
  w.state = RUNNING;
  w.mode = launch.mode;
  w.flush = (launch.mode >> 4 & 3) != 3;
  w.number = number;
  w.clock = 0;
  w.last = nullptr;
  std::fill(w.scratch.begin(), w.scratch.end(), 0);
  const u32 threads = launch.block[0] * launch.block[1] * launch.block[2], first = number * LANES;
  u64 exec = 0;
  for (u32 l = 0; l < LANES; ++l) {
    const u32 id = first + l;
    if (id >= threads) break;
    exec |= u64{1} << l;
    const u32 x = id % launch.block[0], y = id / launch.block[0] % launch.block[1], z = id / launch.block[0] / launch.block[1];
    w.v[0][l] = x | y << 10 | z << 20;
  }
  w.set_pair(EXEC, exec);
  w.set_pair(VCC, 0);
  w.s[M0] = 0;
  u32 at = 0;
  const auto pointer = [&](u32 bit, u64 value, u32 words) {
    if (!(launch.properties >> bit & 1)) return;
    if (words >= 2) w.set_pair(at, value);
    else w.s[at] = static_cast<u32>(value);
    at += words;
  };
  pointer(0, 0, 4);
  pointer(1, launch.dispatch, 2);
  pointer(2, launch.queue, 2);
  pointer(3, launch.kernarg, 2);
  pointer(4, 0, 2);
  pointer(5, 0, 2);
  pointer(6, launch.scratch, 1);
  at = std::max(at, launch.user_sgprs);
  for (u32 k = 0; k < 3; ++k)
    if (launch.ids >> k & 1) w.s[at++] = w.group->id[k];
  if (launch.ids >> 3 & 1) w.s[at++] = 0;
  if (!w.tracker) return;
  w.tracker->ops.clear();
  w.tracker->proven.clear();
  w.tracker->deferred.clear();
  std::fill(w.tracker->pending, w.tracker->pending + WORDS, 0);
  std::fill(w.tracker->defined, w.tracker->defined + WORDS, 0);
  std::fill(w.tracker->unknown, w.tracker->unknown + VGPRS, ~u64{0});
  std::fill(w.tracker->origin, w.tracker->origin + VGPRS, NOWHERE);
  std::fill(w.tracker->unwritten, w.tracker->unwritten + 4, 0);
  if (launch.late) w.tracker->on_its_way.assign(launch.lds / 4 + 4, 0);
  mark_defined(*w.tracker, 0, at);
  mark_defined(*w.tracker, 102, 26);
  mark_defined(*w.tracker, SGPRS, 1);
}

template <bool TRACKED> void take_turn(Wave& w) {
  const Instruction* code = w.group->run->code;
  u32 left = TURN;
  while (w.state == RUNNING && left--) {
    const Instruction& i = code[w.pc++];
    if constexpr (TRACKED) w.tracker->before(w, i);
    reinterpret_cast<Handler>(i.handler)(w, i);
    if constexpr (TRACKED)
      if (i.flight && w.state == RUNNING) w.tracker->issue(w, i);
  }
  w.clock += TURN - 1 - left;
}

bool late(const LaunchRecord& launch) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return launch.deadline && static_cast<u64>(std::chrono::nanoseconds(now).count()) > launch.deadline;
}

// One thread's waves and LDS, used for one workgroup after the other.
class Slot {
 public:
  Slot(Run& run, u32 waves) : run_(run), tracked_(run.launch->check || run.launch->late) {
    group_.run = &run;
    waves_.reset(static_cast<Wave*>(::operator new(sizeof(Wave) * waves, std::align_val_t{64})));
    trackers_.resize(waves);
    if (run.launch->check && run.launch->lds)
      shadow_ = std::make_unique<Shadow>(run.launch->lds, run.launch->shift, run.launch->late);
    group_.shadow = shadow_.get();
    for (u32 k = 0; k < waves; ++k) {
      Wave* w = new (&waves_.get()[k]) Wave;
      w->group = &group_;
      w->scratch.resize(static_cast<std::size_t>(run.launch->scratch) * LANES);
      trackers_[k].check = run.launch->check;
      trackers_[k].late = run.launch->late;
      w->tracker = tracked_ ? &trackers_[k] : nullptr;
      w->deferred = run.launch->late ? &trackers_[k].deferred : nullptr;
      group_.waves.push_back(w);
    }
  }
  ~Slot() {
    for (Wave* w : group_.waves) w->~Wave();
  }

  void execute(u64 number) {
    const LaunchRecord& launch = *run_.launch;
    if (late(launch)) return run_.refuse(REFUSED_TIME, static_cast<u32>(launch.entry));
    group_.id[0] = static_cast<u32>(number % launch.grid[0]);
    group_.id[1] = static_cast<u32>(number / launch.grid[0] % launch.grid[1]);
    group_.id[2] = static_cast<u32>(number / launch.grid[0] / launch.grid[1]);
    group_.round = 0;
    group_.lds.resize(launch.lds);
    const u64 filling = launch.late ? LARGE : POISON | u64{POISON} << 32;
    for (u32 k = 0; k < launch.lds; k += 8) std::memcpy(&group_.lds[k], &filling, std::min(8u, launch.lds - k));
    if (shadow_) shadow_->clear();
    for (u32 k = 0; k < group_.waves.size(); ++k) start_wave(*group_.waves[k], k);
    u64 random = mixed(launch.seed ^ mixed(number));
    while (!run_.refused.load(std::memory_order_relaxed) && next_turns(random)) {
    }
  }

  void step(StepRecord& record) {
    Wave& w = *group_.waves[0];
    group_.round = 0;
    std::fill(group_.id, group_.id + 3, 0);
    group_.lds.assign(record.lds, record.lds + record.lds_size);
    start_wave(w, 0);
    const auto copy = [&](bool back) {
      const auto move = [&](u32* ours, u32* theirs, std::size_t words) {
        std::memcpy(back ? theirs : ours, back ? ours : theirs, 4 * words);
      };
      move(w.s, record.sgpr, SGPRS);
      move(&w.v[0][0], record.vgpr, VGPRS / 2 * LANES);
      move(&w.v[VGPRS / 2][0], record.agpr, VGPRS / 2 * LANES);
    };
    copy(false);
    w.scc = record.scc;
    w.pc = 0;
    w.mode = record.mode;
    w.flush = (record.mode >> 4 & 3) != 3;
    u64 random = 0;
    while (!run_.refused.load() && next_turns(random)) {
    }
    copy(true);
    std::memcpy(record.lds, group_.lds.data(), record.lds_size);
    record.scc = w.scc;
    record.mode = w.mode;
  }

 private:
  // Give each wave that can go on its turn. Return whether any is left.
  bool next_turns(u64& random) {
    std::vector<Wave*> order;
    u32 waiting = 0;
    for (Wave* w : group_.waves) {
      if (w->state == RUNNING) order.push_back(w);
      waiting += w->state == AT_BARRIER;
    }
    if (order.empty()) {
      if (!waiting) return false;
      ++group_.round;
      if (shadow_) shadow_->next_round(group_.round);
      for (Wave* w : group_.waves)
        if (w->state == AT_BARRIER) w->state = RUNNING;
      return true;
    }
    if (run_.launch->seed)
      for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[(random = mixed(random)) % k]);
    for (Wave* w : order) {
      const u64 before = w->clock;
      if (tracked_) take_turn<true>(*w);
      else take_turn<false>(*w);
      const u64 all = run_.executed.fetch_add(w->clock - before) + w->clock - before;
      if (all > run_.launch->budget) run_.refuse(REFUSED_BUDGET, w->pc ? w->pc - 1 : 0, all);
      if (late(*run_.launch)) run_.refuse(REFUSED_TIME, w->pc ? w->pc - 1 : 0);
      if (run_.refused.load(std::memory_order_relaxed)) return false;
    }
    return true;
  }

  struct Free {
    void operator()(Wave* w) const { ::operator delete(w, std::align_val_t{64}); }
  };
  Run& run_;
  bool tracked_;
  std::unique_ptr<Wave, Free> waves_;
  Workgroup group_;
  std::vector<Tracker> trackers_;
  std::unique_ptr<Shadow> shadow_;
};

}  // namespace

void Run::refuse(u32 why, u32 at, u64 detail_) {
  const std::lock_guard lock(guard);
  if (refused.load()) return;
  refused_at = at;
  detail = detail_;
  refused.store(why);
}

void Run::report(const FaultRecord& fault) {
  const std::lock_guard lock(guard);
  for (FaultRecord& known : faults)
    if (known.kind == fault.kind && known.use == fault.use && known.cause == fault.cause) {
      ++known.count;
      return;
    }
  if (faults.size() < FAULTS) return faults.push_back(fault);
  if (fault.kind != FAULT_BOUNDS) return;
  // Races may be forgiven: they must not keep an access out of bounds from being told.
  const auto other = std::find_if(faults.rbegin(), faults.rend(), [](const FaultRecord& f) { return f.kind != FAULT_BOUNDS; });
  if (other != faults.rend()) *other = fault;
}

void Wave::stop(u32 why, const Instruction& at, u64 detail) {
  state = ENDED;
  group->run->refuse(why, static_cast<u32>(&at - group->run->code), detail);
}

void Wave::set_mode(u32 value, const Instruction& at) {
  // Rounding to the nearest, and denormals of halves and doubles kept: what the executor computes by.
  if ((value & 0xf) || (value >> 6 & 3) != 3) return stop(REFUSED_MODE, at, value);
  mode = value;
  flush = (value >> 4 & 3) != 3;
}

void execute(Run& run) {
  const LaunchRecord& launch = *run.launch;
  const u64 groups = u64{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const u32 lanes = launch.block[0] * launch.block[1] * launch.block[2], waves = (lanes + LANES - 1) / LANES;
  // With a seed, workgroups are taken in another order: each number once, as the step has no factor in common.
  u64 step = launch.seed && groups > 2 ? mixed(launch.seed) % groups | 1 : 1;
  while (std::gcd(step, groups) != 1) ++step;
  const u64 begin = launch.seed ? mixed(launch.seed + 1) % groups : 0;
  std::atomic<u64> next{0};
  const auto work = [&] {
    Slot slot(run, waves);
    for (u64 k = next++; k < groups && !run.refused.load(std::memory_order_relaxed); k = next++)
      slot.execute(static_cast<u64>((static_cast<unsigned __int128>(k) * step + begin) % groups));
  };
  std::vector<std::thread> threads;
  for (u64 k = 1; k < std::min<u64>(launch.threads, groups); ++k) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

void step(Run& run, StepRecord& record) {
  Slot slot(run, 1);
  slot.step(record);
}

}  // namespace hkb
