// The forward product of bytes and int8 weights by register tiles, shared by all levels.
#pragma once

#include "kernels/product-inl.hpp"

namespace bpls::kernels {
namespace {

// Missing rows are computed as copies of the last one and not stored.
template <class V, int mr, int nv, bool listed>
inline void bytes_vectors(const unsigned char* const* rows, int count, const std::int32_t* panel,
                          const int* nonzero, int steps, const float* scale, int columns,
                          float* out, std::ptrdiff_t stride) noexcept {
    const unsigned char* row[mr];
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i) row[i] = rows[i < count ? i : count - 1];
    V sum[mr][nv];
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i)
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) sum[i][j] = V::zero();
    for (int step = 0; step < steps; ++step) {
        const std::ptrdiff_t k = listed ? nonzero[step] : step;
        const std::int32_t* from = panel + k * (nv * V::lanes);
        V x[nv];
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) x[j] = V::load(from + j * V::lanes);
#pragma GCC unroll 12
        for (int i = 0; i < mr; ++i) {
            const V y = V::broadcast(read<std::int32_t>(row[i] + k * 4));
#pragma GCC unroll 12
            for (int j = 0; j < nv; ++j) sum[i][j].multiply_add(x[j], y);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < mr; ++i) {
        if (i >= count) break;
#pragma GCC unroll 12
        for (int j = 0; j < nv; ++j) {
            const F32 value = F32::of_integers(sum[i][j].v) * F32::load(scale + j * V::lanes);
            float* to = out + i * stride + j * V::lanes;
            if (columns - j * V::lanes >= V::lanes)
                value.store(to);
            else
                value.store_first(to, columns - j * V::lanes);
        }
    }
}

template <class V, int mr, int nv>
void bytes_tile(const unsigned char* const* rows, int count, const std::int32_t* panel,
                const int* nonzero, int steps, const float* scale, int columns, float* out,
                std::ptrdiff_t stride) noexcept {
    if (nonzero)
        bytes_vectors<V, mr, nv, true>(rows, count, panel, nonzero, steps, scale, columns, out,
                                       stride);
    else
        bytes_vectors<V, mr, nv, false>(rows, count, panel, nonzero, steps, scale, columns, out,
                                        stride);
}

template <class V, int mr>
constexpr Bytes bytes() noexcept {
    static_assert(V::lanes == F32::lanes);
    return {mr,
            V::lanes,
            V::step_rows,
            {&bytes_tile<V, mr, 1>, &bytes_tile<V, mr, 2>, &bytes_tile<V, mr, 3>}};
}

}  // namespace
}  // namespace bpls::kernels
