// Open jobs are on their callers' stacks, in a list that a mutex guards. A worker joins a job under the mutex and leaves it by
// one atomic decrement; a job that its caller has taken off the list gets no more workers, so the caller waits for those
// alone that have an item in their hands.
#include "core/thread_pool.hpp"

#include <atomic>
#include <bitset>
#include <mutex>
#include <new>
#include <thread>

#include "bpls/config.hpp"
#include "core/buffer.hpp"
#include "core/wait.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace bpls {
namespace {

// A thread that serves the pool.
class Worker {
 public:
    // start() returns false if the system has no thread left.
#if defined(_WIN32)
    template <class Pool>
    bool start(Pool& pool) noexcept {
        try {
            thread_ = std::thread([&pool] { pool.serve(); });
        } catch (...) {
            return false;
        }
        return true;
    }
    // The system has ended the threads of a process that exits, and a library that is unloaded must not wait for any.
    void join() noexcept { thread_.detach(); }

 private:
    std::thread thread_;
#else
    // Signals are for the program's own threads. The stack is small, because it counts as used memory where that is limited.
    template <class Pool>
    bool start(Pool& pool) noexcept {
        constexpr std::size_t stack_bytes = 1u << 20;
        sigset_t all, before;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) != 0) return false;
        pthread_attr_setstacksize(&attributes, stack_bytes);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        const int failed = pthread_create(
            &thread_, &attributes,
            [](void* served) -> void* {
                static_cast<Pool*>(served)->serve();
                return nullptr;
            },
            &pool);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_attr_destroy(&attributes);
        return failed == 0;
    }
    void join() noexcept { pthread_join(thread_, nullptr); }

 private:
    pthread_t thread_;
#endif
};

// A call that shares its items.
struct Job {
    Body body;
    void* context;
    std::size_t items;
    int most_threads;
    Job* following = nullptr;             // in the list of open jobs
    std::bitset<max_threads> numbers{1};  // of the threads that take part; the caller's is 0
    alignas(cache_line) std::atomic<std::size_t> next{0};  // the item to start next
    alignas(cache_line) std::atomic<int> helpers{0};       // workers that are at it

    // The first number that no thread has, or most_threads.
    int free_number() const noexcept {
        int number = 0;
        while (number < most_threads && numbers[static_cast<std::size_t>(number)]) ++number;
        return number;
    }
    bool has_items() const noexcept { return next.load(std::memory_order_relaxed) < items; }
};

class Pool {
 public:
    void run(Job& job) noexcept {
        running_.fetch_add(1, std::memory_order_relaxed);
        open(job);
        work(job, 0);
        close(job);
        running_.fetch_sub(1, std::memory_order_relaxed);
        // A worker that there was no room for may help another call now.
        if (open_jobs_.load(std::memory_order_relaxed) > 0) news_.advance(1);
    }

    // What a worker does until the pool ends.
    void serve() noexcept {
        while (!ended_.load(std::memory_order_relaxed)) {
            const std::uint32_t seen = news_.value();
            int thread;
            if (Job* job = join(thread)) {
                work(*job, thread);
                leave(*job, thread);
            } else {
                news_.wait_until([&] { return news_.value() != seen; });
            }
        }
    }

    // Ends and joins the workers. A call that is under way is finished by its caller.
    void end() noexcept {
        {
            const std::lock_guard lock(mutex_);
            ended_.store(true, std::memory_order_relaxed);
        }
        news_.advance();
        for (int worker = 0; worker < workers_; ++worker) threads_[worker].join();
    }

    std::mutex& mutex() noexcept { return mutex_; }

 private:
    void open(Job& job) noexcept {
        {
            const std::lock_guard lock(mutex_);
            // Jobs that began earlier are helped first.
            Job** last = &first_;
            while (*last) last = &(*last)->following;
            *last = &job;
            open_jobs_.fetch_add(1, std::memory_order_relaxed);
            while (workers_ < job.most_threads - 1 && !ended_ && threads_[workers_].start(*this))
                ++workers_;
        }
        news_.advance(job.most_threads - 1);
    }

    void close(Job& job) noexcept {
        {
            const std::lock_guard lock(mutex_);
            Job** place = &first_;
            while (*place != &job) place = &(*place)->following;
            *place = job.following;
            open_jobs_.fetch_sub(1, std::memory_order_relaxed);
        }
        left_.wait_until([&] { return job.helpers.load(std::memory_order_acquire) == 0; });
    }

    // Takes part in the first open job that has room. The job stays until leave().
    Job* join(int& thread) noexcept {
        if (open_jobs_.load(std::memory_order_relaxed) == 0) return nullptr;
        const std::lock_guard lock(mutex_);
        for (Job* job = first_; job; job = job->following) {
            thread = job->free_number();
            if (thread == job->most_threads || !job->has_items()) continue;
            if (running_.load(std::memory_order_relaxed) >= job->most_threads) continue;
            running_.fetch_add(1, std::memory_order_relaxed);
            job->helpers.fetch_add(1, std::memory_order_relaxed);
            job->numbers.set(static_cast<std::size_t>(thread));
            return job;
        }
        return nullptr;
    }

    void leave(Job& job, int thread) noexcept {
        {
            const std::lock_guard lock(mutex_);
            job.numbers.reset(static_cast<std::size_t>(thread));
        }
        running_.fetch_sub(1, std::memory_order_relaxed);
        job.helpers.fetch_sub(1, std::memory_order_seq_cst);  // the job may be gone from here on
        left_.advance();
    }

    // A worker gives way after an item if other calls have come, or if the pool ends.
    void work(Job& job, int thread) const noexcept {
        for (std::size_t item;
             (item = job.next.fetch_add(1, std::memory_order_relaxed)) < job.items;) {
            job.body(job.context, item, thread);
            if (thread > 0 && (running_.load(std::memory_order_relaxed) > job.most_threads ||
                               ended_.load(std::memory_order_relaxed)))
                return;
        }
    }

    alignas(cache_line) Signal news_;  // changes when a worker should look for a job
    alignas(cache_line) Signal left_;  // changes when a worker has left a job
    alignas(cache_line) std::atomic<int> running_{0};  // threads in all calls together
    std::atomic<int> open_jobs_{0};
    std::atomic<bool> ended_{false};
    std::mutex mutex_;  // guards what follows, and joining
    Job* first_ = nullptr;
    int workers_ = 0;  // that were started
    Worker threads_[max_threads - 1];
};

// The pool of the process, in memory that is never freed: a call may come after the end of static objects.
class ProcessPool {
 public:
    ProcessPool() {
        make();
#if !defined(_WIN32)
        // The mutex is held across a fork, so the parent's pool is whole. The child has none of its workers and gets a new one.
        pthread_atfork([] { pool().mutex().lock(); }, [] { pool().mutex().unlock(); }, &make);
#endif
    }
    ~ProcessPool() { pool().end(); }

    static Pool& pool() noexcept { return *std::launder(reinterpret_cast<Pool*>(memory_)); }

 private:
    static void make() noexcept { new (memory_) Pool; }

    alignas(Pool) static inline unsigned char memory_[sizeof(Pool)];
};

}  // namespace

void run_on_pool(int n_threads, std::size_t items, Body body, void* context) noexcept {
    static const ProcessPool made_on_first_use;
    Job job{body, context, items, n_threads};
    ProcessPool::pool().run(job);
}

}  // namespace bpls
