/* Stands before NVRTC, hands every nvrtcCompileProgram on to it, and keeps the log of the last that failed: Jitify shows none.
 * It fails on purpose for each header that it has still to find, so that only the last failure means anything. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *last;

static void *real(const char *name)
{
    static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL};
    for (int i = 0; sonames[i]; i++) {
        void *library = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD);
        if (library)
            return dlsym(library, name);
    }
    fprintf(stderr, "NVRTC is not loaded\n");
    abort();
}

int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    int (*compile)(void *, int, const char *const *) = real("nvrtcCompileProgram");
    int (*log_size)(void *, size_t *) = real("nvrtcGetProgramLogSize");
    int (*get_log)(void *, char *) = real("nvrtcGetProgramLog");
    int result = compile(program, count, options);
    size_t size = 0;
    if (!result)
        return result;
    free(last);
    last = log_size(program, &size) ? NULL : calloc(1, size + 1);
    if (last)
        get_log(program, last);
    return result;
}

void nvrtc_print_last_failure(void)
{
    if (last)
        fprintf(stderr, "%s\n", last);
}
