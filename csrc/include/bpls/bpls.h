/* The library for C, and for every language that can call C. Symbols are stable: a function keeps its meaning for as long
 * as bpls_abi_version() gives the number this header has. Functions that can fail return a status and change nothing that
 * they were given where they do; bpls_last_error() then has the sentence. Handles are opaque; every *_new and *_load has
 * its *_free, which takes NULL. The C++ header bpls/bpls.hpp says more about what each function computes. */
#ifndef BPLS_BPLS_H
#define BPLS_BPLS_H

#include <stddef.h>
#include <stdint.h>

#include "bpls/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BPLS_ABI_VERSION 1

typedef enum bpls_status {
    BPLS_OK = 0,
    BPLS_INVALID_ARGUMENT = 1,
    BPLS_CANNOT_READ = 2,  /* the file cannot be opened */
    BPLS_INVALID_FILE = 3, /* the file holds no network, or a damaged one */
    BPLS_OUT_OF_MEMORY = 4,
    BPLS_NOT_POSITIVE_DEFINITE = 5, /* raise eps */
    BPLS_NOT_FINITE = 6, /* NaN or infinity on the way; outputs are those of IEEE arithmetic */
    BPLS_FAILED = 7      /* anything else */
} bpls_status;

typedef enum bpls_dtype { BPLS_U8 = 0, BPLS_F32 = 1, BPLS_F64 = 2 } bpls_dtype;

typedef enum bpls_activation {
    BPLS_IDENTITY = 0,
    BPLS_SIGMOID = 1,
    BPLS_TANH = 2,
    BPLS_RELU = 3,
    BPLS_LEAKY_RELU = 4,
    BPLS_ELU = 5,
    BPLS_SOFTMAX = 6,
    BPLS_SOFTPLUS = 7,
    BPLS_SOFTMINUS = 8
} bpls_activation;

/* Functions take both as int, so that a number that is none of these can be refused. */

/* A matrix that the caller owns. Strides are in bytes and may be any number. */
typedef struct bpls_matrix {
    const void* data;
    int32_t dtype; /* a bpls_dtype */
    size_t rows, cols;
    ptrdiff_t row_stride, col_stride;
} bpls_matrix;

/* ---- the library */

BPLS_API int bpls_abi_version(void);
BPLS_API const char* bpls_version(void);
/* The instruction set in use; NULL where BPLS_ISA or BPLS_NUM_THREADS cannot be honoured. */
BPLS_API const char* bpls_isa(void);
/* Why the last call of this thread failed; "" where none did. It stays until the thread's next failure. */
BPLS_API const char* bpls_last_error(void);
/* Threads of calls that are given n_threads 0. Setting 0 takes back what was set. */
BPLS_API int bpls_get_num_threads(void);
BPLS_API bpls_status bpls_set_num_threads(int n_threads);

/* ---- prediction */

typedef struct bpls_network bpls_network; /* immutable; any number of threads may use one */
typedef struct bpls_predictor
    bpls_predictor; /* for one thread at a time; it does not need its network any more */

BPLS_API bpls_status bpls_network_load(const char* path, bpls_network** network);
/* The same of `size` bytes in memory. */
BPLS_API bpls_status bpls_network_parse(const void* file, size_t size, bpls_network** network);
BPLS_API void bpls_network_free(bpls_network* network);
/* 0 of NULL. */
BPLS_API size_t bpls_network_inputs(const bpls_network* network);
BPLS_API size_t bpls_network_outputs(const bpls_network* network);
/* The label of an output; NULL where there is none. It lives as long as the network. */
BPLS_API const char* bpls_network_label(const bpls_network* network, size_t output);

/* For rows of one bpls_dtype. Rows of bytes and floats give floats, rows of doubles give doubles. */
BPLS_API bpls_status bpls_predictor_new(const bpls_network* network, int rows,
                                        bpls_predictor** predictor);
/* For another thread: it shares the weights. */
BPLS_API bpls_status bpls_predictor_copy(const bpls_predictor* predictor, bpls_predictor** copy);
BPLS_API void bpls_predictor_free(bpls_predictor* predictor);

/* The outputs of rows that lie one after another. No allocation, no lock, no other thread. BPLS_INVALID_ARGUMENT where the
 * predictor was made for rows of another type. */
BPLS_API bpls_status bpls_predict_u8(bpls_predictor* predictor, const uint8_t* rows, size_t count,
                                     float* outputs);
BPLS_API bpls_status bpls_predict_f32(bpls_predictor* predictor, const float* rows, size_t count,
                                      float* outputs);
BPLS_API bpls_status bpls_predict_f64(bpls_predictor* predictor, const double* rows, size_t count,
                                      double* outputs);
/* The same of rows in any layout, on several threads; `outputs` are floats or doubles. */
BPLS_API bpls_status bpls_predict_matrix(const bpls_predictor* predictor, const bpls_matrix* rows,
                                         int n_threads, void* outputs);

/* ---- kernels: results are row major; n_threads 0 stands for bpls_get_num_threads() */

/* G = AᵀA and, where B is not NULL, C = AᵀB; with a bias A has a last column of ones. `weights`, a column, may be NULL. */
BPLS_API bpls_status bpls_gram(const bpls_matrix* A, const bpls_matrix* B, int bias,
                               const bpls_matrix* weights, int n_threads, double* G, double* C);
/* C = AᵀD */
BPLS_API bpls_status bpls_cross(const bpls_matrix* A, const bpls_matrix* D, int bias, int n_threads,
                                double* C);
/* W = (G + ridge)⁻¹ C, where the ridge is eps, or eps times the mean of G's diagonal. */
BPLS_API bpls_status bpls_solve(const bpls_matrix* G, const bpls_matrix* C, double eps,
                                int relative, int n_threads, double* W);
/* The two above: the weights W, (A.cols + bias) x B.cols, with A W nearest to B. */
BPLS_API bpls_status bpls_solve_layer(const bpls_matrix* A, const bpls_matrix* B, int bias,
                                      double eps, int relative, int n_threads, double* W);
/* `count` systems of one size; G and C are the first ones, the others follow at these strides, in bytes. */
BPLS_API bpls_status bpls_solve_batched(const bpls_matrix* G, ptrdiff_t G_stride,
                                        const bpls_matrix* C, ptrdiff_t C_stride, size_t count,
                                        double eps, int relative, int n_threads, double* W);
/* act(A W + b): floats where W is float32 and A is bytes or float32, doubles otherwise. */
BPLS_API bpls_status bpls_linear(const bpls_matrix* A, const bpls_matrix* W, int bias,
                                 int activation, int n_threads, void* out);
/* Of rows x cols doubles that lie one after another; `out` may be `in`. */
BPLS_API bpls_status bpls_forward(int activation, const double* in, size_t rows, size_t cols,
                                  double* out);
/* Its inverse, of values that are first moved `margin` inside the activation's range. */
BPLS_API bpls_status bpls_inverse(int activation, const double* in, size_t rows, size_t cols,
                                  double margin, double* out);

#ifdef __cplusplus
}
#endif

#endif
