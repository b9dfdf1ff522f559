// A strict reader of safetensors: a small JSON parser, and the checks that tensors cover the data exactly.
#include "core/safetensors.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

#include "bpls/network.hpp"

namespace bpls {
namespace {

constexpr std::size_t length_bytes = 8;  // of the number in front of the header

void append_utf8(std::uint32_t code, std::string& to) {
    const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

// Reads the JSON of a header. Its nesting is that of the functions that read it, so no input can exhaust the stack.
class Json {
 public:
    explicit Json(std::string_view text) : text_(text) {}

    [[noreturn]] void fail(const std::string& expected) const {
        throw InvalidFile("the header is damaged: expected " + expected + " at its byte " +
                          std::to_string(at_));
    }
    char peek() {
        while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos)
            ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char wanted) {
        if (peek() != wanted || at_ == text_.size()) return false;
        ++at_;
        return true;
    }
    void expect(char wanted) {
        if (!take(wanted)) fail(std::string(1, wanted));
    }
    void expect_end() {
        peek();
        if (at_ != text_.size()) fail("nothing more");
    }

    // object() calls read(key) for every key of an object, list() calls read() for every item of a list.
    template <class F>
    void object(F&& read) {
        expect('{');
        if (take('}')) return;
        do {
            const std::string key = string();
            expect(':');
            read(key);
        } while (take(','));
        expect('}');
    }
    template <class F>
    void list(F&& read) {
        expect('[');
        if (take(']')) return;
        do read();
        while (take(','));
        expect(']');
    }

    std::string string() {
        expect('"');
        std::string value;
        while (true) {
            if (at_ == text_.size()) fail("the end of a string");
            const auto c = static_cast<unsigned char>(text_[at_]);
            if (c == '"') break;
            if (c < 0x20) fail("no control character in a string");
            if (c == '\\')
                append_utf8(escaped(), value);
            else
                append_character(value);
        }
        ++at_;
        return value;
    }

    std::size_t whole_number() {
        peek();
        std::size_t value = 0;
        const char* begin = text_.data() + at_;
        const auto parsed = std::from_chars(begin, text_.data() + text_.size(), value);
        const auto length = static_cast<std::size_t>(parsed.ptr - begin);
        if (parsed.ec != std::errc() || (*begin == '0' && length > 1))
            fail("a whole number that fits");
        at_ += length;
        return value;
    }

    // Returns a number, true or false as it is written.
    std::string word() {
        peek();
        for (const std::string_view name : {"true", "false"})
            if (text_.substr(at_).starts_with(name)) return taken(name.size());
        const std::size_t begin = at_;
        std::size_t length = 0;
        const auto next = [&] {
            return begin + length < text_.size() ? text_[begin + length] : '\0';
        };
        const auto digits = [&] {
            const std::size_t before = length;
            while (next() >= '0' && next() <= '9') ++length;
            if (length == before) fail("a number, true, false or a string");
        };
        if (next() == '-') ++length;
        const bool zero = next() == '0';
        const std::size_t whole = length;
        digits();
        if (zero && length > whole + 1) fail("a number without leading zeros");
        if (next() == '.') {
            ++length;
            digits();
        }
        if (next() == 'e' || next() == 'E') {
            ++length;
            if (next() == '+' || next() == '-') ++length;
            digits();
        }
        return taken(length);
    }

 private:
    std::string taken(std::size_t length) {
        at_ += length;
        return std::string(text_.substr(at_ - length, length));
    }

    std::uint32_t hexadecimal() {
        std::uint32_t value = 0;
        const char* begin = text_.data() + at_;
        if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, value, 16).ptr != begin + 4)
            fail("four hexadecimal digits");
        at_ += 4;
        return value;
    }

    std::uint32_t escaped() {
        ++at_;
        if (at_ == text_.size()) fail("the rest of an escape");
        const char kind = text_[at_++];
        constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
        if (const std::size_t place = names.find(kind); place != names.npos)
            return static_cast<unsigned char>(values[place]);
        if (kind != 'u') fail("an escape of JSON");
        const std::uint32_t high = hexadecimal();
        if (high < 0xd800 || high > 0xdfff) return high;
        if (high > 0xdbff || !text_.substr(at_).starts_with("\\u")) fail("a pair of surrogates");
        at_ += 2;
        const std::uint32_t low = hexadecimal();
        if (low < 0xdc00 || low > 0xdfff) fail("a pair of surrogates");
        return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }

