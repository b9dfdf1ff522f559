/* The library for C, and for every language that can call C. Symbols are stable: functions do not change while
 * bpls_abi_version() returns BPLS_ABI_VERSION. Functions that can fail return a status. On failure, except BPLS_NOT_FINITE,
 * they leave their arguments unchanged; bpls_last_error() returns the message. Handles are opaque; every *_new and *_load
 * has a *_free, which accepts NULL. The C++ header bpls/bpls.hpp describes what each function computes. */
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
    BPLS_NOT_FINITE =
        6, /* an intermediate value is NaN or infinity; outputs are those of IEEE arithmetic */
    BPLS_FAILED = 7 /* anything else */
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

/* Functions take both as int, so that they can refuse any other number. */

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
/* Returns the instruction set in use, or NULL if BPLS_ISA or BPLS_NUM_THREADS is invalid. */
BPLS_API const char* bpls_isa(void);
/* Returns why the last failed call of this thread failed, or "". It is valid until the thread's next failure. */
BPLS_API const char* bpls_last_error(void);
/* The number of threads of calls with n_threads 0. Setting 0 restores the default. */
BPLS_API int bpls_get_num_threads(void);
BPLS_API bpls_status bpls_set_num_threads(int n_threads);

/* ---- prediction */

typedef struct bpls_network bpls_network; /* immutable; any number of threads may use one */
typedef struct bpls_predictor
    bpls_predictor; /* for one thread at a time; it may outlive its network */

BPLS_API bpls_status bpls_network_load(const char* path, bpls_network** network);
/* The same for the `size` bytes of a file in memory. */
BPLS_API bpls_status bpls_network_parse(const void* file, size_t size, bpls_network** network);
BPLS_API void bpls_network_free(bpls_network* network);
/* Both return 0 for NULL. */
BPLS_API size_t bpls_network_inputs(const bpls_network* network);
BPLS_API size_t bpls_network_outputs(const bpls_network* network);
/* Returns the label of an output, or NULL if there is none. It is valid as long as the network exists. */
BPLS_API const char* bpls_network_label(const bpls_network* network, size_t output);

/* For rows of one bpls_dtype. Outputs are floats for rows of bytes and floats, doubles for rows of doubles. */
BPLS_API bpls_status bpls_predictor_new(const bpls_network* network, int rows,
                                        bpls_predictor** predictor);
/* A copy for another thread; it shares the weights. */
BPLS_API bpls_status bpls_predictor_copy(const bpls_predictor* predictor, bpls_predictor** copy);
BPLS_API void bpls_predictor_free(bpls_predictor* predictor);

/* Compute the outputs of contiguous rows, without an allocation, a lock or another thread. Return BPLS_INVALID_ARGUMENT if
 * the predictor was made for rows of another type. */
BPLS_API bpls_status bpls_predict_u8(bpls_predictor* predictor, const uint8_t* rows, size_t count,
                                     float* outputs);
BPLS_API bpls_status bpls_predict_f32(bpls_predictor* predictor, const float* rows, size_t count,
                                      float* outputs);
BPLS_API bpls_status bpls_predict_f64(bpls_predictor* predictor, const double* rows, size_t count,
                                      double* outputs);
/* The same for rows in any layout, on several threads; `outputs` are floats or doubles. */
BPLS_API bpls_status bpls_predict_matrix(const bpls_predictor* predictor, const bpls_matrix* rows,
                                         int n_threads, void* outputs);

/* ---- kernels: results are row major; n_threads 0 means bpls_get_num_threads() */

/* G = AᵀA and, if B is not NULL, C = AᵀB; with a bias, A has a last column of ones. `weights`, a column, may be NULL. */
BPLS_API bpls_status bpls_gram(const bpls_matrix* A, const bpls_matrix* B, int bias,
                               const bpls_matrix* weights, int n_threads, double* G, double* C);
/* C = AᵀD */
BPLS_API bpls_status bpls_cross(const bpls_matrix* A, const bpls_matrix* D, int bias, int n_threads,
                                double* C);
/* W = (G + ridge)⁻¹ C, where the ridge is eps, or eps times the mean of G's diagonal. */
BPLS_API bpls_status bpls_solve(const bpls_matrix* G, const bpls_matrix* C, double eps,
                                int relative, int n_threads, double* W);
/* Both of the above: the weights W, (A.cols + bias) x B.cols, for which A W is nearest to B. */
BPLS_API bpls_status bpls_solve_layer(const bpls_matrix* A, const bpls_matrix* B, int bias,
                                      double eps, int relative, int n_threads, double* W);
/* `count` systems of one size; G and C are the first ones, the others follow at these strides, in bytes. */
BPLS_API bpls_status bpls_solve_batched(const bpls_matrix* G, ptrdiff_t G_stride,
                                        const bpls_matrix* C, ptrdiff_t C_stride, size_t count,
                                        double eps, int relative, int n_threads, double* W);
/* act(A W + b): floats if W is float32 and A is bytes or float32, else doubles. */
BPLS_API bpls_status bpls_linear(const bpls_matrix* A, const bpls_matrix* W, int bias,
                                 int activation, int n_threads, void* out);
/* act of rows x cols contiguous doubles; `out` may be `in`. */
BPLS_API bpls_status bpls_forward(int activation, const double* in, size_t rows, size_t cols,
                                  double* out);
/* The inverse of act, for values that are first clipped to `margin` inside its range. */
BPLS_API bpls_status bpls_inverse(int activation, const double* in, size_t rows, size_t cols,
                                  double margin, double* out);

#ifdef __cplusplus
}
#endif

#endif
