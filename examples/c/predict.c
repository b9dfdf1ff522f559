/* predict net.safetensors: read rows of bytes (numbers separated by spaces) from standard input and print the outputs and
 * the label of each row. Build: cc predict.c $(python -m bpls_fast --includes --libs) */
#include <bpls/bpls.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
    fprintf(stderr, "%s\n", bpls_last_error());
    return 1;
}

/* Return 1 for a row, 0 at the end of the input. */
static int read_row(uint8_t* row, size_t inputs) {
    size_t i;
    for (i = 0; i < inputs; ++i) {
        unsigned value;
        if (scanf("%u", &value) != 1) return 0;
        row[i] = (uint8_t)value;
    }
    return 1;
}

static int run(const bpls_network* network, bpls_predictor* predictor) {
    const size_t inputs = bpls_network_inputs(network), outputs = bpls_network_outputs(network);
    uint8_t* row = malloc(inputs);
    float* out = malloc(outputs * sizeof *out);
    int failed = row == NULL || out == NULL;
    while (!failed && read_row(row, inputs)) {
        size_t j, largest = 0;
        failed = bpls_predict_u8(predictor, row, 1, out) != BPLS_OK;
        for (j = 0; !failed && j < outputs; ++j) {
            if (out[j] > out[largest]) largest = j;
            printf("%.9g ", out[j]);
        }
        if (!failed) {
            const char* label = bpls_network_label(network, largest);
            printf("%s\n", label ? label : "");
        }
    }
    free(row);
    free(out);
    return failed ? fail() : 0;
}

int main(int count, char** arguments) {
    bpls_network* network = NULL;
    bpls_predictor* predictor = NULL;
    int code;
    if (count != 2) {
        fprintf(stderr, "usage: predict net.safetensors\n");
        return 2;
    }
    if (bpls_abi_version() != BPLS_ABI_VERSION) {
        fprintf(stderr, "the library and the header have different ABI versions\n");
        return 1;
    }
    code = bpls_network_load(arguments[1], &network) != BPLS_OK ||
                   bpls_predictor_new(network, BPLS_U8, &predictor) != BPLS_OK
               ? fail()
               : run(network, predictor);
    bpls_predictor_free(predictor);
    bpls_network_free(network);
    return code;
}