    // Appends one character of UTF-8. Truncated or overlong ones and surrogates are errors.
    void append_character(std::string& value) {
        const auto lead = static_cast<unsigned char>(text_[at_]);
        const std::size_t length = lead < 0x80                    ? 1
                                   : lead >= 0xc2 && lead <= 0xdf ? 2
                                   : lead >= 0xe0 && lead <= 0xef ? 3
                                   : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                                  : 0;
        if (length == 0 || text_.size() - at_ < length) fail("UTF-8");
        std::uint32_t code = length == 1 ? lead : lead & (0xffu >> (length + 1));
        for (std::size_t i = 1; i < length; ++i) {
            const auto byte = static_cast<unsigned char>(text_[at_ + i]);
            if ((byte & 0xc0) != 0x80) fail("UTF-8");
            code = code << 6 | (byte & 0x3fu);
        }
        constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
        if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            fail("UTF-8");
        value += taken(length);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

std::size_t size_of_element(const std::string& dtype) {
    for (const auto& [name, size] : {std::pair("F64", 8), std::pair("F32", 4), std::pair("U8", 1)})
        if (dtype == name) return static_cast<std::size_t>(size);
    throw InvalidFile("a tensor has dtype " + dtype + "; expected F64, F32 or U8");
}

// The place of a tensor's data, as the header has it.
struct Place {
    std::size_t begin = 0, end = 0;
};

Place read_tensor(Json& json, Tensor& tensor) {
    std::vector<std::size_t> offsets;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    const auto once = [&](bool& seen) {
        if (std::exchange(seen, true)) json.fail("a field once only");
    };
    json.object([&](const std::string& field) {
        if (field == "dtype") {
            once(has_dtype);
            tensor.dtype = json.string();
        } else if (field == "shape" || field == "data_offsets") {
            once(field == "shape" ? has_shape : has_offsets);
            std::vector<std::size_t>& numbers = field == "shape" ? tensor.shape : offsets;
            json.list([&] { numbers.push_back(json.whole_number()); });
        } else {
            json.fail("dtype, shape and data_offsets, not " + field);
        }
    });
    if (!has_dtype || !has_shape || !has_offsets) json.fail("dtype, shape and data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) json.fail("two data_offsets in order");
    std::size_t bytes = size_of_element(tensor.dtype);
    for (const std::size_t size : tensor.shape) {
        if (size != 0 && bytes > std::numeric_limits<std::size_t>::max() / size)
            json.fail("a shape that can be addressed");
        bytes *= size;
    }
    if (bytes != offsets[1] - offsets[0]) json.fail("data_offsets as far apart as the shape says");
    return {offsets[0], offsets[1]};
}

}  // namespace

TensorFile read_safetensors(std::span<const unsigned char> file) {
    if (file.size() < length_bytes) throw InvalidFile("the file ends within its first 8 bytes");
    std::uint64_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | file[i];
    if (length > file.size() - length_bytes)
        throw InvalidFile("the header has a length of " + std::to_string(length) +
                          " bytes, more than the file has");
    const auto header = file.subspan(length_bytes, static_cast<std::size_t>(length));
    const auto data = file.subspan(length_bytes + static_cast<std::size_t>(length));

    TensorFile found;
    std::vector<std::pair<Place, Tensor*>> places;
    bool has_metadata = false;
    Json json({reinterpret_cast<const char*>(header.data()), header.size()});
    json.object([&](const std::string& name) {
        if (name == "__metadata__") {
            if (std::exchange(has_metadata, true)) json.fail("__metadata__ once only");
            json.object([&](const std::string& key) {
                if (!found.metadata.emplace(key, json.string()).second)
                    json.fail("the key " + key + " once only");
            });
        } else {
            const auto [tensor, added] = found.tensors.emplace(name, Tensor());
            if (!added) json.fail("the tensor " + name + " once only");
            const Place place = read_tensor(json, tensor->second);
            places.emplace_back(place, &tensor->second);
        }
    });
    json.expect_end();

    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first.begin, a.first.end) < std::pair(b.first.begin, b.first.end);
    });
    std::size_t end = 0;
    for (const auto& [place, tensor] : places) {
        if (place.begin != end || place.end > data.size())
            throw InvalidFile(
                "the tensors are not contiguous in the file's data, or go beyond its end");
        tensor->data = data.subspan(place.begin, place.end - place.begin);
        end = place.end;
    }
    if (end != data.size())
        throw InvalidFile("the file has " + std::to_string(data.size() - end) +
                          " bytes that belong to no tensor");
    return found;
}

std::vector<std::string> read_labels(std::string_view text) {
    std::vector<std::string> labels;
    Json json(text);
    json.list([&] { labels.push_back(json.peek() == '"' ? json.string() : json.word()); });
    json.expect_end();
    return labels;
}

}  // namespace bpls
