// A preloaded library that redirects the compilers of a build to cumatrix's recorder (harness.project.recorder).
//
// Builds find nvcc through PATH, CUDA_HOME, a CMake cache or an absolute path, but all of them call one of these functions.
// Children of vfork call them as well, so nothing here allocates memory.

#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

extern char **environ;

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// "x86_64-linux-gnu-g++-13" is g++: a prefix before a hyphen, and a version after one.
static int names_host_compiler(const char *name)
{
    static const char *const known[] = {"clang++", "clang", "g++", "gcc", "c++", "cc"};
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
        const char *found = strstr(name, known[i]);
        if (!found || (found != name && found[-1] != '-'))
            continue;
        const char *rest = found + strlen(known[i]);
        if (!*rest || (*rest == '-' && rest[1] && strspn(rest + 1, "0123456789.") == strlen(rest + 1)))
            return 1;
    }
    return 0;
}

static int has_word(char *const argv[], const char *word, const char *other)
{
    for (int i = 1; argv[i]; i++)
        if (!strcmp(argv[i], word) || !strcmp(argv[i], other))
            return 1;
    return 0;
}

static int is_recorded(const char *path, char *const argv[])
{
    const char *name = basename_of(path);
    if (!argv || !argv[0] || !getenv("CUMATRIX_RECORD_PYTHON") || !getenv("CUMATRIX_RECORD_SCRIPT"))
        return 0;
    // Only objects of shared libraries: host programs may generate sources during the build.
    if (strcmp(name, "nvcc")
        && !(names_host_compiler(name) && has_word(argv, "-c", "--compile") && has_word(argv, "-fPIC", "-fpic")))
        return 0;
    // Python and shells try each folder of PATH; missing files fail in the caller.
    return !strchr(path, '/') || !access(path, X_OK);
}

static int count_of(char *const argv[])
{
    int count = 0;
    while (argv[count])
        count++;
    return count;
}

// The recorder's command line, in the caller's memory: python -I -S recorder.py /path/of/nvcc ARGUMENTS
static char **recorder(char **words, const char *path, char *const argv[])
{
    words[0] = getenv("CUMATRIX_RECORD_PYTHON");
    words[1] = "-I";
    words[2] = "-S";
    words[3] = getenv("CUMATRIX_RECORD_SCRIPT");
    words[4] = (char *) path;
    for (int i = 0; i < count_of(argv); i++)
        words[5 + i] = argv[i + 1];
    return words;
}

#define RECORDER(path, argv) recorder(alloca((count_of(argv) + 6) * sizeof(char *)), path, argv)

// The file that PATH finds; the name itself if it has a slash, or if PATH finds nothing.
static const char *found(const char *file, char place[PATH_MAX])
{
    const char *path = getenv("PATH");
    if (strchr(file, '/') || !path)
        return file;
    while (1) {
        int length = (int) strcspn(path, ":");
        if (snprintf(place, PATH_MAX, "%.*s%s%s", length, path, length ? "/" : "", file) < PATH_MAX && !access(place, X_OK))
            return place;
        if (!path[length])
            return file;
        path += length + 1;
    }
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    if (is_recorded(path, argv)) {
        char **words = RECORDER(path, argv);
        return NEXT(execve)(words[0], words, envp);
    }
    return NEXT(execve)(path, argv, envp);
}

int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
    char place[PATH_MAX];
    if (is_recorded(file, argv)) {
        char **words = RECORDER(found(file, place), argv);
        return NEXT(execve)(words[0], words, envp);
    }
    return NEXT(execvpe)(file, argv, envp);
}

int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

#define LISTED(first, words)                         \
    va_list list;                                    \
    va_start(list, first);                           \
    int count = 1;                                   \
    while (va_arg(list, char *))                     \
        count++;                                     \
    va_end(list);                                    \
    char **words = alloca((count + 1) * sizeof(char *)); \
    words[0] = (char *) first;                       \
    va_start(list, first);                           \
    for (int i = 1; i <= count; i++)                 \
        words[i] = va_arg(list, char *);

int execl(const char *path, const char *first, ...)
{
    LISTED(first, words)
    va_end(list);
    return execve(path, words, environ);
}

int execlp(const char *file, const char *first, ...)
{
    LISTED(first, words)
    va_end(list);
    return execvpe(file, words, environ);
}

int execle(const char *path, const char *first, ...)
{
    LISTED(first, words)
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return execve(path, words, envp);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                char *const argv[], char *const envp[])
{
    if (is_recorded(path, argv)) {
        char **words = RECORDER(path, argv);
        return NEXT(posix_spawn)(pid, words[0], actions, attributes, words, envp);
    }
    return NEXT(posix_spawn)(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const argv[], char *const envp[])
{
    char place[PATH_MAX];
    if (is_recorded(file, argv)) {
        char **words = RECORDER(found(file, place), argv);
        return NEXT(posix_spawn)(pid, words[0], actions, attributes, words, envp);
    }
    return NEXT(posix_spawnp)(pid, file, actions, attributes, argv, envp);
}
