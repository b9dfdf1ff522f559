// Packing and register tiles of the products AᵀB, shared by all levels; the vector types come from a simd_*.hpp.
// Everything has internal linkage: a copy compiled for one instruction set must never be linked into another.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/lists-inl.hpp"
#include "kernels/place-inl.hpp"
#include "kernels/prefetch-inl.hpp"

namespace bpls::kernels {
namespace {

// Reads an element that need not be aligned.
template <class S>
inline S read(const unsigned char* p) noexcept {
    S x;
    memcpy(&x, p, sizeof x);
    return x;
}

// ---- packing into panels of one row per element

template <class S, class T, int panel_width, bool weighted>
inline void pack_values(const unsigned char* source, std::ptrdiff_t row_stride,
                        std::ptrdiff_t col_stride, int rows, int width, const double* weight,
                        unsigned char* panel, int lane, std::size_t panel_bytes) noexcept {
    T* out = reinterpret_cast<T*>(panel) + lane;
    const auto next_panel = std::ptrdiff_t(panel_bytes / sizeof(T));  // elements
    const auto factor = [weight](int k) noexcept { return weighted ? T(weight[k]) : T(1); };
    const auto value = [](const unsigned char* p, T f) noexcept {
        return weighted ? T(read<S>(p)) * f : T(read<S>(p));
    };
    constexpr auto size = std::ptrdiff_t(sizeof(S));
    constexpr int largest_piece = 32;  // a power of two, and no panel is twice as wide
    static_assert(panel_width < 2 * largest_piece);
    if (col_stride == size && width % panel_width == 0) {
        // Row by row through all panels, so that each cache line is read once.
        for (int k = 0; k < rows; ++k, source += row_stride, out += panel_width) {
            const T f = factor(k);
            T* to = out;
            for (int c = 0; c < width; c += panel_width) {
                for (int i = 0; i < panel_width; ++i) to[i] = value(source + (c + i) * size, f);
                to += next_panel;
            }
        }
    } else if (col_stride == size) {
        for (int k = 0; k < rows; ++k, source += row_stride, out += panel_width) {
            const T f = factor(k);
            // In pieces of known sizes: a loop of unknown length is slow for few columns.
            T* to = out;
            const unsigned char* from = source;
#pragma GCC unroll 8
            for (int piece = largest_piece; piece > 0; piece /= 2) {
                if ((width & piece) == 0) continue;
                for (int i = 0; i < piece; ++i) to[i] = value(from + i * size, f);
                to += piece;
                from += piece * size;
            }
        }
    } else {
        for (int c = 0; c < width; ++c, source += col_stride) {
            T* to = out + c / panel_width * next_panel + c % panel_width;
            for (int k = 0; k < rows; ++k)
                to[k * panel_width] = value(source + k * row_stride, factor(k));
        }
    }
}

template <class S, class T, int panel_width>
void pack(const unsigned char* source, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
          int rows, int width, const double* weight, unsigned char* panel, int lane,
          std::size_t panel_bytes) noexcept {
    if (weight)
        pack_values<S, T, panel_width, true>(source, row_stride, col_stride, rows, width, weight,
                                             panel, lane, panel_bytes);
    else
        pack_values<S, T, panel_width, false>(source, row_stride, col_stride, rows, width, weight,
                                              panel, lane, panel_bytes);
}

// ---- packing bytes into panels of several rows per element

// Copies `count` columns, at most V::lanes, of step_rows consecutive rows to packed elements.
template <class V, class E>
inline void interleave(const unsigned char* from, std::ptrdiff_t row_stride, int count,
                       E* to) noexcept {
    if constexpr (requires { V::interleave(from, row_stride, count, to); })
        V::interleave(from, row_stride, count, to);
    else if (count == V::lanes)
        for (int i = 0; i < V::lanes; ++i)
            for (int r = 0; r < V::step_rows; ++r)
                to[i * V::step_rows + r] = E(from[r * row_stride + i]);
    else
        for (int i = 0; i < count; ++i)
            for (int r = 0; r < V::step_rows; ++r)
                to[i * V::step_rows + r] = E(from[r * row_stride + i]);
}

template <class V, class E, int panel_width>
void pack_bytes(const unsigned char* source, std::ptrdiff_t row_stride, std::ptrdiff_t col_stride,
                int rows, int width, const double*, unsigned char* panel, int lane,
                std::size_t panel_bytes) noexcept {
    constexpr int step_rows = V::step_rows;
    E* out = reinterpret_cast<E*>(panel) + lane * step_rows;
    const auto next_panel = std::ptrdiff_t(panel_bytes / sizeof(E));  // elements
    const auto column = [=](E* first, int c) noexcept {
        return first + c / panel_width * next_panel + c % panel_width * step_rows;
    };
    int k = 0;
    for (; k + step_rows <= rows; k += step_rows, out += panel_width * step_rows) {
        const unsigned char* from = source + k * row_stride;
        if (col_stride == 1) {
            for (int c = 0; c < width; c += V::lanes)
                interleave<V>(from + c, row_stride, width - c < V::lanes ? width - c : V::lanes,
                              column(out, c));
        } else {
            for (int c = 0; c < width; ++c) {
                E* to = column(out, c);
                for (int r = 0; r < step_rows; ++r)
                    to[r] = E(from[r * row_stride + c * col_stride]);
            }
        }
    }
    if (k < rows)
        for (int c = 0; c < width; ++c) {
            E* to = column(out, c);
            for (int r = 0; r < step_rows; ++r)
                to[r] = k + r < rows ? E(source[(k + r) * row_stride + c * col_stride]) : E(0);
        }
}

// ---- finding zeros

void merge_bits(const unsigned char* bytes, std::size_t count, unsigned char* seen) noexcept {
    for (std::size_t b = 0; b < count; ++b)
        seen[b] = static_cast<unsigned char>(seen[b] | bytes[b]);
}

// ---- register tiles

// What a tile does with its sums: it adds them to `out`, subtracts them from it, or stores them there.
enum class Sums { added, subtracted, stored };

// Sums mr x (nv vectors) products in registers and moves them to `out`. Panels are nr columns wide. Step k uses element step(k).
template <class V, int mr, int nr, int nv, Sums moved, class Step>
inline void sum_products(const unsigned char* left, const unsigned char* right,
                         std::ptrdiff_t right_stride, Step step, int steps, void* sums,
                         std::ptrdiff_t stride, const unsigned char* prefetch_at,
                         std::ptrdiff_t prefetch_stride) noexcept {
    using T = typename V::Scalar;
    const T* const first_a = reinterpret_cast<const T*>(left);
    const T* const first_b = reinterpret_cast<const T*>(right);
    V sum[mr][nv];
#pragma GCC unroll 16
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) sum[i][j] = V::zero();
    for (int k = 0; k < steps; ++k, prefetch_at += prefetch_stride) {
        const T* const a = first_a + step(k) * nr;
        const T* const b = first_b + step(k) * right_stride;
        prefetch(prefetch_at);
        V x[nv];
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) x[j] = V::load(b + j * V::lanes);
#pragma GCC unroll 16
        for (int i = 0; i < mr; ++i) {
            const V y = V::broadcast(a[i]);
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) {
                if constexpr (moved == Sums::subtracted)
                    sum[i][j] = neg_mul_add(y, x[j], sum[i][j]);
                else
                    sum[i][j].multiply_add(y, x[j]);
            }
        }
    }
    auto* const out = static_cast<typename V::Sum*>(sums);
