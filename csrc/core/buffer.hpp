// Scratch memory, aligned to a cache line and not initialised. A thread caches up to 16 MiB of what it returned: fresh pages
// from the system cost more time than many kernels take.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace bpls {

inline constexpr std::size_t cache_line = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
    return (value + multiple - 1) / multiple * multiple;
}

namespace detail {

struct Release {
    std::align_val_t alignment{cache_line};
    void operator()(unsigned char* p) const noexcept { ::operator delete(p, alignment); }
};

struct Block {
    std::unique_ptr<unsigned char, Release> data;
    std::size_t bytes = 0;
};

// Allocates a block. Large ones are aligned to large pages, and use them where the system has them.
Block fresh_block(std::size_t bytes);

// The blocks that a thread caches until it ends.
class ScratchCache {
 public:
#if defined(BPLS_SANITIZED)
    static constexpr std::size_t limit = 0;  // a cached block would hide accesses past its end
#else
    static constexpr std::size_t limit = 16u << 20;  // bytes in total
#endif

    // Returns a block of at least this size, a cached one of at most about twice the size if there is one. Cached blocks are
    // freed where a fresh one would exceed the limit.
    static Block take(std::size_t bytes) {
        return ended_ ? fresh_block(bytes) : of_this_thread().taken(bytes);
    }
    static void give(Block block) noexcept {
        if (!ended_) of_this_thread().keep(std::move(block));
    }

 private:
    ScratchCache() = default;
    ~ScratchCache() { ended_ = true; }

    static ScratchCache& of_this_thread() {
        thread_local ScratchCache cache;
        return cache;
    }

    Block taken(std::size_t bytes) {
        for (Block& kept : blocks_)
            if (kept.bytes >= bytes && kept.bytes / 2 <= bytes) {
                kept_bytes_ -= kept.bytes;
                return std::exchange(kept, Block());
            }
        make_room(bytes);
        return fresh_block(bytes);
    }

    void keep(Block block) noexcept {
        if (block.bytes > limit) return;
        make_room(block.bytes);
        kept_bytes_ += block.bytes;
        *smallest() = std::move(block);
    }

    Block* smallest() noexcept {
        Block* place = &blocks_[0];
        for (Block& kept : blocks_)
            if (kept.bytes < place->bytes) place = &kept;
        return place;
    }

    // Frees blocks, the smallest first, until a place is free and the limit leaves room for `bytes` more.
    void make_room(std::size_t bytes) noexcept {
        while (kept_bytes_ > 0 && (smallest()->bytes > 0 || kept_bytes_ + bytes > limit)) {
            Block* victim = nullptr;
            for (Block& kept : blocks_)
                if (kept.bytes > 0 && (!victim || kept.bytes < victim->bytes)) victim = &kept;
            kept_bytes_ -= victim->bytes;
            *victim = Block();
        }
    }

    // Objects with static storage duration outlive the cache of the thread that ends the program.
    static constinit thread_local bool ended_;
    static constexpr std::size_t places = 6;  // a call with two threads holds no more
    std::array<Block, places> blocks_;
    std::size_t kept_bytes_ = 0;
};

inline constinit thread_local bool ScratchCache::ended_ = false;

}  // namespace detail

template <class T>
class Buffer {
 public:
    explicit Buffer(std::size_t count) : block_(detail::ScratchCache::take(count * sizeof(T))) {}
    Buffer(Buffer&&) noexcept = default;
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer() {
        if (block_.data) detail::ScratchCache::give(std::move(block_));
    }

    T* data() noexcept { return reinterpret_cast<T*>(block_.data.get()); }

 private:
    detail::Block block_;
};

}  // namespace bpls
