// Lists of the steps of a tile in which not everything is zero. A product over the listed steps alone has the same bits
// wherever all values are finite.
#pragma once

#include <cstddef>

#include "core/buffer.hpp"

namespace bpls {

// The list of one thread. A search that finds too few zeros has cost time for nothing: after `patience` of them in a row
// the next `pause` tiles are not searched.
template <int patience, int pause>
class NonzeroList {
 public:
    NonzeroList() = default;  // never searches
    // `room` holds the list: as many numbers as the caller's kernel may write.
    explicit NonzeroList(int* room) noexcept : list_(room) {}

    bool searches() const noexcept { return list_ && tiles_to_skip_ == 0; }

    // Returns the list of a tile's nonzero steps, which write_list(room) writes and counts, and sets `steps` to its
    // length. Returns null, and leaves `steps` alone, where the tile is not searched or too few steps are zero.
    template <class F>
    const int* find(int& steps, F&& write_list) noexcept {
        if (!searches()) {
            if (tiles_to_skip_ > 0) --tiles_to_skip_;
            return nullptr;
        }
        const int count = write_list(list_);
        if (count > steps - steps / gain) {
            if (++searches_in_vain_ == patience) {
                searches_in_vain_ = 0;
                tiles_to_skip_ = pause;
            }
            return nullptr;
        }
        searches_in_vain_ = 0;
        steps = count;
        return list_;
    }

 private:
    // One step in so many must be zero to be worth the detour through the list.
    static constexpr int gain = 8;

    int* list_ = nullptr;
    int searches_in_vain_ = 0;
    int tiles_to_skip_ = 0;
};

// What one thread of a product works with: a list with room for `list_room` numbers, which never searches if that is 0, and
// scratch memory for `count` values.
template <class T, class List>
class ThreadScratch {
 public:
    ThreadScratch(std::size_t count, std::size_t list_room)
        : list_bytes_(round_up(list_room * sizeof(int), cache_line)),
          memory_(list_bytes_ + count * sizeof(T)),
          nonzero_(list_room > 0 ? reinterpret_cast<int*>(memory_.data()) : nullptr) {}

    T* data() noexcept { return reinterpret_cast<T*>(memory_.data() + list_bytes_); }
    List& nonzero() noexcept { return nonzero_; }

 private:
    std::size_t list_bytes_;
    Buffer<unsigned char> memory_;  // the list, then the values
    List nonzero_;
};

}  // namespace bpls
