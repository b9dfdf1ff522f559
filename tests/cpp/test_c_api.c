/* The C functions, from C: results, and a status with a sentence for whatever is wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bpls/bpls.h"

static int failures = 0;

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                      \
        }                                                                    \
    } while (0)

static bpls_matrix doubles(const double* data, size_t rows, size_t cols) {
    const bpls_matrix matrix = {
        data, BPLS_F64, rows, cols, (ptrdiff_t)(cols * sizeof(double)), (ptrdiff_t)sizeof(double)};
    return matrix;
}

static void one_layer_is_solved(void) {
    const double x[] = {0, 1, 2, 3}, y[] = {1, 3, 5, 7};
    const bpls_matrix A = doubles(x, 4, 1), B = doubles(y, 4, 1);
    double W[2], G[4], C[2], again[2], out[4];
    bpls_matrix weights, gram, cross;
    int i;
    CHECK(bpls_solve_layer(&A, &B, 1, 0, 1, 0, W) == BPLS_OK);
    CHECK(fabs(W[0] - 2) < 1e-12 && fabs(W[1] - 1) < 1e-12);
    CHECK(bpls_gram(&A, &B, 1, NULL, 1, G, C) == BPLS_OK);
    CHECK(G[0] == 14 && G[1] == 6 && G[2] == 6 && G[3] == 4 && C[0] == 34 && C[1] == 16);
    CHECK(bpls_cross(&A, &B, 1, 1, C) == BPLS_OK && C[0] == 34 && C[1] == 16);
    gram = doubles(G, 2, 2);
    cross = doubles(C, 2, 1);
    CHECK(bpls_solve(&gram, &cross, 0, 1, 0, again) == BPLS_OK);
    CHECK(memcmp(again, W, sizeof W) == 0);
    CHECK(bpls_solve_batched(&gram, 0, &cross, 0, 1, 0, 1, 0, again) == BPLS_OK);
    CHECK(fabs(again[0] - 2) < 1e-12 && fabs(again[1] - 1) < 1e-12);
    weights = doubles(W, 2, 1);
    CHECK(bpls_linear(&A, &weights, 1, BPLS_IDENTITY, 0, out) == BPLS_OK);
    for (i = 0; i < 4; ++i) CHECK(fabs(out[i] - y[i]) < 1e-12);
    CHECK(bpls_forward(BPLS_TANH, out, 4, 1, out) == BPLS_OK && fabs(out[0] - tanh(1)) < 1e-15);
    CHECK(bpls_inverse(BPLS_TANH, out, 1, 1, 1e-9, out) == BPLS_OK && fabs(out[0] - 1) < 1e-12);
}

static void what_is_wrong_is_told(void) {
    const double zeros[4] = {0, 0, 0, 0};
    const bpls_matrix G = doubles(zeros, 2, 2), C = doubles(zeros, 2, 1),
                      wide = doubles(zeros, 1, 2);
    bpls_matrix other = G;
    double W[2] = {7, 7};
    CHECK(bpls_solve(&G, &C, 0, 1, 0, W) == BPLS_NOT_POSITIVE_DEFINITE);
    CHECK(strstr(bpls_last_error(), "pivot") != NULL && W[0] == 7);
    CHECK(bpls_solve(&wide, &C, 0, 1, 0, W) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_solve(NULL, &C, 0, 1, 0, W) == BPLS_INVALID_ARGUMENT);
    CHECK(strcmp(bpls_last_error(), "G is NULL") == 0);
    other.dtype = 9;
    CHECK(bpls_solve(&other, &C, 0, 1, 0, W) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_forward(99, zeros, 1, 1, W) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_set_num_threads(-1) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_set_num_threads(1) == BPLS_OK && bpls_get_num_threads() == 1);
    CHECK(bpls_set_num_threads(0) == BPLS_OK && bpls_get_num_threads() >= 1);
}

static const char header[] =
    "{\"__metadata__\":{\"format\":\"bpls_fast.network\",\"version\":\"1\",\"activations\":"
    "\"identity\","
    "\"input_scale\":\"\",\"classes\":\"[\\\"no\\\",\\\"yes\\\"]\"},"
    "\"layers.0.weight\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[0,16]}}";

static void a_network_predicts(void) {
    const double weights[2] = {2, -255};
    unsigned char file[8 + sizeof header - 1 + sizeof weights] = {0};
    const size_t length = sizeof header - 1;
    bpls_network* network = NULL;
    bpls_predictor *predictor = NULL, *copy = NULL;
    const double x[] = {1, 3};
    const uint8_t byte = 1;
    float narrow[4];
    double out[4];
    bpls_matrix rows = doubles(x, 2, 1);
    file[0] = (unsigned char)(length & 255);
    file[1] = (unsigned char)(length >> 8);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, weights, sizeof weights);

    CHECK(bpls_network_parse(file, sizeof file - 1, &network) == BPLS_INVALID_FILE && !network);
    CHECK(bpls_network_load("no such file", &network) == BPLS_CANNOT_READ && !network);
    CHECK(strstr(bpls_last_error(), "no such file") != NULL);
    CHECK(bpls_network_parse(file, sizeof file, &network) == BPLS_OK);
    CHECK(bpls_network_inputs(network) == 1 && bpls_network_outputs(network) == 2);
    CHECK(strcmp(bpls_network_label(network, 1), "yes") == 0);
    CHECK(bpls_network_label(network, 2) == NULL);

    CHECK(bpls_predictor_new(network, 3, &predictor) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_predictor_new(network, BPLS_F64, &predictor) == BPLS_OK);
    CHECK(bpls_predictor_copy(predictor, NULL) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_predictor_copy(predictor, &copy) == BPLS_OK);
    bpls_predictor_free(predictor);
    CHECK(bpls_predict_f64(copy, x, 2, out) == BPLS_OK);
    CHECK(out[0] == 2 && out[1] == -255 && out[2] == 6 && out[3] == -765);
    memset(out, 0, sizeof out);
    CHECK(bpls_predict_matrix(copy, &rows, 0, out) == BPLS_OK && out[3] == -765);
    CHECK(bpls_predict_f32(copy, narrow, 1, narrow) == BPLS_INVALID_ARGUMENT);
    CHECK(strcmp(bpls_last_error(),
                 "rows has another type; expected the one that the predictor is for") == 0);
    CHECK(bpls_predict_f64(NULL, x, 2, out) == BPLS_INVALID_ARGUMENT);
    CHECK(strcmp(bpls_last_error(), "predictor is NULL") == 0);
    CHECK(bpls_predict_matrix(NULL, &rows, 0, out) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_predict_matrix(copy, NULL, 0, out) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_predict_matrix(copy, &rows, 0, NULL) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_predict_f64(copy, NULL, 0, NULL) == BPLS_OK);
    CHECK(bpls_predict_f64(copy, NULL, 1, out) == BPLS_INVALID_ARGUMENT);
    rows.cols = 2;
    CHECK(bpls_predict_matrix(copy, &rows, 0, out) == BPLS_INVALID_ARGUMENT);
    out[0] = NAN;
    CHECK(bpls_predict_f64(copy, out, 1, out + 2) == BPLS_NOT_FINITE);
    bpls_predictor_free(copy);

    CHECK(bpls_predictor_new(network, BPLS_U8, &predictor) == BPLS_OK);
    bpls_network_free(network);
    CHECK(bpls_predict_u8(predictor, &byte, 1, narrow) == BPLS_OK);
    CHECK(narrow[1] == -1); /* bytes are divided by 255 */
    bpls_predictor_free(predictor);
    bpls_predictor_free(NULL);
    bpls_network_free(NULL);
    CHECK(bpls_network_inputs(NULL) == 0 && bpls_network_outputs(NULL) == 0);
    CHECK(bpls_network_label(NULL, 0) == NULL);
    CHECK(bpls_network_load(NULL, &network) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_network_load("no such file", NULL) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_network_parse(NULL, 1, &network) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_network_parse(NULL, 0, &network) == BPLS_INVALID_FILE);
    CHECK(bpls_network_parse(file, sizeof file, NULL) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_predictor_new(NULL, BPLS_U8, &predictor) == BPLS_INVALID_ARGUMENT);
    CHECK(bpls_predictor_copy(NULL, &predictor) == BPLS_INVALID_ARGUMENT);
}

int main(void) {
    if (!bpls_isa()) {
        printf("skipped: %s\n", bpls_last_error());
        return 77;
    }
    CHECK(bpls_abi_version() == BPLS_ABI_VERSION);
    CHECK(strlen(bpls_version()) >= 5 && strcmp(bpls_last_error(), "") == 0);
    one_layer_is_solved();
    what_is_wrong_is_told();
    a_network_predicts();
    printf("level %s: %d check(s) failed\n", bpls_isa(), failures);
    return failures != 0;
}
