// The network: the checks of its constructor, and how it is read from a safetensors file.
#include "bpls/network.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <locale>
#include <sstream>
#include <string_view>

#include "bpls/errors.hpp"
#include "core/mapped_file.hpp"
#include "core/safetensors.hpp"

namespace bpls {
namespace {

std::string shape_of(std::size_t rows, std::size_t cols) {
    return "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
}

// ---- reading a file

const std::string& metadata(const TensorFile& file, const std::string& key) {
    const auto found = file.metadata.find(key);
    if (found == file.metadata.end())
        throw InvalidFile("the file is not a bpls_fast network: its metadata has no key " + key);
    return found->second;
}

std::vector<Activation> activations_in(const std::string& names) {
    std::vector<Activation> found;
    std::istringstream all(names);
    for (std::string name; std::getline(all, name, ',');) {
        const ActivationInfo* info = find_activation(name);
        if (!info) throw InvalidFile("the file has the unknown activation '" + name + "'");
        found.push_back(info->activation);
    }
    if (found.empty() || names.back() == ',')
        throw InvalidFile("the file has a layer without an activation");
    return found;
}

std::optional<double> scale_in(const std::string& text) {
    if (text.empty()) return {};
    std::istringstream stream(text);
    stream.imbue(std::locale::classic());
    double scale = 0;
    if (!(stream >> std::noskipws >> scale) || stream.peek() != std::char_traits<char>::eof())
        throw InvalidFile("the file has the input_scale '" + text + "'; expected a number");
    return scale;
}

const Tensor& tensor_in(const TensorFile& file, const std::string& name, std::size_t dimensions) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) throw InvalidFile("the file has no tensor " + name);
    const Tensor& tensor = found->second;
    if (tensor.dtype != "F64" || tensor.shape.size() != dimensions)
        throw InvalidFile("the tensor " + name + " has dtype " + tensor.dtype + " and " +
                          std::to_string(tensor.shape.size()) + " dimensions; expected F64 and " +
                          std::to_string(dimensions));
    return tensor;
}

void check_limits(const InputLimits& limits, std::size_t inputs) {
    if (limits.lower.empty() && limits.upper.empty()) return;
    if (limits.lower.size() != inputs || limits.upper.size() != inputs)
        throw std::invalid_argument("input_limits has " + std::to_string(limits.lower.size()) +
                                    " lower and " + std::to_string(limits.upper.size()) +
                                    " upper ones; expected " + std::to_string(inputs) +
                                    " each, one for each input");
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < inputs; ++j) {
        const double lower = limits.lower[j], upper = limits.upper[j];
        // False for NaN as well.
        if (lower <= upper && lower < infinity && upper > -infinity) continue;
        throw std::invalid_argument("input_limits of input " + std::to_string(j) + " are " +
                                    std::to_string(lower) + " and " + std::to_string(upper) +
                                    "; expected numbers, lower <= upper");
    }
}

// Appends the numbers of a tensor, which need not be aligned in the file.
void append(const Tensor& tensor, std::vector<double>& to) {
    static_assert(std::endian::native == std::endian::little, "the file is little-endian");
    const std::size_t before = to.size();
    to.resize(before + tensor.data.size() / sizeof(double));
    if (!tensor.data.empty())
        std::memcpy(to.data() + before, tensor.data.data(), tensor.data.size());
}

}  // namespace

