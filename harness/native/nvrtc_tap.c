/* Loaded before NVRTC, this library forwards every nvrtcCompileProgram, and appends a record to the file in
 * CUMATRIX_NVRTC_TAP: the options as the library passed them, and the log, which Jitify discards.
 * A record is: "call RESULT COUNT\n", then COUNT options and one log, each as "LENGTH\nBYTES\n".
 *
 * Jitify finds the files that a program includes by compiling it again for each missing file. After the first missing
 * file, further programs are first compiled without their code: directives alone determine the includes, and compiling
 * them takes milliseconds. The whole program is compiled once no file is missing. */
#define _GNU_SOURCE
#include <ctype.h>
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

/* A program and its copy without code; `missing`: the last result is that of the copy. */
struct pair {
    void *whole, *skimmed;
    int missing;
    struct pair *next;
};
static struct pair *pairs;
static int missed; /* whether a file has been missing in this process */

static struct pair *pair_of(void *program)
{
    struct pair *each = pairs;
    while (each && each->whole != program)
        each = each->next;
    return each;
}

/* Whether an apostrophe separates the digits of a number. */
static int parts_digits(const char *text, const char *at)
{
    const char *first = at;
    while (first > text && (isalnum((unsigned char)first[-1]) || first[-1] == '\''))
        first--;
    return first < at && isdigit((unsigned char)*first);
}

/* The end of a comment or quotation that begins at `at`; `at` if neither does. A quotation ends with its line. */
static const char *end_of_aside(const char *text, const char *at)
{
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    int comment = at[0] == '/' && at[1] == '/';
    if (!comment && (*at != '"' && (*at != '\'' || parts_digits(text, at))))
        return at;
    const char *end = at + 1;
    while (*end && *end != '\n' && (comment || *end != *at))
        end += end[0] == '\\' && end[1] ? (end[1] == '\r' && end[2] == '\n' ? 3 : 2) : 1;
    return *end == *at ? end + 1 : end;
}

/* The end of a directive's line, after continuation lines and comments of several lines. */
static const char *end_of_directive(const char *at)
{
    while (*at && *at != '\n') {
        if (at[0] == '\\' && at[1] == '\r' && at[2] == '\n')
            at += 3;
        else if (at[0] == '\\' && at[1])
            at += 2;
        else if (at[0] == '/' && at[1] == '*')
            at = end_of_aside(at, at);
        else
            at++;
    }
    return at;
}

/* The directives of a text on their original lines; NULL if memory is exhausted. */
static char *skim(const char *text)
{
    if (strstr(text, "R\"")) /* an apparent directive may be part of a raw string */
        return strdup(text);
    char *made = malloc(strlen(text) + 1), *out = made;
    if (!made)
        return NULL;
    int begins = 1; /* only blanks and comments precede in this line */
    for (const char *at = text, *end; *at; at = end) {
        if (begins && *at == '#') {
            end = end_of_directive(at);
            memcpy(out, at, (size_t)(end - at));
            out += end - at;
            continue;
        }
        end = end_of_aside(text, at);
        if (end == at)
            end += at[0] == '\\' && at[1] ? (at[1] == '\r' && at[2] == '\n' ? 3 : 2) : 1;
        begins = *at == '\n' || (begins && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '/'));
        for (; at < end; at++)
            if (*at == '\n')
                *out++ = '\n';
    }
    *out = 0;
    return made;
}

static void look_through(void *program, const char *source, const char *name, int count, const char *const *texts,
                         const char *const *names)
{
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *) =
        real("nvrtcCreateProgram");
    char **skimmed = calloc((size_t)count + 1, sizeof *skimmed);
    struct pair *pair = calloc(1, sizeof *pair);
    int whole = skimmed && pair;
    for (int i = 0; whole && i <= count; i++)
        whole = (skimmed[i] = skim(i < count ? texts[i] : source)) != NULL;
    if (whole && !create(&pair->skimmed, skimmed[count], name, count, (const char *const *)skimmed, names)) {
        pair->whole = program;
        pair->next = pairs;
        pairs = pair;
    } else
        free(pair);
    for (int i = 0; skimmed && i <= count; i++)
        free(skimmed[i]);
    free(skimmed);
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int count, const char *const *texts,
                       const char *const *names)
{
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *) =
        real("nvrtcCreateProgram");
    int result = create(program, source, name, count, texts, names);
    if (!result && missed)
        look_through(*program, source, name, count, texts, names);
    return result;
}

int nvrtcDestroyProgram(void **program)
{
    int (*destroy)(void **) = real("nvrtcDestroyProgram");
    for (struct pair **each = &pairs; *each; each = &(*each)->next)
        if (program && (*each)->whole == *program) {
            struct pair *gone = *each;
            *each = gone->next;
            destroy(&gone->skimmed);
            free(gone);
            break;
        }
    return destroy(program);
}

int nvrtcGetProgramLogSize(void *program, size_t *size)
{
    int (*log_size)(void *, size_t *) = real("nvrtcGetProgramLogSize");
    struct pair *pair = pair_of(program);
    return log_size(pair && pair->missing ? pair->skimmed : program, size);
}

int nvrtcGetProgramLog(void *program, char *log)
{
    int (*get_log)(void *, char *) = real("nvrtcGetProgramLog");
    struct pair *pair = pair_of(program);
    return get_log(pair && pair->missing ? pair->skimmed : program, log);
}

static char *log_of(void *program)
{
    size_t size = 0;
    char *log = !nvrtcGetProgramLogSize(program, &size) && size ? calloc(size + 1, 1) : NULL;
    if (log && nvrtcGetProgramLog(program, log))
        *log = 0;
    return log;
}

static int misses_file(void *program)
{
    char *log = log_of(program);
    int found = log && strstr(log, "open source file");
    free(log);
    return found;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    int (*compile)(void *, int, const char *const *) = real("nvrtcCompileProgram");
    struct pair *pair = pair_of(program);
    int result = 0;
    if (pair) {
        result = compile(pair->skimmed, count, options);
        pair->missing = 1;
        pair->missing = result && misses_file(program);
    }
    if (!pair || !pair->missing) {
        result = compile(program, count, options);
        missed = missed || (result && misses_file(program));
    }
    const char *name = getenv("CUMATRIX_NVRTC_TAP");
    FILE *file = name ? fopen(name, "a") : NULL;
    if (!file)
        return result;
    fprintf(file, "call %d %d\n", result, count);
    for (int i = 0; i < count; i++)
        put(file, options[i], strlen(options[i]));
    char *log = log_of(program);
    put(file, log ? log : "", log ? strlen(log) : 0);
    free(log);
    fclose(file);
    return result;
}
