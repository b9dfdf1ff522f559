// Networks: what they refuse, and the file they come from, cut at every byte and mutated many times over.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>

#include "check.hpp"

namespace {
std::size_t allocated = 0;  // bytes, all together
}

// Not inlined: the compiler would see free() where it expects delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
    allocated += size;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using Bytes = std::vector<unsigned char>;

// A file of a header, filled up to eight bytes, and of values.
Bytes file_of(std::string header, const std::vector<double>& values) {
    while (header.size() % 8 != 0) header += ' ';
    const std::uint64_t length = header.size();
    Bytes file(sizeof length + header.size() + values.size() * sizeof(double));
    std::memcpy(file.data(), &length, sizeof length);
    std::memcpy(file.data() + sizeof length, header.data(), header.size());
    std::memcpy(file.data() + sizeof length + header.size(), values.data(),
                values.size() * sizeof(double));
    return file;
}

const std::string good_header =
    R"({"__metadata__":{"format":"bpls_fast.network","version":"1","activations":"tanh,softmax",)"
    R"("input_scale":"0.5","classes":"[\"caf\u00e9 \\ud83d\\ude00\", -2.5e1]","classes_dtype":"<U6"},)"
    R"("layers.0.weight":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]},)"
    R"("layers.0.bias":{"dtype":"F64","shape":[3],"data_offsets":[48,72]},)"
    R"("layers.1.weight":{"dtype":"F64","shape":[3,2],"data_offsets":[72,120]},)"
    R"("layers.1.bias":{"dtype":"F64","shape":[2],"data_offsets":[120,136]}})";

std::vector<double> good_values() { return random_values<double>(17, 4); }

Bytes good_file() { return file_of(good_header, good_values()); }

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t place = text.find(what);
    CHECK(place != text.npos);
    return text.replace(place, what.size(), by);
}

void a_file_gives_the_network_it_holds() {
    const bpls::Network network = bpls::Network::parse(good_file());
    CHECK(network.layers() == 2 && network.inputs() == 2 && network.outputs() == 2);
    CHECK(network.bias() && network.input_scale() == 0.5);
    CHECK(network.activation(0) == bpls::Activation::tanh);
    CHECK(network.activation(1) == bpls::Activation::softmax);
    CHECK((network.labels() == std::vector<std::string>{"caf\xc3\xa9 \xf0\x9f\x98\x80", "-2.5e1"}));
    const std::vector<double> values = good_values();
    CHECK(std::memcmp(network.weights(0).data, values.data(), 9 * sizeof(double)) == 0);
    CHECK(std::memcmp(network.weights(1).data, values.data() + 9, 8 * sizeof(double)) == 0);
    CHECK(network.weights(0).rows == 3 && network.weights(1).rows == 4);
}

void biases_scale_and_labels_may_be_missing() {
    const std::string header =
        R"( {"__metadata__":{"format":"bpls_fast.network","version":"1","activations":"relu",)"
        R"("input_scale":"","classes":"","other":"text"},)"
        R"("layers.0.weight" : {"data_offsets":[0,16], "shape":[1,2], "dtype":"F64"}})";
    const bpls::Network network = bpls::Network::parse(file_of(header, {1, 2}));
    CHECK(!network.bias() && !network.input_scale() && network.labels().empty());
    CHECK(network.inputs() == 1 && network.outputs() == 2);
}

// The good header with limits after the layers, of a shape.
std::string limited_header(const std::string& shape, std::size_t values) {
    return good_header.substr(0, good_header.size() - 1) +
           R"(,"input_limits":{"dtype":"F64","shape":)" + shape + R"(,"data_offsets":[136,)" +
           std::to_string(136 + 8 * values) + "]}}";
}

Bytes limited_file(const std::vector<double>& limits, const std::string& shape = "[2,2]") {
    std::vector<double> values = good_values();
    values.insert(values.end(), limits.begin(), limits.end());
    return file_of(limited_header(shape, limits.size()), values);
}

void limits_of_the_inputs_are_read() {
    const bpls::Network network = bpls::Network::parse(limited_file({-1, -INFINITY, 0.5, 2}));
    CHECK((network.input_limits().lower == std::vector<double>{-1, -INFINITY}));
    CHECK((network.input_limits().upper == std::vector<double>{0.5, 2}));
    CHECK(bpls::Network::parse(good_file()).input_limits().empty());
}

// Reads a file; whatever it says, the memory taken is a small multiple of what it holds.
bpls::Network parsed(const Bytes& file) {
    struct Limit {
        std::size_t before, most;
        ~Limit() { CHECK(allocated - before <= most); }
    };
    const Limit limit{allocated, 20 * file.size() + 4000};
    return bpls::Network::parse(file);
}

bool refused(const Bytes& file) {
    return throws<bpls::InvalidFile>([&] { parsed(file); });
}

void a_file_cut_anywhere_is_refused() {
    const Bytes whole = good_file();
    for (std::size_t size = 0; size < whole.size(); ++size)
        CHECK(refused(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))));
    Bytes longer = whole;
    longer.push_back(0);
    CHECK(refused(longer));
}

