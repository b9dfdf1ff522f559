// predict net.safetensors rows.csv: print the outputs of a network for every row, and the label if it has labels. Python
// wrote the network with to_safetensors.
#include <bpls/bpls.hpp>
#include <cstdio>
#include <exception>

#include "matrix.hpp"

namespace {

void run(const char* path, const char* data) {
    const bpls::Network network = bpls::Network::load(path);
    const Matrix rows = read_csv(data);
    if (rows.cols != network.inputs())
        throw std::runtime_error("the rows do not match the inputs of the network");

    bpls::Predictor<double> predictor(network);  // packs the weights; predict does not allocate
    std::vector<double> outputs(predictor.outputs());
    for (std::size_t i = 0; i < rows.rows; ++i) {
        const double* row = rows.values.data() + i * rows.cols;
        if (!predictor.predict(row, outputs.data()))
            throw std::runtime_error("row " + std::to_string(i) + " is not finite");
        for (const double value : outputs) std::printf("%.17g,", value);
        if (network.labels().empty())
            std::printf("\n");
        else
            std::printf("%s\n",
                        network.labels()[static_cast<std::size_t>(predictor.decide(row))].c_str());
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return std::fprintf(stderr, "usage: predict net.safetensors rows.csv\n"), 2;
    try {
        run(arguments[1], arguments[2]);
        return 0;
    } catch (const std::exception& error) {
        return std::fprintf(stderr, "%s\n", error.what()), 1;
    }
}