Network::Network(std::span<const Layer> layers, bool bias, std::optional<double> input_scale,
                 std::vector<std::string> labels, InputLimits input_limits)
    : bias_(bias),
      input_scale_(input_scale),
      labels_(std::move(labels)),
      input_limits_(std::move(input_limits)) {
    if (layers.empty()) throw std::invalid_argument("layers is empty; expected at least one");
    if (input_scale && (!std::isfinite(*input_scale) || *input_scale == 0))
        throw std::invalid_argument("input_scale is " + std::to_string(*input_scale) +
                                    "; expected a finite number other than 0");
    const std::size_t of_bias = bias ? 1 : 0;
    layers_.reserve(layers.size());
    for (const auto& [W, activation] : layers) {
        const std::string name = "weights[" + std::to_string(layers_.size()) + "]";
        if (!is_float(W.dtype))
            throw std::invalid_argument(name + " is uint8; expected float32 or float64");
        if (W.rows <= of_bias || W.cols == 0 ||
            (!layers_.empty() && W.rows != layers_.back().cols + of_bias))
            throw std::invalid_argument(
                name + " has shape " + shape_of(W.rows, W.cols) +
                (layers_.empty() ? "; expected at least one input and one neuron"
                                 : "; expected one row for each neuron of the previous layer" +
                                       std::string(bias ? ", and one for the bias" : "")));
        Stored stored{W.rows, W.cols, activation, {}};
        stored.values.reserve(W.rows * W.cols);
        for (std::size_t i = 0; i < W.rows; ++i)
            for (std::size_t j = 0; j < W.cols; ++j) {
                stored.values.push_back(value_at(W, i, j));
                if (!std::isfinite(stored.values.back()))
                    throw NonFiniteError(name + " holds NaN or infinity; expected finite values");
            }
        layers_.push_back(std::move(stored));
    }
    if (!labels_.empty() && labels_.size() != outputs())
        throw std::invalid_argument("labels has " + std::to_string(labels_.size()) +
                                    " items; expected " + std::to_string(outputs()) +
                                    ", one for each output");
    check_limits(input_limits_, inputs());
}

Network Network::load(const char* path) {
    const MappedFile file(path);
    try {
        return parse(file.bytes());
    } catch (const InvalidFile& error) {
        throw InvalidFile(std::string(path) + ": " + error.what());
    }
}

Network Network::parse(std::span<const unsigned char> bytes) {
    const TensorFile file = read_safetensors(bytes);
    if (metadata(file, "format") != "bpls_fast.network")
        throw InvalidFile("the file is not a bpls_fast network: its format is '" +
                          metadata(file, "format") + "'");
    if (metadata(file, "version") != "1")
        throw InvalidFile("the file has version '" + metadata(file, "version") +
                          "' of the format; this library reads version 1");
    const std::vector<Activation> activations = activations_in(metadata(file, "activations"));
    const std::optional<double> input_scale = scale_in(metadata(file, "input_scale"));
    const std::string& classes = metadata(file, "classes");
    std::vector<std::string> labels;
    if (!classes.empty()) labels = read_labels(classes);

    const bool bias = file.tensors.contains("layers.0.bias");
    const bool limited = file.tensors.contains("input_limits");
    if (file.tensors.size() != activations.size() * (bias ? 2 : 1) + (limited ? 1 : 0))
        throw InvalidFile("the file has " + std::to_string(file.tensors.size()) +
                          " tensors; expected weights" + (bias ? " and a bias" : "") + " for " +
                          std::to_string(activations.size()) + " layers" +
                          (limited ? ", and input_limits" : ""));
    std::vector<std::vector<double>> values(activations.size());
    std::vector<Layer> layers;
    for (std::size_t l = 0; l < activations.size(); ++l) {
        const std::string name = "layers." + std::to_string(l);
        const Tensor& weight = tensor_in(file, name + ".weight", 2);
        append(weight, values[l]);
        if (bias) {
            const Tensor& of_bias = tensor_in(file, name + ".bias", 1);
            if (of_bias.shape[0] != weight.shape[1])
                throw InvalidFile("the tensor " + name + ".bias has " +
                                  std::to_string(of_bias.shape[0]) + " values; expected " +
                                  std::to_string(weight.shape[1]));
            append(of_bias, values[l]);
        }
        const std::size_t rows = weight.shape[0] + (bias ? 1 : 0);
        layers.push_back({row_major(values[l].data(), rows, weight.shape[1]), activations[l]});
    }
    InputLimits limits;
    if (limited) {
        const Tensor& both = tensor_in(file, "input_limits", 2);
        if (both.shape[0] != 2 || both.shape[1] == 0)
            throw InvalidFile("the tensor input_limits has shape " +
                              shape_of(both.shape[0], both.shape[1]) + "; expected (2, inputs)");
        append(both, limits.lower);
        const auto middle = limits.lower.begin() + static_cast<std::ptrdiff_t>(both.shape[1]);
        limits.upper.assign(middle, limits.lower.end());
        limits.lower.erase(middle, limits.lower.end());
    }
    try {
        return Network(layers, bias, input_scale, std::move(labels), std::move(limits));
    } catch (const std::invalid_argument& error) {
        throw InvalidFile(std::string("the file does not hold a valid network: ") + error.what());
    }
}

}  // namespace bpls
