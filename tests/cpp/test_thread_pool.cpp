// The pool itself: who runs which item, how many threads run, and how many CPUs there are. Run under the thread sanitizer.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "check.hpp"
#include "core/cpus.hpp"
#include "core/threads.hpp"

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace {

void every_item_runs_once() {
    for (const int n_threads : {1, 2, 3, 17})
        for (const std::size_t items : {0u, 1u, 2u, 5u, 1000u}) {
            std::vector<std::atomic<int>> runs(items);
            std::vector<std::atomic<int>> at_once(static_cast<std::size_t>(n_threads));
            std::atomic<bool> shared_a_number = false;
            bpls::parallel_for(n_threads, items, [&](std::size_t item, int thread) noexcept {
                std::atomic<int>& mine = at_once[static_cast<std::size_t>(thread)];
                if (mine.fetch_add(1) != 0) shared_a_number = true;
                ++runs[item];
                mine.fetch_sub(1);
            });
            CHECK(std::ranges::all_of(runs, [](const auto& count) { return count == 1; }));
            CHECK(!shared_a_number);
        }
}

void an_item_may_wait_for_a_lower_one() {
    const std::size_t items = 2000;
    std::atomic<std::size_t> finished = 0;
    bpls::parallel_for(4, items, [&](std::size_t item, int) noexcept {
        while (finished.load() != item) std::this_thread::yield();
        finished.store(item + 1);
    });
    CHECK(finished == items);
}

void workers_give_way_to_callers() {
    // As many calls as threads are allowed: while all of them are under way a worker may begin one more item, which it took
    // just before the last call came.
    constexpr int limit = 3;
    constexpr std::size_t items = 3000;
    std::atomic<int> callers = 0, begun_by_workers = 0;
    const auto call = [&] {
        bpls::parallel_for(limit, items, [&](std::size_t item, int thread) noexcept {
            if (item == 0) ++callers;
            if (thread > 0 && callers == limit) ++begun_by_workers;
            for (int step = 0; step < 300; ++step)
                std::atomic_signal_fence(std::memory_order_seq_cst);
            if (item == items - 100) callers = -limit;
        });
    };
    std::vector<std::thread> threads;
    for (int caller = 0; caller < limit; ++caller) threads.emplace_back(call);
    for (std::thread& thread : threads) thread.join();
    CHECK(begun_by_workers < limit);
}

void a_worker_helps_when_another_call_ends() {
    // With two threads allowed and two calls under way no worker may help; the longer call gets one when the other ends.
    std::atomic<bool> both = false, ended = false, helped = false;
    std::thread other([&] {
        bpls::parallel_for(2, 2, [&](std::size_t item, int) noexcept {
            while (item == 0 && !both) std::this_thread::yield();
        });
        ended = true;
    });
    bpls::parallel_for(2, 1u << 20, [&](std::size_t, int thread) noexcept {
        both = true;
        if (thread == 1) helped = true;
        while (!ended) std::this_thread::yield();
        if (!helped) std::this_thread::yield();
    });
    other.join();
    CHECK(helped);
}

void write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
}

#if defined(__linux__)
void the_quota_is_the_smallest_of_the_groups() {
    namespace fs = std::filesystem;
    const fs::path folder = fs::temp_directory_path() / ("bpls_quota_" + std::to_string(getpid()));
    const auto quota = [&](const std::string& groups) {
        write(folder / "groups", groups);
        return bpls::cpu_quota((folder / "groups").c_str(), (folder / "root").c_str());
    };
    write(folder / "root/a/b/cpu.max", "max 100000\n");
    write(folder / "root/a/cpu.max", "150000 100000\n");
    write(folder / "root/c/cpu.max", "400000 100000\n");
    write(folder / "root/cpu/old/cpu.cfs_quota_us", "50000\n");
    write(folder / "root/cpu/old/cpu.cfs_period_us", "100000\n");
    write(folder / "root/cpu/free/cpu.cfs_quota_us", "-1\n");
    write(folder / "root/cpu/free/cpu.cfs_period_us", "100000\n");
    CHECK(quota("0::/a/b\n") == 1.5);
    CHECK(quota("0::/c\n") == 4);
    CHECK(quota("5:memory:/old\n4:cpu,cpuacct:/old\n0::/c\n") == 0.5);
    CHECK(quota("4:cpuacct,cpu:/old\n") == 0.5);
    CHECK(std::isinf(quota("4:cpu:/free\n")));
    CHECK(std::isinf(quota("4:cpuset:/old\n")));
    CHECK(std::isinf(quota("0::/\n")));
    CHECK(std::isinf(quota("nonsense\n")));
    CHECK(std::isinf(bpls::cpu_quota("/there/is/no/such/file", "/there/is/no/such/folder")));
    fs::remove_all(folder);
}

void the_number_of_cpus_follows_the_affinity() {
    cpu_set_t before, one;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    const int all = bpls::usable_cpus();
    CHECK(all >= 1 && all <= CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (std::size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(bpls::usable_cpus() == 1);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
    CHECK(bpls::usable_cpus() == all);
}
#endif

}  // namespace

int main() {
    return run_tests([] {
        every_item_runs_once();
        an_item_may_wait_for_a_lower_one();
        for (int round = 0; round < 20; ++round) workers_give_way_to_callers();
        a_worker_helps_when_another_call_ends();
        CHECK(bpls::usable_cpus() >= 1);
#if defined(__linux__)
        the_quota_is_the_smallest_of_the_groups();
        the_number_of_cpus_follows_the_affinity();
#endif
    });
}
