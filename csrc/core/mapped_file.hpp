// The bytes of a file, memory-mapped where the system can, as long as the object lives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace bpls {

class MappedFile {
 public:
    // Throws std::system_error, which names the file.
    explicit MappedFile(const char* path);
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::span<const unsigned char> bytes() const noexcept { return bytes_; }

 private:
    std::span<const unsigned char> bytes_;
    std::vector<unsigned char> copy_;  // on systems without mappings
};

}  // namespace bpls
