// The C functions: they call the C++ ones and turn exceptions into a status and a message.
#include <array>
#include <cstdio>
#include <memory>
#include <new>
#include <system_error>
#include <variant>

#include "bpls/bpls.h"
#include "bpls/bpls.hpp"

struct bpls_network {
    bpls::Network network;
};

struct bpls_predictor {
    bpls::EachElement<std::variant, bpls::Predictor> of;
};

namespace bpls {
namespace {

// Of fixed size, so that even a lack of memory can be reported.
constexpr std::size_t error_room = 512;
thread_local std::array<char, error_room> last_error{};

bpls_status fail(bpls_status status, const char* message) noexcept {
    std::snprintf(last_error.data(), last_error.size(), "%s", message);
    return status;
}

// Runs call() and turns what it throws into a status.
template <class F>
bpls_status guarded(F&& call) noexcept {
    try {
        call();
        return BPLS_OK;
    } catch (const InvalidFile& error) {
        return fail(BPLS_INVALID_FILE, error.what());
    } catch (const NotPositiveDefinite& error) {
        return fail(BPLS_NOT_POSITIVE_DEFINITE, error.what());
    } catch (const std::invalid_argument& error) {
        return fail(BPLS_INVALID_ARGUMENT, error.what());
    } catch (const std::system_error& error) {
        return fail(BPLS_CANNOT_READ, error.what());
    } catch (const std::bad_alloc&) {
        return fail(BPLS_OUT_OF_MEMORY, "there is not enough memory");
    } catch (const std::length_error&) {
        return fail(BPLS_OUT_OF_MEMORY, "there is not enough memory");
    } catch (const std::exception& error) {
        return fail(BPLS_FAILED, error.what());
    } catch (...) {
        return fail(BPLS_FAILED, "an unknown error");
    }
}

template <class T>
T& required(T* pointer, const char* name) {
    if (!pointer) throw std::invalid_argument(std::string(name) + " is NULL");
    return *pointer;
}

ConstMatrix view(const bpls_matrix* matrix, const char* name) {
    const bpls_matrix& m = required(matrix, name);
    if (m.dtype < 0 || m.dtype >= dtype_count)
        throw std::invalid_argument(std::string(name) + " has the dtype " +
                                    std::to_string(m.dtype) + "; expected a bpls_dtype");
    if (!m.data && m.rows != 0 && m.cols != 0)
        throw std::invalid_argument(std::string(name) + " has data NULL; expected its elements");
    return {static_cast<const unsigned char*>(m.data),
            static_cast<DType>(m.dtype),
            m.rows,
            m.cols,
            m.row_stride,
            m.col_stride};
}

Activation activation_of(int number) {
    if (number < 0 || number >= activation_count)
        throw std::invalid_argument("activation is " + std::to_string(number) +
                                    "; expected a bpls_activation");
    return static_cast<Activation>(number);
}

GramOptions gram_options(int bias, int n_threads) {
    GramOptions options;
    options.bias = bias != 0;
    options.n_threads = n_threads;
    return options;
}

bpls_status fail_not_finite() noexcept {
    return fail(BPLS_NOT_FINITE, "a row has NaN or infinity, or a product overflowed");
}

template <class In>
bpls_status predict(bpls_predictor* predictor, const In* rows, std::size_t count,
                    typename Predictor<In>::Out* outputs) noexcept {
    if (!predictor) return fail(BPLS_INVALID_ARGUMENT, "predictor is NULL");
    auto* of = std::get_if<Predictor<In>>(&predictor->of);
    if (!of)
        return fail(BPLS_INVALID_ARGUMENT,
                    "rows has another type; expected the one that the predictor is for");
    if (count != 0 && (!rows || !outputs))
        return fail(BPLS_INVALID_ARGUMENT, "rows or outputs is NULL");
    if (of->predict(rows, count, of->inputs(), outputs)) return BPLS_OK;
    return fail_not_finite();
}

}  // namespace
}  // namespace bpls

using namespace bpls;

int bpls_abi_version(void) { return BPLS_ABI_VERSION; }
const char* bpls_version(void) { return version(); }
const char* bpls_last_error(void) { return last_error.data(); }

const char* bpls_isa(void) {
    const char* name = nullptr;
    guarded([&] { name = active_level().name; });
    return name;
}

int bpls_get_num_threads(void) {
    int threads = 1;
    guarded([&] { threads = default_threads(); });
    return threads;
}

bpls_status bpls_set_num_threads(int n_threads) {
    return guarded([=] { set_default_threads(n_threads); });
}

bpls_status bpls_network_load(const char* path, bpls_network** network) {
    return guarded([=] {
        required(path, "path");
        bpls_network*& made = required(network, "network");
        made = new bpls_network{Network::load(path)};
    });
}

bpls_status bpls_network_parse(const void* file, size_t size, bpls_network** network) {
    return guarded([=] {
        if (size != 0 && !file) throw std::invalid_argument("file is NULL");
        bpls_network*& made = required(network, "network");
        made = new bpls_network{Network::parse({static_cast<const unsigned char*>(file), size})};
    });
}

void bpls_network_free(bpls_network* network) { delete network; }
size_t bpls_network_inputs(const bpls_network* network) {
    return network ? network->network.inputs() : 0;
}
size_t bpls_network_outputs(const bpls_network* network) {
    return network ? network->network.outputs() : 0;
}

