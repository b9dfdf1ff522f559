// Files as bytes: mapped on POSIX systems, read into memory on Windows.
#include "core/mapped_file.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#if defined(_WIN32)
#include <fstream>
#include <iterator>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace bpls {
namespace {

[[noreturn]] void fail(const char* path, int error) {
    throw std::system_error(error, std::generic_category(), std::string("cannot read ") + path);
}

}  // namespace

#if defined(_WIN32)

MappedFile::MappedFile(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail(path, ENOENT);
    copy_.assign(std::istreambuf_iterator<char>(file), {});
    bytes_ = copy_;
}

MappedFile::~MappedFile() = default;

#else

MappedFile::MappedFile(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail(path, errno);
    struct stat about{};
    const int error = ::fstat(file, &about) != 0 ? errno
                      : S_ISDIR(about.st_mode)   ? EISDIR
                      : !S_ISREG(about.st_mode)  ? EINVAL
                                                 : 0;
    void* address = MAP_FAILED;
    const auto size = static_cast<std::size_t>(about.st_size);
    if (error == 0 && size > 0) address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    const int mapped = address == MAP_FAILED ? errno : 0;
    ::close(file);
    if (error != 0) fail(path, error);
    if (size == 0) return;
    if (mapped != 0) fail(path, mapped);
    bytes_ = {static_cast<const unsigned char*>(address), size};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<unsigned char*>(bytes_.data()), bytes_.size());
}

#endif

}  // namespace bpls
