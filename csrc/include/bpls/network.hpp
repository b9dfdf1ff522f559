// A trained network: its layers, and reading it from a file. A Predictor made from it predicts row by row.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bpls/activation.hpp"
#include "bpls/export.h"
#include "bpls/matrix.hpp"

namespace bpls {

// A file holds no network of bpls_fast, or a damaged one.
class BPLS_API InvalidFile : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

// One layer's weights, (inputs + bias) x neurons, float32 or float64; their last row is the bias, if there is one.
struct Layer {
    ConstMatrix weights;
    Activation activation = Activation::identity;
};

// The range of every input: what is outside is moved to its nearer end. Either end may be infinite. Both are empty in a network
// without limits.
struct InputLimits {
    std::vector<double> lower, upper;

    bool empty() const noexcept { return lower.empty(); }
};

// Immutable: any number of threads may read one.
class BPLS_API Network {
 public:
    // Copies the weights. The first layer multiplies every input by `input_scale`; the default is 1/255 for bytes of a network
    // without limits, else 1. `labels`, if any, name the outputs. `input_limits`, if any, have two numbers for each input; they
    // apply before the scale. Throws std::invalid_argument if there is no layer, if shapes do not match, if the scale is 0, or
    // if limits are NaN or not in order; NonFiniteError if a weight is not finite.
    explicit Network(std::span<const Layer> layers, bool bias = true,
                     std::optional<double> input_scale = {}, std::vector<std::string> labels = {},
                     InputLimits input_limits = {});

    // Reads a safetensors file that `Network.to_safetensors` of the Python package wrote. The file is mapped while it is
    // read and not touched afterwards. Throws std::system_error if it cannot be opened, and InvalidFile if it is not exactly
    // what the format requires. Memory is allocated for what the file holds, never for what its header claims.
    static Network load(const char* path);
    // The same for the bytes of a file.
    static Network parse(std::span<const unsigned char> file);

    // Computes the outputs of rows of any layout and type, rows x outputs, row major. T is float for uint8 and float32 rows,
    // double for float64 rows; another T, or a number of columns other than inputs(), throws std::invalid_argument. Many rows
    // run on several threads (n_threads 0: default_threads()). Returns what Predictor::predict returns. Every call packs the
    // weights; a Predictor packs them once.
    template <class T>
    bool predict(const ConstMatrix& X, T* out, int n_threads = 0) const;

    std::size_t layers() const noexcept { return layers_.size(); }
    std::size_t inputs() const noexcept { return layers_.front().rows - (bias_ ? 1 : 0); }
    std::size_t outputs() const noexcept { return layers_.back().cols; }
    bool bias() const noexcept { return bias_; }
    Activation activation(std::size_t layer) const noexcept { return layers_[layer].activation; }
    ConstMatrix weights(std::size_t layer) const noexcept {
        const Stored& of = layers_[layer];
        return row_major(of.values.data(), of.rows, of.cols);
    }
    std::optional<double> input_scale() const noexcept { return input_scale_; }
    const InputLimits& input_limits() const noexcept { return input_limits_; }
    // One for each output, or none: text as it is, numbers as they are written in the file.
    const std::vector<std::string>& labels() const noexcept { return labels_; }

 private:
    struct Stored {
        std::size_t rows, cols;
        Activation activation;
        std::vector<double> values;
    };
    std::vector<Stored> layers_;
    bool bias_;
    std::optional<double> input_scale_;
    std::vector<std::string> labels_;
    InputLimits input_limits_;
};

}  // namespace bpls
