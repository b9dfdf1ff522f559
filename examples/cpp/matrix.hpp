// A row-major matrix of doubles: how to read it from a CSV file, and its view for the library.
#pragma once

#include <bpls/matrix.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Matrix {
    std::size_t rows = 0, cols = 0;
    std::vector<double> values;

    double& at(std::size_t i, std::size_t j) { return values[i * cols + j]; }
    double at(std::size_t i, std::size_t j) const { return values[i * cols + j]; }
};

inline Matrix zeros(std::size_t rows, std::size_t cols) {
    return {rows, cols, std::vector<double>(rows * cols)};
}

inline bpls::ConstMatrix view(const Matrix& m) {
    return bpls::row_major(m.values.data(), m.rows, m.cols);
}

inline Matrix read_csv(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    Matrix table;
    for (std::string line; std::getline(file, line); ++table.rows) {
        std::istringstream cells(line);
        std::size_t cols = 0;
        for (std::string cell; std::getline(cells, cell, ','); ++cols)
            table.values.push_back(std::stod(cell));
        if (table.rows > 0 && cols != table.cols)
            throw std::runtime_error(path + " has rows of different lengths");
        table.cols = cols;
    }
    return table;
}
