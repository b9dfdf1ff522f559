// The borders were measured: where two ways meet they take about the same time.
#include "core/gram/choose.hpp"

namespace bpls::gram_detail {
namespace {

// Packed rows beyond this do not stay in the caches that the threads share.
constexpr std::size_t most_packed_bytes = 4u << 20;

}  // namespace

Way choose_way(const ProductShape& shape, const Arithmetic& arithmetic) noexcept {
    if (shape.right <= arithmetic.narrow_columns) return Way::narrow;
    if (shape.left <= most_thin_columns && !shape.symmetric && shape.in_place) return Way::thin;
    const std::size_t columns = shape.right + (shape.symmetric ? 0 : shape.left);
    const bool fits = shape.rows * columns * arithmetic.value_bytes <= most_packed_bytes;
    return fits && shape.rows <= arithmetic.most_rows ? Way::direct : Way::blocked;
}

}  // namespace bpls::gram_detail
