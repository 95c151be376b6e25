/* Loaded before NVRTC, this hands every nvrtcCompileProgram on to the real one and keeps what was asked and answered in the
 * file that CUMATRIX_NVRTC_TAP names: the options as the library really passed them, and the log that Jitify throws away.
 * A record is: "call RESULT COUNT\n", then COUNT options and one log, each as "LENGTH\nBYTES\n". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *real(const char *name)
{
    static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL};
    for (int i = 0; sonames[i]; i++) {
        void *library = dlopen(sonames[i], RTLD_NOW | RTLD_NOLOAD);
        if (library)
            return dlsym(library, name);
    }
    fprintf(stderr, "cumatrix: NVRTC is not loaded\n");
    abort();
}

static void put(FILE *file, const char *text, size_t length)
{
    fprintf(file, "%zu\n", length);
    fwrite(text, 1, length, file);
    fputc('\n', file);
}

int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    int (*compile)(void *, int, const char *const *) = real("nvrtcCompileProgram");
    int (*log_size)(void *, size_t *) = real("nvrtcGetProgramLogSize");
    int (*get_log)(void *, char *) = real("nvrtcGetProgramLog");
    int result = compile(program, count, options);
    const char *name = getenv("CUMATRIX_NVRTC_TAP");
    FILE *file = name ? fopen(name, "a") : NULL;
    if (!file)
        return result;
    fprintf(file, "call %d %d\n", result, count);
    for (int i = 0; i < count; i++)
        put(file, options[i], strlen(options[i]));
    size_t size = 0;
    char *log = !log_size(program, &size) && size ? malloc(size) : NULL;
    if (log && !get_log(program, log))
        put(file, log, strnlen(log, size));
    else
        put(file, "", 0);
    free(log);
    fclose(file);
    return result;
}