const char* bpls_network_label(const bpls_network* network, size_t output) {
    if (!network || output >= network->network.labels().size()) return nullptr;
    return network->network.labels()[output].c_str();
}

bpls_status bpls_predictor_new(const bpls_network* network, int rows, bpls_predictor** predictor) {
    return guarded([=] {
        const Network& of = required(network, "network").network;
        bpls_predictor*& made = required(predictor, "predictor");
        if (rows < 0 || rows >= dtype_count)
            throw std::invalid_argument("rows is " + std::to_string(rows) +
                                        "; expected a bpls_dtype");
        made = visit_dtype(static_cast<DType>(rows),
                           [&]<class T>() { return new bpls_predictor{Predictor<T>(of)}; });
    });
}

bpls_status bpls_predictor_copy(const bpls_predictor* predictor, bpls_predictor** copy) {
    return guarded([=] {
        bpls_predictor*& made = required(copy, "copy");
        made = new bpls_predictor(required(predictor, "predictor"));
    });
}

void bpls_predictor_free(bpls_predictor* predictor) { delete predictor; }

bpls_status bpls_predict_u8(bpls_predictor* predictor, const uint8_t* rows, size_t count,
                            float* outputs) {
    return predict(predictor, rows, count, outputs);
}
bpls_status bpls_predict_f32(bpls_predictor* predictor, const float* rows, size_t count,
                             float* outputs) {
    return predict(predictor, rows, count, outputs);
}
bpls_status bpls_predict_f64(bpls_predictor* predictor, const double* rows, size_t count,
                             double* outputs) {
    return predict(predictor, rows, count, outputs);
}

bpls_status bpls_predict_matrix(const bpls_predictor* predictor, const bpls_matrix* rows,
                                int n_threads, void* outputs) {
    bool finite = true;
    const bpls_status status = guarded([&] {
        const ConstMatrix X = view(rows, "rows");
        if (X.rows != 0 && !outputs) throw std::invalid_argument("outputs is NULL");
        std::visit(
            [&]<class In>(const Predictor<In>& of) {
                finite =
                    of.predict(X, static_cast<typename Predictor<In>::Out*>(outputs), n_threads);
            },
            required(predictor, "predictor").of);
    });
    if (status != BPLS_OK || finite) return status;
    return fail_not_finite();
}

bpls_status bpls_gram(const bpls_matrix* A, const bpls_matrix* B, int bias,
                      const bpls_matrix* weights, int n_threads, double* G, double* C) {
    return guarded([=] {
        GramOptions options = gram_options(bias, n_threads);
        if (weights) options.sample_weight = view(weights, "weights");
        required(G, "G");
        std::optional<ConstMatrix> right;
        if (B) {
            right = view(B, "B");
            required(C, "C");
        }
        gram(view(A, "A"), right, options, G, C);
    });
}

bpls_status bpls_cross(const bpls_matrix* A, const bpls_matrix* D, int bias, int n_threads,
                       double* C) {
    return guarded([=] {
        cross(view(A, "A"), view(D, "D"), gram_options(bias, n_threads), &required(C, "C"));
    });
}

bpls_status bpls_solve(const bpls_matrix* G, const bpls_matrix* C, double eps, int relative,
                       int n_threads, double* W) {
    return guarded([=] {
        solve(view(G, "G"), view(C, "C"), {eps, relative != 0}, &required(W, "W"), n_threads);
    });
}

bpls_status bpls_solve_layer(const bpls_matrix* A, const bpls_matrix* B, int bias, double eps,
                             int relative, int n_threads, double* W) {
    return guarded([=] {
        solve_layer(view(A, "A"), view(B, "B"), gram_options(bias, n_threads), {eps, relative != 0},
                    &required(W, "W"));
    });
}

bpls_status bpls_solve_batched(const bpls_matrix* G, ptrdiff_t G_stride, const bpls_matrix* C,
                               ptrdiff_t C_stride, size_t count, double eps, int relative,
                               int n_threads, double* W) {
    return guarded([=] {
        solve_batched(view(G, "G"), G_stride, view(C, "C"), C_stride, count, {eps, relative != 0},
                      &required(W, "W"), n_threads);
    });
}

bpls_status bpls_linear(const bpls_matrix* A, const bpls_matrix* W, int bias, int activation,
                        int n_threads, void* out) {
    return guarded([=] {
        const ConstMatrix left = view(A, "A"), right = view(W, "W");
        const LinearOptions options{bias != 0, activation_of(activation), n_threads};
        required(static_cast<char*>(out), "out");
        if (fits_float(left.dtype) && right.dtype == DType::f32)
            linear(left, right, options, static_cast<float*>(out));
        else
            linear(left, right, options, static_cast<double*>(out));
    });
}

bpls_status bpls_forward(int activation, const double* in, size_t rows, size_t cols, double* out) {
    return guarded([=] {
        forward(activation_of(activation), &required(in, "in"), &required(out, "out"), rows, cols);
    });
}

bpls_status bpls_inverse(int activation, const double* in, size_t rows, size_t cols, double margin,
                         double* out) {
    return guarded([=] {
        inverse(activation_of(activation), &required(in, "in"), &required(out, "out"), rows, cols,
                margin);
    });
}