void what_the_format_forbids_is_refused() {
    const std::pair<const char*, const char*> changes[] = {
        {"bpls_fast.network", "other"},
        {R"("version":"1")", R"("version":"2")"},
        {R"("version":"1",)", ""},
        {"tanh,softmax", "tanh"},
        {"tanh,softmax", "tanh,softmax,"},
        {"tanh,softmax", "tanh,unknown"},
        {"tanh,softmax", ""},
        {R"("input_scale":"0.5")", R"("input_scale":"half")"},
        {R"("input_scale":"0.5")", R"("input_scale":"0")"},
        {R"("input_scale":"0.5")", R"("input_scale":"1e999")"},
        {R"("input_scale":"0.5")", R"("input_scale":" 0.5")"},
        {R"("input_scale":"0.5")", R"("input_scale":"nan")"},
        {", -2.5e1]", "]"},
        {"-2.5e1", "-02.5e1"},
        {"-2.5e1", "null"},
        {"-2.5e1]", "-2.5e1] 1"},
        {"\\ud83d\\\\ude00", "\\ud83d"},
        {"caf", "\x01"},
        {"caf", "\xc0\x80"},
        {"caf", "\xed\xa0\x80"},
        {"caf", "\xff"},
        {"[2,3]", "[3,3]"},
        {"[2,3]", "[6]"},
        {"[2,3]", "[02,3]"},
        {"[2,3]", "[-2,3]"},
        {"[2,3]", "[2.0,3]"},
        {"[2,3]", "[4294967296,4294967296,4294967296,2,3]"},
        {"[2,3]", "[18446744073709551616,3]"},
        {"[0,48]", "[8,56]"},
        {"[0,48]", "[48,0]"},
        {"[0,48]", "[0,48,96]"},
        {"[120,136]", "[112,128]"},
        {R"("layers.1.bias")", R"("layers.1.weight")"},
        {R"("layers.1.bias")", R"("layers.2.bias")"},
        {R"("layers.0.weight":{"dtype":"F64")", R"("layers.0.weight":{"dtype":"I64")"},
        {R"("dtype":"F64","shape":[2,3])", R"("dtype":"F32","shape":[4,3])"},
        {R"("dtype":"F64","shape":[2,3])", R"("dtype":"F64","dtype":"F64","shape":[2,3])"},
        {R"("dtype":"F64","shape":[2,3])", R"("dtype":"F64")"},
        {R"("dtype":"F64","shape":[2,3])", R"("dtype":"F64","shape":[2,3],"more":1)"},
        {R"({"__metadata__")", R"({"__metadata__":{},"__metadata__")"},
        {R"("format")", R"("version":"1","format")"},
    };
    for (const auto& [what, by] : changes) {
        const bool was = refused(file_of(replaced(good_header, what, by), good_values()));
        if (!was) std::printf("taken: %s for %s\n", by, what);
        CHECK(was);
    }
    CHECK(refused(file_of(good_header + "x", good_values())));
    for (const double wrong : {NAN, INFINITY}) {
        std::vector<double> values = good_values();
        values[16] = wrong;
        CHECK(refused(file_of(good_header, values)));
    }
    Bytes huge = good_file();
    std::memset(huge.data(), 0xff, 8);
    CHECK(refused(huge));
}

void wrong_limits_are_refused() {
    CHECK(!refused(limited_file({-1, 0, 0.5, 0})));
    CHECK(refused(limited_file({NAN, 0, 0.5, 2})));
    CHECK(refused(limited_file({-1, 0, 0.5, NAN})));
    CHECK(refused(limited_file({1, 0, 0.5, 2})));
    CHECK(refused(limited_file({INFINITY, 0, INFINITY, 2})));
    CHECK(refused(limited_file({-INFINITY, 0, -INFINITY, 2})));
    CHECK(refused(limited_file({-1, 0, 0.5, 2}, "[4]")));
    CHECK(refused(limited_file({-1, 0, 0.5, 2}, "[1,4]")));
    CHECK(refused(limited_file({-1, 0, 0.5, 2}, "[4,1]")));
    CHECK(refused(limited_file({-1, 0, 0, 0.5, 2, 2}, "[2,3]")));
    CHECK(refused(limited_file({}, "[2,0]")));
    const double weights[] = {1.0, 2.0};
    const bpls::Layer layers[] = {{bpls::row_major(weights, 2, 1), {}}};
    const auto made = [&](std::vector<double> lower, std::vector<double> upper) {
        return bpls::Network(layers, true, {}, {}, {std::move(lower), std::move(upper)});
    };
    CHECK(made({0}, {1}).input_limits().upper[0] == 1);
    CHECK(throws<std::invalid_argument>([&] { made({0}, {}); }));
    CHECK(throws<std::invalid_argument>([&] { made({}, {0}); }));
    CHECK(throws<std::invalid_argument>([&] { made({0, 0}, {1, 1}); }));
    CHECK(throws<std::invalid_argument>([&] { made({2}, {1}); }));
}

