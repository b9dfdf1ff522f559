// Scratch memory, aligned to a cache line and not initialised.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace bpls {

inline constexpr std::size_t cache_line = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
    return (value + multiple - 1) / multiple * multiple;
}

template <class T>
class Buffer {
 public:
    explicit Buffer(std::size_t count)
        : data_(static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(cache_line)))) {}

    T* data() noexcept { return data_.get(); }

 private:
    struct Release {
        void operator()(T* p) const noexcept { ::operator delete(p, std::align_val_t(cache_line)); }
    };
    std::unique_ptr<T, Release> data_;
};

}  // namespace bpls