#pragma GCC unroll 16
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j)
            if constexpr (moved == Sums::stored)
                sum[i][j].store(out + i * stride + j * V::lanes);
            else
                sum[i][j].add_to(out + i * stride + j * V::lanes);
}

template <class V, int mr, int nr, int nv, Sums moved = Sums::added>
void tile(const unsigned char* left, const unsigned char* right, std::ptrdiff_t right_stride,
          int steps, void* out, std::ptrdiff_t stride, const unsigned char* prefetch_at,
          std::ptrdiff_t prefetch_stride) noexcept {
    const auto every = [](int k) noexcept { return std::ptrdiff_t(k); };
    sum_products<V, mr, nr, nv, moved>(left, right, right_stride, every, steps, out, stride,
                                       prefetch_at, prefetch_stride);
}

template <class V, int mr, int nr, int nv>
void listed_tile(const unsigned char* left, const unsigned char* right, std::ptrdiff_t right_stride,
                 const int* nonzero, int count, void* out, std::ptrdiff_t stride,
                 const unsigned char* prefetch_at, std::ptrdiff_t prefetch_stride) noexcept {
    const auto listed = [nonzero](int k) noexcept { return std::ptrdiff_t(nonzero[k]); };
    sum_products<V, mr, nr, nv, Sums::added>(left, right, right_stride, listed, count, out, stride,
                                             prefetch_at, prefetch_stride);
}

template <class V>
int nonzero_steps(const unsigned char* right, std::ptrdiff_t right_stride, int vectors, int steps,
                  int* nonzero) noexcept {
    constexpr auto element = std::ptrdiff_t(sizeof(typename V::Scalar));
    int count = 0;
    for (int k = 0; k < steps; ++k, right += right_stride * element) {
        bool any = any_bit(right);
        for (int j = 1; j < vectors; ++j) any |= any_bit(right + j * V::lanes * element);
        nonzero[count] = k;
        count += any;
    }
    return count;
}

// The packed element that holds a factor of one in each of its rows.
template <class T, int step_rows>
constexpr T packed_one = step_rows == 1 ? T(1) : T(step_rows == 2 ? 0x00010001 : 0x01010101);

