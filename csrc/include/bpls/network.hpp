// A trained network: its layers, and the file it comes from. A Predictor made of it predicts row after row.
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

// A file that holds no network of ours, or a damaged one.
class BPLS_API InvalidFile : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

// One layer's weights, (inputs + bias) x neurons, float32 or float64: with a bias their last row belongs to it.
struct Layer {
    ConstMatrix weights;
    Activation activation = Activation::identity;
};

// Immutable: any number of threads may read one.
class BPLS_API Network {
 public:
    // Copies the weights. `input_scale` is what every input is multiplied by on its way into the first layer; where there
    // is none it is 1/255 for bytes and 1 for floats. `labels`, if any, name the outputs. Throws std::invalid_argument
    // where there is no layer, where shapes do not follow one another, and where a number is not finite or the scale is 0.
    explicit Network(std::span<const Layer> layers, bool bias = true,
                     std::optional<double> input_scale = {}, std::vector<std::string> labels = {});

    // Reads a safetensors file that `Network.to_safetensors` of the Python package wrote. The file is mapped while it is
    // read and not touched afterwards. Throws std::system_error where it cannot be opened and InvalidFile where it is not
    // exactly what the format asks for. Memory is taken for what the file holds, never for what its header says it holds.
    static Network load(const char* path);
    // The same of a file's bytes.
    static Network parse(std::span<const unsigned char> file);

    // The outputs of rows of any layout and type, rows x outputs, row major, of type T: float of uint8 and float32 rows,
    // double of float64 ones; the other of the two, and another number of columns than inputs(), throw
    // std::invalid_argument. On several threads if there are many rows (n_threads 0: default_threads()). Returns what
    // Predictor::predict does. The weights are packed anew by every call; a Predictor does that once.
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
    // One for each output, or none at all: text as it is, numbers as they were written.
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
};

}  // namespace bpls