// Slow tools ask for fewer.
int mutations() {
    const char* asked = std::getenv("BPLS_TEST_MUTATIONS");
    return asked ? std::atoi(asked) : 100'000;
}

// Whatever the bytes are: InvalidFile or a network that predicts.
void mutated_files_are_refused_or_valid() {
    const Bytes whole = good_file();
    std::mt19937 random(7);
    int valid = 0;
    for (int round = 0; round < mutations(); ++round) {
        Bytes file = whole;
        for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
            const auto place = static_cast<std::ptrdiff_t>(random() % file.size());
            const auto byte = static_cast<unsigned char>(random());
            const auto other = static_cast<std::ptrdiff_t>(random() % whole.size());
            const auto length = std::min(static_cast<std::ptrdiff_t>(1 + random() % 8),
                                         static_cast<std::ptrdiff_t>(whole.size()) - other);
            switch (random() % 4) {
                case 0:
                    file[static_cast<std::size_t>(place)] = byte;
                    break;
                case 1:
                    file[static_cast<std::size_t>(place)] ^=
                        static_cast<unsigned char>(1u << (byte & 7));
                    break;
                case 2:
                    file.insert(file.begin() + place, whole.begin() + other,
                                whole.begin() + other + length);
                    break;
                default:
                    file.erase(file.begin() + place,
                               std::min(file.begin() + place + length, file.end()));
            }
            if (file.empty()) break;
        }
        try {
            const bpls::Network network = parsed(file);
            bpls::Predictor<double> predictor(network);
            const std::vector<double> x(predictor.inputs(), 0.5);
            std::vector<double> out(predictor.outputs());
            predictor.predict(x.data(), out.data());
            ++valid;
        } catch (const bpls::InvalidFile&) {      // NOLINT(bugprone-empty-catch)
        } catch (const std::invalid_argument&) {  // NOLINT(bugprone-empty-catch)
            // Weights that overflow with their scale.
        }
    }
    CHECK(valid > 0 && valid < mutations());
}

void a_file_on_disk_is_read() {
    const auto path = std::filesystem::temp_directory_path() /
                      ("bpls_test_network_" + std::to_string(std::random_device()()));
    const std::string name = path.string();
    const Bytes whole = good_file();
    const auto write = [&](std::size_t size) {
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(whole.data()), static_cast<std::streamsize>(size));
    };
    write(whole.size());
    CHECK(bpls::Network::load(name.c_str()).outputs() == 2);
    write(whole.size() - 1);
    CHECK(throws<bpls::InvalidFile>([&] { bpls::Network::load(name.c_str()); }));
    write(0);
    CHECK(throws<bpls::InvalidFile>([&] { bpls::Network::load(name.c_str()); }));
    std::filesystem::remove(path);
    CHECK(throws<std::system_error>([&] { bpls::Network::load(name.c_str()); }));
    CHECK(throws<std::system_error>([&] { bpls::Network::load("."); }));
}

void weights_that_do_not_fit_are_refused() {
    const std::vector<double> values(12, 1.0);
    const auto made = [&](std::size_t rows, std::size_t cols, std::optional<double> scale = {},
                          std::vector<std::string> labels = {}) {
        const bpls::Layer layers[] = {{bpls::row_major(values.data(), 3, 2), {}},
                                      {bpls::row_major(values.data(), rows, cols), {}}};
        return bpls::Network(layers, true, scale, std::move(labels));
    };
    CHECK(made(3, 4).outputs() == 4);
    CHECK(throws<std::invalid_argument>([&] { made(2, 4); }));
    CHECK(throws<std::invalid_argument>([&] { made(3, 0); }));
    CHECK(throws<std::invalid_argument>([&] { made(3, 4, 0.0); }));
    CHECK(throws<std::invalid_argument>([&] { made(3, 4, NAN); }));
    CHECK(throws<std::invalid_argument>([&] { made(3, 2, {}, {"one"}); }));
    CHECK(throws<std::invalid_argument>([&] { bpls::Network(std::span<const bpls::Layer>()); }));
}

void weights_that_are_not_finite_have_their_own_error() {
    for (const double value : {NAN, INFINITY, -INFINITY}) {
        const double weights[] = {1.0, value};
        const bpls::Layer layers[] = {{bpls::row_major(weights, 2, 1), {}}};
        CHECK(throws<bpls::NonFiniteError>([&] { bpls::Network(layers, true); }));
        CHECK(throws<std::invalid_argument>([&] { bpls::Network(layers, true); }));
    }
}

}  // namespace

int main() {
    return run_tests([] {
        a_file_gives_the_network_it_holds();
        biases_scale_and_labels_may_be_missing();
        limits_of_the_inputs_are_read();
        wrong_limits_are_refused();
        a_file_cut_anywhere_is_refused();
        what_the_format_forbids_is_refused();
        mutated_files_are_refused_or_valid();
        a_file_on_disk_is_read();
        weights_that_do_not_fit_are_refused();
        weights_that_are_not_finite_have_their_own_error();
    });
}
