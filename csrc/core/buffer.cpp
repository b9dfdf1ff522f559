// Fresh blocks of scratch memory.
#include "core/buffer.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace bpls::detail {

Block fresh_block(std::size_t bytes) {
    constexpr std::size_t large_page = 2u << 20;  // bytes, on x86-64 and most others
    const std::align_val_t alignment{bytes < 2 * large_page ? cache_line : large_page};
    auto* data = static_cast<unsigned char*>(::operator new(bytes, alignment));
#if defined(__linux__)
    // If the system declines, small pages are used.
    if (bytes >= 2 * large_page) (void)madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return {std::unique_ptr<unsigned char, Release>(data, Release{alignment}), bytes};
}

}  // namespace bpls::detail
