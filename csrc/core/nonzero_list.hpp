// Lists of the steps of a tile in which not everything is zero. A product over the listed steps alone has the same bits
// wherever all values are finite.
#pragma once

#include <cstddef>

#include "core/buffer.hpp"

namespace bpls {

// The list of one thread. A search that finds too few zeros is wasted: after `patience` of them in a row, the
// next `pause` tiles are not searched.
template <int patience, int pause>
class NonzeroList {
 public:
    NonzeroList() = default;  // never searches
    // `room` holds the list: as many numbers as the caller's kernel may write.
    explicit NonzeroList(int* room) noexcept : list_(room) {}

    bool searches() const noexcept { return list_ && tiles_to_skip_ == 0; }

    // Ends a pause.
    void resume() noexcept { tiles_to_skip_ = 0; }

    // Returns the list of a tile's nonzero steps, which write_list(room) writes and counts, and sets `steps` to its
    // length. Returns null, and leaves `steps` alone, where the tile is not searched or too few steps are zero.
    template <class F>
    const int* find(int& steps, F&& write_list) noexcept {
        if (!searches()) {
            if (tiles_to_skip_ > 0) --tiles_to_skip_;
            return nullptr;
        }
        const int count = write_list(list_);
        if (count > steps - steps / inverse_zero_share) {
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
    // At least 1/8 of the steps must be zero: for fewer, the list costs more time than it saves.
    static constexpr int inverse_zero_share = 8;

    int* list_ = nullptr;
    int searches_in_vain_ = 0;
    int tiles_to_skip_ = 0;
};

// The scratch memory of one thread of a product: a list with room for `list_room` numbers, which never searches if that is 0,
// and room for `count` values.
template <class T, class List>
class ThreadScratch {
 public:
    ThreadScratch(std::size_t count, std::size_t list_room)
        : list_bytes_(round_up(list_room * sizeof(int), cache_line)),
          buffer_(list_bytes_ + count * sizeof(T)),
          nonzero_(list_room > 0 ? reinterpret_cast<int*>(buffer_.data()) : nullptr) {}

    T* data() noexcept { return reinterpret_cast<T*>(buffer_.data() + list_bytes_); }
    List& nonzero() noexcept { return nonzero_; }

 private:
    std::size_t list_bytes_;
    Buffer<unsigned char> buffer_;  // the list, then the values
    List nonzero_;
};

}  // namespace bpls
