// Gram matrices of rows of few bytes, read in place, with exact integer sums. Shared by all levels.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "kernels/product-inl.hpp"
#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// Adds some steps, of V::step_rows groups of rows each. `next` rotates a group by one column.
template <class V, int count>
inline void add_steps(const unsigned char* rows, std::ptrdiff_t group_bytes, std::size_t steps,
                      const typename V::Places& next, double* sums) noexcept {
    // The places of all rotations: a rotation of the one before would wait for it.
    typename V::Places places[count];
#pragma GCC unroll 16
    for (int j = 0; j < count; ++j) {
        V before;
        before.v = j > 1 ? places[j - 1] : next;
        places[j] = j > 1 ? before.permuted(next).v : next;
    }
    const V one = V::broadcast(packed_one<std::int32_t, V::step_rows>);
    while (steps > 0) {
        constexpr std::size_t most_steps = integer_sum_rows / V::step_rows;
        const std::size_t now = steps < most_steps ? steps : most_steps;
        V sum[count], column_sum = V::zero();
#pragma GCC unroll 16
        for (int j = 0; j < count; ++j) sum[j] = V::zero();
        for (std::size_t k = 0; k < now; ++k, rows += V::step_rows * group_bytes) {
            const V x = V::load_groups(rows, group_bytes), y = x.minus_offset();
            column_sum.multiply_add(one, x);
#pragma GCC unroll 16
            for (int j = 0; j < count; ++j)
                sum[j].multiply_add(j == 0 ? y : y.permuted(places[j]), x);
        }
#pragma GCC unroll 16
        for (int j = 0; j < count; ++j) sum[j].add_to(sums + j * V::lanes);
        column_sum.add_to(sums + count * V::lanes);
        steps -= now;
    }
}

template <class V, int count>
void rotated_bytes(const unsigned char* rows, int columns, std::size_t row_count,
                   double* sums) noexcept {
    // Lanes after the last whole row of a group are not used.
    int column = 0;
    const auto next = V::places([&](int lane) noexcept {
        const bool last = ++column == columns;
        if (last) column = 0;
        return last ? lane + 1 - columns : (lane + 1) % V::lanes;
    });
    const int group = V::lanes / columns;
    const std::ptrdiff_t group_bytes = group * columns;
    const auto step = std::size_t(group * V::step_rows), step_bytes = step * std::size_t(columns);
    // Every group of a step is read as a whole vector: the last one must end before the data do.
    const auto bytes = row_count * std::size_t(columns),
               read_bytes = std::size_t((V::step_rows - 1) * group_bytes + V::lanes);
    const std::size_t steps = bytes < read_bytes ? 0 : (bytes - read_bytes) / step_bytes + 1,
                      rest = bytes - steps * step_bytes;
    add_steps<V, count>(rows, group_bytes, steps, next, sums);
    if (rest == 0) return;
    // At most two steps are left: rows of zeros fill them up.
    unsigned char last[2 * V::step_rows * V::lanes] = {};
    memcpy(last, rows + steps * step_bytes, rest);
    add_steps<V, count>(last, group_bytes, (rest + step_bytes - 1) / step_bytes, next, sums);
}

template <class V, int count>
constexpr NarrowBytes::Rotated rotated_bytes_of() noexcept {
    if constexpr (count <= V::lanes / 2 + 1)
        return &rotated_bytes<V, count>;
    else
        return nullptr;
}

template <class V>
constexpr NarrowBytes narrow_bytes() noexcept {
    return {V::lanes,
            V::left_offset,
            {rotated_bytes_of<V, 1>(), rotated_bytes_of<V, 2>(), rotated_bytes_of<V, 3>(),
             rotated_bytes_of<V, 4>(), rotated_bytes_of<V, 5>(), rotated_bytes_of<V, 6>(),
             rotated_bytes_of<V, 7>(), rotated_bytes_of<V, 8>(), rotated_bytes_of<V, 9>()}};
}

}  // namespace
}  // namespace bpls::kernels
