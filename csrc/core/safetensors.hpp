// The safetensors format: eight bytes with the length of a JSON header, the header, the data. Reading is strict: every
// byte of the data belongs to exactly one tensor, and every length and offset is checked.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bpls {

struct Tensor {
    std::string dtype;
    std::vector<std::size_t> shape;
    std::span<const unsigned char> data;  // as long as dtype and shape say; not aligned
};

struct TensorFile {
    std::map<std::string, std::string> metadata;
    std::map<std::string, Tensor> tensors;
};

// The views point into `file`. Throws InvalidFile.
TensorFile read_safetensors(std::span<const unsigned char> file);

// Returns the items of a JSON list of strings, numbers, true and false: strings decoded, the others as they are written.
// Throws InvalidFile.
std::vector<std::string> read_labels(std::string_view json);

}  // namespace bpls
