/* A program that loads the library, calls a kernel on a thread of its own, and unloads the library: no thread is left, and the
 * next time everything works again. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "bpls/bpls.h"

enum { rows = 4000, columns = 64 };

static float values[rows * columns];
static double gram[columns * columns];

typedef bpls_status gram_function(const bpls_matrix*, const bpls_matrix*, int, const bpls_matrix*,
                                  int, double*, double*);

static void* call(void* function) {
    const bpls_matrix A = {values, BPLS_F32, rows, columns, columns * sizeof(float), sizeof(float)};
    return (*(gram_function**)function)(&A, NULL, 0, NULL, 3, gram, NULL) == BPLS_OK ? function
                                                                                     : NULL;
}

/* All threads of the process. */
static int threads(void) {
    int count = 0;
    DIR* tasks = opendir("/proc/self/task");
    const struct dirent* task;
    while ((task = readdir(tasks)) != NULL) count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

int main(int count, char** arguments) {
    for (int i = 0; i < rows * columns; ++i) values[i] = 1.0f;
    for (int round = 0; count == 2 && round < 3; ++round) {
        void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        gram_function* function = NULL;
        pthread_t caller;
        void* answer = NULL;
        if (library == NULL) return puts(dlerror()), 1;
        *(void**)&function = dlsym(library, "bpls_gram");
        gram[0] = 0;
        if (function == NULL || pthread_create(&caller, NULL, call, &function) != 0) return 2;
        pthread_join(caller, &answer);
        if (answer == NULL || gram[0] != rows) return 3;
        if (threads() < 3) return puts("the library did not start its threads"), 4;
        if (dlclose(library) != 0) return 5;
        if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) != NULL) return puts("still loaded"), 6;
        if (threads() != 1) return puts("a thread outlived the library"), 7;
    }
    return count == 2 ? 0 : 8;
}