template <class V, int nv>
void column_sums(const unsigned char* right, int steps, double* out) noexcept {
    using T = typename V::Scalar;
    constexpr int chains = 4;  // sums that do not wait for one another
    const T* b = reinterpret_cast<const T*>(right);
    const V one = V::broadcast(packed_one<T, V::step_rows>);
    V sum[chains][nv];
    for (int c = 0; c < chains; ++c)
        for (int j = 0; j < nv; ++j) sum[c][j] = V::zero();
    int k = 0;
    for (; k + chains <= steps; k += chains)
#pragma GCC unroll 12
        for (int c = 0; c < chains; ++c, b += nv * V::lanes)
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) sum[c][j].multiply_add(one, V::load(b + j * V::lanes));
    for (; k < steps; ++k, b += nv * V::lanes)
        for (int j = 0; j < nv; ++j) sum[0][j].multiply_add(one, V::load(b + j * V::lanes));
    for (int c = 0; c < chains; ++c)
        for (int j = 0; j < nv; ++j) sum[c][j].add_to(out + j * V::lanes);
}

// Elements hold four bytes: the offset of 128 is their highest bits.
template <int nr>
void subtract_128(const unsigned char* panel, int steps, unsigned char* left) noexcept {
    const auto* from = reinterpret_cast<const std::uint32_t*>(panel);
    auto* to = reinterpret_cast<std::uint32_t*>(left);
    for (int k = 0; k < steps * nr; ++k) to[k] = from[k] ^ 0x80808080u;
}

template <class Sum, int left_offset>
void add_sums(const void* sums, std::size_t count, const double* column_sums,
              double* out) noexcept {
    const auto* from = static_cast<const Sum*>(sums);
    for (std::size_t j = 0; j < count; ++j)
        if constexpr (left_offset == 0)
            out[j] += double(from[j]);
        else
            out[j] += double(from[j]) + left_offset * column_sums[j];
}

// ---- the products

template <class T, int nr>
constexpr Panels float_panels(int rows) noexcept {
    return {nr, rows, 1, sizeof(T), by_dtype<Pack>([]<class S>() -> Pack {
                if constexpr (represents<T, S>)
                    return &pack<S, T, nr>;
                else
                    return nullptr;
            })};
}

// Elements of four bytes that hold V::step_rows integers E of consecutive rows.
template <class V, class E, int nr>
constexpr Panels integer_panels() noexcept {
    return {nr, integer_block_rows, V::step_rows, 4, by_dtype<Pack>([]<class S>() -> Pack {
                if constexpr (std::is_same_v<S, std::uint8_t>)
                    return &pack_bytes<V, E, nr>;
                else
                    return nullptr;
            })};
}

template <class V, int mr, int nv, int left_offset>
constexpr Product product(const Panels& panels) noexcept {
    constexpr int nr = nv * V::lanes;
    static_assert(nr % mr == 0 && nv <= max_vectors);
    return {panels,
            mr,
            V::lanes,
            std::is_same_v<typename V::Sum, std::int32_t>,
            left_offset,
            {&tile<V, mr, nr, 1>, &tile < V, mr, nr, nv < 2 ? 1 : 2 >, &tile<V, mr, nr, nv>},
            {&tile<V, mr, nr, 1, Sums::stored>, &tile < V, mr, nr, nv < 2 ? 1 : 2, Sums::stored >,
             &tile<V, mr, nr, nv, Sums::stored>},
            {&tile<V, mr / 2, nr, 1>, &tile < V, mr / 2, nr, nv < 2 ? 1 : 2 >,
             &tile<V, mr / 2, nr, nv>},
            {&listed_tile<V, mr, nr, 1>, &listed_tile < V, mr, nr, nv < 2 ? 1 : 2 >,
             &listed_tile<V, mr, nr, nv>},
            &nonzero_steps<V>,
            &column_sums<V, nv>,
            left_offset == 0 ? nullptr : &subtract_128<nr>,
            &add_sums<typename V::Sum, left_offset>,
            &place_sums<F64, typename V::Sum>,
            &place_transposed<F64, typename V::Sum>};
}

template <class V, int mr, int nv>
constexpr Product float_product() noexcept {
    return product<V, mr, nv, 0>(float_panels<typename V::Scalar, nv * V::lanes>(block_rows));
}

template <class V, int mr, int nv>
constexpr Product pairs_product() noexcept {
    return product<V, mr, nv, 0>(integer_panels<V, std::int16_t, nv * V::lanes>());
}

template <class V, int mr, int nv>
constexpr Product quads_product() noexcept {
    return product<V, mr, nv, 128>(integer_panels<V, std::uint8_t, nv * V::lanes>());
}

}  // namespace
}  // namespace bpls::kernels
