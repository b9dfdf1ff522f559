// The steps after the sums are complete: centring, the bias, scaling, the lower triangle. All of it is float64 over n²
// values; the time is negligible next to the products.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "bpls/matrix.hpp"

namespace bpls::gram_detail {

// G, whose upper triangle is computed, and C with the column sums of A and of B. `stride` is n, or n + 1 with a bias.
struct GramSums {
    double* G;
    std::size_t n;
    std::size_t stride;
    double* C;
    std::size_t m;
    double* sums_of_A;
    double* sums_of_B;
    double total_weight;
};

// The sum of the row weights, as a product in float32 (`narrow`) or float64 rounds them.
double total_weight(const std::optional<ConstMatrix>& weight, std::size_t rows, bool narrow);

// Subtracts the weighted means of the columns of A from what they were multiplied with; the sums of A's columns become 0.
void centre(const GramSums& sums) noexcept;

// Writes what a last column of ones adds: row n of C, and column n of G.
void append_bias(const GramSums& sums) noexcept;

void scale_row(double factor, double* row, std::size_t count) noexcept;

// Multiplies row i of G and C, and column i of G, by factor i.
void scale_columns_of_A(const GramSums& sums, std::span<const double> scale) noexcept;

// Sets all values to zero. Many are cleared by all threads: their pages are new.
void clear(double* values, std::size_t count, int n_threads);

// Copies the upper triangle of an n x n matrix to the lower one.
void mirror(double* G, std::size_t n, int n_threads);

}  // namespace bpls::gram_detail
