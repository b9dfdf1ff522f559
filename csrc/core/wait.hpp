// How a thread waits for another one: it spins for some microseconds, then sleeps in the kernel, so that a core that others
// need is soon theirs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace bpls {

// How long a thread spins: about as long as it takes to wake one that sleeps.
inline constexpr std::chrono::microseconds spin_time{50};

namespace detail {

// Tells the core that this loop waits.
inline void pause() noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    asm volatile("isb");
#else
    std::this_thread::yield();
#endif
}

// Calls done() until it returns true. Returns false if that takes longer than spin_time.
template <class F>
bool spin_until(F&& done) noexcept {
    constexpr int looks = 8;  // between two looks at the clock
    if (done()) return true;
    const auto end = std::chrono::steady_clock::now() + spin_time;
    do
        for (int look = 0; look < looks; ++look) {
            pause();
            if (done()) return true;
        }
    while (std::chrono::steady_clock::now() < end);
    return false;
}

}  // namespace detail

// A number that threads wait for.
class Signal {
 public:
    std::uint32_t value() const noexcept { return value_.load(std::memory_order_acquire); }

    // Sets the number. Who waits sees everything that was written before.
    void set(std::uint32_t value) noexcept {
        value_.store(value, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) > 0) value_.notify_all();
    }

    // Adds one and wakes all threads that sleep, or some.
    void advance() noexcept {
        value_.fetch_add(1, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) > 0) value_.notify_all();
    }
    void advance(int threads) noexcept {
        value_.fetch_add(1, std::memory_order_seq_cst);
        for (auto some = static_cast<std::uint32_t>(threads);
             some > 0 && sleepers_.load(std::memory_order_seq_cst) > 0; --some)
            value_.notify_one();
    }

    // Returns when done() is true. What makes it true is followed by a change of the number.
    template <class F>
    void wait_until(F&& done) const noexcept {
        if (detail::spin_until(done)) return;
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        for (;;) {
            const std::uint32_t now = value_.load(std::memory_order_seq_cst);
            if (done()) break;
            value_.wait(now, std::memory_order_seq_cst);
        }
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }

 private:
    std::atomic<std::uint32_t> value_{0};
    mutable std::atomic<std::uint32_t> sleepers_{0};  // without any, nobody has to be woken
};

}  // namespace bpls
