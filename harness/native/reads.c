/* Preloaded into a worker and all of its descendants, this library records which files are opened or looked up.
 *
 * Records go to the file or FIFO in CUMATRIX_READS. A record is "KIND DEV INODE SIZE MTIME CTIME PATH\0", with times in
 * nanoseconds and an absolute path. Kinds:
 *   R  opened for reading, examined or mapped; exists with this signature
 *   r  the same, but changed so recently that a further change might not change the signature
 *   D  a directory
 *   L  a directory whose names were listed; MTIME is a sum over the names, and SIZE and CTIME are 0
 *   K  a symbolic link whose target was read; the same, with a sum over the target as MTIME
 *   M  looked up and missing
 *   E  could not be examined; may exist
 *   k  examined without following links, and not a symbolic link
 *   T  mode, owner, size and times were read by a program other than a compiler; with this signature
 *   A  extended attributes were read
 *   N  an event that cannot be followed; the path is a sentence
 *   W  opened for writing
 *   X  about to run this program;  Y  running it failed;  B  a program with this library has started
 * A program with an X and without a B has dropped its environment, or is linked statically and cannot be traced. A static
 * program is run by the program next to this library (`follow.c`), which records its B and its calls. `ldconfig -p` needs
 * no tracing: its file and the linker's cache are recorded instead, without an X.
 *
 * Symbols of glibc are wrapped by name, so calls inside glibc are not intercepted. The functions that open files
 * internally (fopen, opendir, glob, nftw, execvp, posix_spawnp) are therefore wrapped as well. Files of the dynamic linker
 * are recorded afterwards, from its loaded libraries and search paths. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define FRESH 20000000LL /* a file system's clock may not advance for 10 ms */
#define SLOTS 16384
#define LINE 4000 /* less than PIPE_BUF: a record is written in one piece */

typedef struct stat Stat;
extern char **environ;

static char exe[PATH_MAX], where[PATH_MAX], preload[PATH_MAX], follower[PATH_MAX];
static int channel = -1, lost;
static dev_t channel_dev;
static ino_t channel_ino;
static pid_t born;
static uint64_t seen[SLOTS];

#define REAL(type, name, ...)                                       \
    static type (*real)(__VA_ARGS__);                               \
    if (!real)                                                      \
        real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* The C library's syscall, because ours intercepts the calls of programs. */
static long kernel(long number, ...)
{
    static long (*real)(long, ...);
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int looks_at_times; /* this program may use times and modes: it is neither Python nor a compiler */

static int look(int folder, const char *path, Stat *found, int flags)
{
    return (int)kernel(SYS_newfstatat, folder, path, found, flags);
}

/* A program that closes all inherited descriptors may have reused the channel's number for another file. */
static int ready(void)
{
    Stat found;
    if (channel >= 0 && !look(channel, "", &found, AT_EMPTY_PATH) && found.st_dev == channel_dev && found.st_ino == channel_ino)
        return 1;
    channel = -1;
    if (!where[0])
        return 0;
    int fd = (int)kernel(SYS_openat, AT_FDCWD, where, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return 0;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    if (high >= 0) {
        kernel(SYS_close, fd);
        fd = high;
    }
    fcntl(fd, F_SETFL, O_APPEND); /* block on a full pipe */
    if (look(fd, "", &found, AT_EMPTY_PATH))
        return 0;
    channel_dev = found.st_dev, channel_ino = found.st_ino;
    channel = fd;
    return 1;
}

static int known(const char *text, size_t length)
{
    uint64_t hash = 1469598103934665603ULL;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211ULL;
    hash |= 1;
    for (unsigned step = 0; step < 8; step++) {
        uint64_t *slot = &seen[(hash / 2 + step) % SLOTS];
        uint64_t there = __atomic_load_n(slot, __ATOMIC_RELAXED);
        if (there == hash)
            return 1;
        if (!there) {
            __atomic_store_n(slot, hash, __ATOMIC_RELAXED);
            return 0;
        }
    }
    return 0;
}

static void put(char kind, const Stat *found, int folder, const char *path, int once)
{
    char line[LINE], base[PATH_MAX] = "";
    if (path[0] != '/') {
        if (folder == AT_FDCWD) {
            if (kernel(SYS_getcwd, base, sizeof base) < 0)
                base[0] = 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            ssize_t length = kernel(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
            base[length > 0 ? length : 0] = 0;
        }
    }
    static const Stat nothing;
    const Stat *f = found ? found : &nothing;
    int length = snprintf(
        line, sizeof line, "%c %llu %llu %lld %lld %lld %s%s%s", kind, (unsigned long long)f->st_dev,
        (unsigned long long)f->st_ino, (long long)f->st_size, f->st_mtim.tv_sec * 1000000000LL + f->st_mtim.tv_nsec,
        f->st_ctim.tv_sec * 1000000000LL + f->st_ctim.tv_nsec, base, base[0] && path[0] ? "/" : "", path);
    if (length < 0 || length >= (int)sizeof line) {
        lost++;
        return;
    }
    if (once && known(line, (size_t)length))
        return;
    if (!ready() || kernel(SYS_write, channel, line, length + 1) != length + 1)
        lost++;
}

/* Record the file that a call found at a path, or its error; errno is preserved. */
static void note(int folder, const char *path, const Stat *found, int error)
{
    int before = errno;
    if (!found) {
        put(error == ENOENT || error == ENOTDIR ? 'M' : 'E', NULL, folder, path, 1);
    } else {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        long long age = (now.tv_sec - found->st_ctim.tv_sec) * 1000000000LL + now.tv_nsec - found->st_ctim.tv_nsec;
        if (S_ISDIR(found->st_mode))
            put('D', NULL, folder, path, 1);
        else
            put(age < FRESH ? 'r' : 'R', found, folder, path, 1);
    }
    errno = before;
}

/* A sum of zlib's crc32 and adler32 of a name, as in `harness.engine.file_states.sum_of_names`. */
static uint64_t sum_of(const char *name)
{
    uint32_t crc = ~0u, low = 1, high = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        crc ^= *c;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        low = (low + *c) % 65521;
        high = (high + low) % 65521;
    }
    return (uint64_t)~crc | (uint64_t)(high << 16 | low) << 32;
}

/* Record a sum instead of the modification time, for state that is a text. */
static void put_sum(char kind, const Stat *found, uint64_t sum, int folder, const char *path)
{
    Stat told = {.st_dev = found->st_dev, .st_ino = found->st_ino};
    told.st_mtim.tv_sec = (time_t)(sum % (1ULL << 62) / 1000000000);
    told.st_mtim.tv_nsec = (long)(sum % (1ULL << 62) % 1000000000);
    put(kind, &told, folder, path, 1);
}

/* Record the names in a directory. Its time of change is no substitute: Python adds __pycache__ to folders. */
static void note_names(int folder, const char *path, int fd)
{
    struct entry {
        uint64_t inode;
        int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    Stat found;
    char data[4096] __attribute__((aligned(8)));
    int before = errno;
    uint64_t sum = 0;
    long got;
    int own = fd < 0 ? -1 : (int)kernel(SYS_openat, fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        note(folder, path, NULL, before);
    } else if (own >= 0 && !look(own, "", &found, AT_EMPTY_PATH)) {
        while ((got = kernel(SYS_getdents64, own, data, sizeof data)) > 0)
            for (long at = 0; at < got; at += ((struct entry *)(data + at))->length) {
                const char *name = ((struct entry *)(data + at))->name;
                if (strcmp(name, ".") && strcmp(name, "..") && strcmp(name, "__pycache__"))
                    sum += sum_of(name);
            }
        put_sum('L', &found, sum, folder, path);
    } else {
        put('E', NULL, folder, path, 1);
    }
    if (own >= 0)
        kernel(SYS_close, own);
    errno = before;
}

static void note_path(int folder, const char *path)
{
    Stat found;
    int before = errno;
    int bad = look(folder, path, &found, 0);
    note(folder, path, bad ? NULL : &found, errno);
    errno = before;
}

/* Record a stat(2). Compilers and Python's importer only use the existence and identity of a file; other programs (make,
 * find, test, stat) may use its times. The target of a symbolic link that was not followed counts as well. */
static void note_link(int folder, const char *path);
static void note_stat(int folder, const char *path, int flags)
{
    Stat found;
    int before = errno;
    if (flags & AT_SYMLINK_NOFOLLOW)
        note_link(folder, path);
    note_path(folder, path);
    if (looks_at_times && !look(folder, path, &found, 0) && !S_ISDIR(found.st_mode))
        put('T', &found, folder, path, 1);
    errno = before;
}

static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void note_words(const char *words)
{
    char sentence[PATH_MAX];
    int before = errno;
    snprintf(sentence, sizeof sentence, "/%s %s", last_of(exe), words);
    put('N', NULL, AT_FDCWD, sentence, 1);
    errno = before;
}

static void note_fd(int folder, const char *path, int fd)
{
    Stat found;
    int before = errno;
    if (fd < 0)
        note(folder, path, NULL, before);
    else if (!look(fd, "", &found, AT_EMPTY_PATH))
        note(folder, path, &found, 0);
    errno = before;
}

static void note_write(int folder, const char *path)
{
    int before = errno;
    put('W', NULL, folder, path, 1);
    errno = before;
}

static void note_open(int folder, const char *path, int flags, int fd)
{
    if (!path)
        return;
    if ((flags & O_ACCMODE) != O_WRONLY && !(fd >= 0 && flags & O_TRUNC) && !((flags & O_TMPFILE) == O_TMPFILE))
        note_fd(folder, path, fd);
    if (fd >= 0 && ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)))
        note_write(folder, path);
}

#define OPEN(name, real_name)                                                     \
    EXPORT int name(const char *path, int flags, ...)                             \
    {                                                                             \
        va_list rest;                                                             \
        va_start(rest, flags);                                                    \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;   \
        va_end(rest);                                                             \
        REAL(int, real_name, const char *, int, ...);                             \
        int fd = real(path, flags, mode);                                         \
        note_open(AT_FDCWD, path, flags, fd);                                     \
        return fd;                                                                \
    }
OPEN(open, "open")
OPEN(open64, "open64")

#define OPENAT(name, real_name)                                                   \
    EXPORT int name(int folder, const char *path, int flags, ...)                 \
    {                                                                             \
        va_list rest;                                                             \
        va_start(rest, flags);                                                    \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;   \
        va_end(rest);                                                             \
        REAL(int, real_name, int, const char *, int, ...);                        \
        int fd = real(folder, path, flags, mode);                                 \
        note_open(folder, path, flags, fd);                                       \
        return fd;                                                                \
    }
OPENAT(openat, "openat")
OPENAT(openat64, "openat64")

#define OPEN2(name)                                                               \
    EXPORT int name(const char *path, int flags)                                  \
    {                                                                             \
        REAL(int, #name, const char *, int);                                      \
        int fd = real(path, flags);                                               \
        note_open(AT_FDCWD, path, flags, fd);                                     \
        return fd;                                                                \
    }
OPEN2(__open_2)
OPEN2(__open64_2)

#define OPENAT2(name)                                                             \
    EXPORT int name(int folder, const char *path, int flags)                      \
    {                                                                             \
        REAL(int, #name, int, const char *, int);                                 \
        int fd = real(folder, path, flags);                                       \
        note_open(folder, path, flags, fd);                                       \
        return fd;                                                                \
    }
OPENAT2(__openat_2)
OPENAT2(__openat64_2)

static int flags_of(const char *mode)
{
    int both = strchr(mode, '+') != NULL;
    return mode[0] == 'r' ? (both ? O_RDWR : O_RDONLY) : (both ? O_RDWR : O_WRONLY) | O_CREAT | (mode[0] == 'w' ? O_TRUNC : 0);
}

#define FOPEN(name)                                                               \
    EXPORT FILE *name(const char *path, const char *mode)                         \
    {                                                                             \
        REAL(FILE *, #name, const char *, const char *);                          \
        FILE *file = real(path, mode);                                            \
        note_open(AT_FDCWD, path, flags_of(mode), file ? fileno(file) : -1);      \
        return file;                                                              \
    }
FOPEN(fopen)
FOPEN(fopen64)

#define FREOPEN(name)                                                             \
    EXPORT FILE *name(const char *path, const char *mode, FILE *stream)           \
    {                                                                             \
        REAL(FILE *, #name, const char *, const char *, FILE *);                  \
        FILE *file = real(path, mode, stream);                                    \
        note_open(AT_FDCWD, path, flags_of(mode), file ? fileno(file) : -1);      \
        return file;                                                              \
    }
FREOPEN(freopen)
FREOPEN(freopen64)

EXPORT DIR *opendir(const char *path)
{
    REAL(DIR *, "opendir", const char *);
    DIR *folder = real(path);
    note_names(AT_FDCWD, path, folder ? dirfd(folder) : -1);
    return folder;
}

EXPORT DIR *fdopendir(int fd)
{
    REAL(DIR *, "fdopendir", int);
    note_names(fd, "", fd);
    return real(fd);
}

#define SCANDIR(name, entry)                                                                                      \
    EXPORT int name(const char *path, struct entry ***list, int (*filter)(const struct entry *),                  \
                    int (*order)(const struct entry **, const struct entry **))                                   \
    {                                                                                                             \
        REAL(int, #name, const char *, struct entry ***, int (*)(const struct entry *),                           \
             int (*)(const struct entry **, const struct entry **));                                              \
        DIR *folder = opendir(path); /* for the record of it */                                                   \
        if (folder)                                                                                               \
            closedir(folder);                                                                                     \
        return real(path, list, filter, order);                                                                   \
    }
SCANDIR(scandir, dirent)
SCANDIR(scandir64, dirent64)

/* Calls that only examine files: the kernel's result is the library's in every release of glibc. */
#define STAT(name, flags)                                                         \
    EXPORT int name(const char *path, Stat *found)                                \
    {                                                                             \
        int result = look(AT_FDCWD, path, found, flags);                          \
        note_stat(AT_FDCWD, path, flags);                                         \
        return result;                                                            \
    }                                                                             \
    EXPORT int our_##name##64(const char *path, Stat *found) __asm__(#name "64");   \
    EXPORT int our_##name##64(const char *path, Stat *found) { return name(path, found); }
STAT(stat, 0)
STAT(lstat, AT_SYMLINK_NOFOLLOW)

#define XSTAT(name, flags)                                                        \
    EXPORT int name(int version, const char *path, Stat *found)                   \
    {                                                                             \
        (void)version;                                                            \
        int result = look(AT_FDCWD, path, found, flags);                          \
        note_stat(AT_FDCWD, path, flags);                                         \
        return result;                                                            \
    }                                                                             \
    EXPORT int name##64(int version, const char *path, Stat *found) __attribute__((alias(#name)));
XSTAT(__xstat, 0)
XSTAT(__lxstat, AT_SYMLINK_NOFOLLOW)

EXPORT int fstatat(int folder, const char *path, Stat *found, int flags)
{
    int result = look(folder, path, found, flags);
    if (path && path[0])
        note_stat(folder, path, flags);
    return result;
}
EXPORT int our_fstatat64(int folder, const char *path, Stat *found, int flags) __asm__("fstatat64");
EXPORT int our_fstatat64(int folder, const char *path, Stat *found, int flags) { return fstatat(folder, path, found, flags); }

EXPORT int __fxstatat(int version, int folder, const char *path, Stat *found, int flags)
{
    (void)version;
    return fstatat(folder, path, found, flags);
}
EXPORT int __fxstatat64(int version, int folder, const char *path, Stat *found, int flags) __attribute__((alias("__fxstatat")));

EXPORT int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict found)
{
    int result = (int)kernel(SYS_statx, folder, path, flags, mask, found);
    if (path && path[0])
        note_stat(folder, path, flags);
    return result;
}

EXPORT int access(const char *path, int mode)
{
    int result = (int)kernel(SYS_faccessat, AT_FDCWD, path, mode);
    note_path(AT_FDCWD, path);
    return result;
}

EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
    REAL(int, "faccessat", int, const char *, int, int);
    int result = real(folder, path, mode, flags);
    note_path(folder, path);
    return result;
}

EXPORT int euidaccess(const char *path, int mode)
{
    REAL(int, "euidaccess", const char *, int);
    int result = real(path, mode);
    note_path(AT_FDCWD, path);
    return result;
}
EXPORT int eaccess(const char *path, int mode) __attribute__((alias("euidaccess")));

EXPORT char *realpath(const char *restrict path, char *restrict out)
{
    REAL(char *, "realpath", const char *, char *);
    char *result = real(path, out);
    if (path)
        note_path(AT_FDCWD, path);
    return result;
}

/* Record the target of a link, whether or not it exists. Other files are recorded as usual. */
static void note_link(int folder, const char *path)
{
    Stat found;
    char to[PATH_MAX];
    int before = errno;
    long length = kernel(SYS_readlinkat, folder, path, to, sizeof to - 1);
    if (length < 0 || !path[0]) {
        if (path[0])
            put(errno == EINVAL ? 'k' : 'M', NULL, folder, path, 1);
        if (path[0])
            note_path(folder, path);
    } else if (!look(folder, path, &found, AT_SYMLINK_NOFOLLOW)) {
        to[length] = 0;
        put_sum('K', &found, sum_of(to), folder, path);
    }
    errno = before;
}

EXPORT ssize_t readlinkat(int folder, const char *restrict path, char *restrict out, size_t size)
{
    ssize_t result = kernel(SYS_readlinkat, folder, path, out, size);
    note_link(folder, path);
    return result;
}
EXPORT ssize_t readlink(const char *restrict path, char *restrict out, size_t size) { return readlinkat(AT_FDCWD, path, out, size); }
EXPORT ssize_t __readlink_chk(const char *restrict path, char *restrict out, size_t size, size_t room)
{
    if (size > room)
        abort();
    return readlink(path, out, size);
}
EXPORT ssize_t __readlinkat_chk(int folder, const char *restrict path, char *restrict out, size_t size, size_t room)
{
    if (size > room)
        abort();
    return readlinkat(folder, path, out, size);
}

/* A link that was created here is a product, like a written file. */
EXPORT int symlinkat(const char *to, int folder, const char *path)
{
    int result = (int)kernel(SYS_symlinkat, to, folder, path);
    if (!result)
        note_write(folder, path);
    return result;
}
EXPORT int symlink(const char *to, const char *path) { return symlinkat(to, AT_FDCWD, path); }

/* glob accepts replacements for the functions that it uses. */
EXPORT int glob(const char *restrict pattern, int flags, int (*problem)(const char *, int), glob_t *restrict into)
{
    REAL(int, "glob", const char *restrict, int, int (*)(const char *, int), glob_t *restrict);
    if (flags & GLOB_ALTDIRFUNC)
        return real(pattern, flags, problem, into);
    into->gl_opendir = (void *(*)(const char *))opendir;
    into->gl_readdir = (struct dirent * (*)(void *)) readdir;
    into->gl_closedir = (void (*)(void *))(void *)closedir;
    into->gl_stat = stat;
    into->gl_lstat = lstat;
    int result = real(pattern, flags | GLOB_ALTDIRFUNC, problem, into);
    into->gl_flags &= ~GLOB_ALTDIRFUNC;
    return result;
}
EXPORT int our_glob64(const char *pattern, int flags, int (*problem)(const char *, int), glob_t *into) __asm__("glob64");
EXPORT int our_glob64(const char *pattern, int flags, int (*problem)(const char *, int), glob_t *into)
{
    return glob(pattern, flags, problem, into);
}

/* ftw and nftw call a function for each file: ours first. */
typedef int (*Walk)(const char *, const Stat *, int);
typedef int (*Nwalk)(const char *, const Stat *, int, struct FTW *);
static __thread Walk walk;
static __thread Nwalk nwalk;
static __thread int moves; /* the walk changes the working directory (FTW_CHDIR) */

static void note_visited(const char *path, int kind)
{
    DIR *folder = kind == FTW_D || kind == FTW_DP || kind == FTW_DNR ? opendir(path) : NULL; /* for the record of it */
    if (folder)
        closedir(folder);
    else
        note_path(AT_FDCWD, path);
}

static int walked(const char *path, const Stat *found, int kind)
{
    Walk theirs = walk;
    note_visited(path, kind);
    int result = theirs(path, found, kind);
    walk = theirs; /* a nested walk may have changed it */
    return result;
}

static int nwalked(const char *path, const Stat *found, int kind, struct FTW *place)
{
    Nwalk theirs = nwalk;
    int here = moves;
    note_visited(!here ? path : kind == FTW_DP ? "." : path + place->base, kind);
    int result = theirs(path, found, kind, place);
    nwalk = theirs, moves = here;
    return result;
}

EXPORT int ftw(const char *path, Walk each, int most)
{
    REAL(int, "ftw", const char *, Walk, int);
    walk = each;
    note_path(AT_FDCWD, path);
    return real(path, walked, most);
}
EXPORT int our_ftw64(const char *path, Walk each, int most) __asm__("ftw64");
EXPORT int our_ftw64(const char *path, Walk each, int most) { return ftw(path, each, most); }

EXPORT int nftw(const char *path, Nwalk each, int most, int flags)
{
    REAL(int, "nftw", const char *, Nwalk, int, int);
    nwalk = each, moves = flags & FTW_CHDIR;
    note_path(AT_FDCWD, path);
    return real(path, nwalked, most, flags);
}
EXPORT int our_nftw64(const char *path, Nwalk each, int most, int flags) __asm__("nftw64");
EXPORT int our_nftw64(const char *path, Nwalk each, int most, int flags) { return nftw(path, each, most, flags); }

/* Libraries that the dynamic linker has loaded, under the names by which it found them, and the places it searched before.
 *
 * Each object names its dependencies, and dlinfo returns its search path: RPATH, LD_LIBRARY_PATH, RUNPATH, the system's
 * folders. Libraries opened later (dlopen) are assumed to have been searched from the program. */

/* In each folder, the linker first looks up variants for newer processors (ld.so(8), glibc-hwcaps). */
static void note_variants(const char *folder, const char *name)
{
    Stat found;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/glibc-hwcaps", folder);
    note_path(AT_FDCWD, path);
    for (int level = 2; level <= 4 && !look(AT_FDCWD, path, &found, 0); level++) {
        snprintf(path, sizeof path, "%s/glibc-hwcaps/x86-64-v%d/%s", folder, level, name);
        note_path(AT_FDCWD, path);
        snprintf(path, sizeof path, "%s/glibc-hwcaps", folder);
    }
}

static void note_place(const char *folder, const char *name)
{
    char path[PATH_MAX];
    note_variants(folder, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    note_path(AT_FDCWD, path);
}

/* Record the places before the one in which a library was found. */
static void note_before(const Dl_serinfo *places, const char *name, const char *found, int must)
{
    char path[PATH_MAX];
    unsigned at = 0;
    size_t folder = (size_t)(last_of(found) - found);
    while (at < places->dls_cnt) {
        snprintf(path, sizeof path, "%s/%s", places->dls_serpath[at].dls_name, name);
        if ((size_t)(last_of(path) - path) == folder && !strncmp(path, found, folder))
            break;
        at++;
    }
    if (must && at == places->dls_cnt)
        return;
    for (unsigned i = 0; i < at; i++)
        note_place(places->dls_serpath[i].dls_name, name);
    if (at < places->dls_cnt)
        note_variants(places->dls_serpath[at].dls_name, name);
}

static Dl_serinfo *places_of(struct link_map *object, void *room, size_t size)
{
    Dl_serinfo need;
    if (dlinfo(object, RTLD_DI_SERINFOSIZE, &need) || need.dls_size > size)
        return NULL;
    memcpy(room, &need, sizeof need);
    return dlinfo(object, RTLD_DI_SERINFO, room) ? NULL : room;
}

/* The next dependency or name of an object (DT_NEEDED, DT_SONAME), from entry `*at` on; NULL at the end. */
static const char *name_in(const struct link_map *object, long tag, size_t *at)
{
    const char *texts = NULL;
    for (const ElfW(Dyn) *one = object->l_ld; one && one->d_tag != DT_NULL; one++)
        if (one->d_tag == DT_STRTAB) /* the linker relocates it, except for the kernel's vDSO */
            texts = (const char *)(one->d_un.d_ptr > object->l_addr ? one->d_un.d_ptr : one->d_un.d_ptr + object->l_addr);
    for (; texts && object->l_ld[*at].d_tag != DT_NULL; ++*at)
        if (object->l_ld[*at].d_tag == tag)
            return texts + object->l_ld[(*at)++].d_un.d_val;
    return NULL;
}

static int is_called(const struct link_map *object, const char *name)
{
    size_t at = 0;
    const char *own = name_in(object, DT_SONAME, &at);
    return !strcmp(last_of(object->l_name), name) || (own && !strcmp(own, name));
}

/* Libraries in the fork server's records; a cell records only the libraries that it loads itself. */
static struct {
    ElfW(Addr) address;
    const ElfW(Dyn) *entries;
} told[1024];
static size_t told_count;

static int is_new(const struct link_map *object)
{
    for (size_t i = 0; i < told_count; i++)
        if (told[i].address == object->l_addr && told[i].entries == object->l_ld)
            return 0;
    return 1;
}

EXPORT void cumatrix_note_libraries(int remember)
{
    static union {
        Dl_serinfo info;
        char bytes[1 << 16];
    } room;
    int before = errno;
    size_t count = told_count;
    struct link_map *first = _r_debug.r_map;
    for (struct link_map *object = first; object; object = object->l_next)
        if (object->l_name[0] == '/' && is_new(object))
            note_path(AT_FDCWD, object->l_name);
    for (struct link_map *object = first; object; object = object->l_next) {
        const char *name;
        size_t at = 0;
        int looks = is_new(object) && (object == first || object->l_name[0] == '/');
        Dl_serinfo *places = looks ? places_of(object, &room, sizeof room) : NULL;
        while (places && (name = name_in(object, DT_NEEDED, &at)))
            for (struct link_map *other = first; other && !strchr(name, '/'); other = other->l_next)
                if (other->l_name[0] == '/' && is_called(other, name)) {
                    note_before(places, name, other->l_name, 0);
                    break;
                }
    }
    Dl_serinfo *places = first ? places_of(first, &room, sizeof room) : NULL;
    for (struct link_map *object = first; object && places; object = object->l_next)
        if (object->l_name[0] == '/' && is_new(object))
            note_before(places, last_of(object->l_name), object->l_name, 1);
    for (struct link_map *object = first; remember && object && count < sizeof told / sizeof *told; object = object->l_next)
        if (is_new(object)) {
            told[count].address = object->l_addr;
            told[count++].entries = object->l_ld;
        }
    told_count = count;
    errno = before;
}

/* A library that is closed is missing from later lists. */
EXPORT int dlclose(void *handle)
{
    REAL(int, "dlclose", void *);
    if (where[0])
        cumatrix_note_libraries(0);
    return real(handle);
}

/* Record where a library is searched by name: on the paths of the caller (RPATH, RUNPATH) and the program, and in the
 * linker's cache. */
static void note_library(const char *name, const void *caller)
{
    union {
        Dl_serinfo info;
        char bytes[1 << 14];
    } room;
    Dl_info object;
    struct link_map *objects[2] = {NULL, NULL};
    int before = errno;

    /* NVRTC looks up the driver, but not with a precompiled header. A missing driver is a property of the machine and not
     * an input; an existing driver is mapped, and recorded as such. */
    if (!strcmp(name, "libcuda.so.1"))
        return;
    if (strchr(name, '/')) {
        note_path(AT_FDCWD, name);
    } else {
        objects[0] = _r_debug.r_map;
        dladdr1(caller, &object, (void **)&objects[1], RTLD_DL_LINKMAP);
        for (int i = 0; i < 2; i++) {
            Dl_serinfo *places = objects[i] && (i == 0 || objects[i] != objects[0]) ? places_of(objects[i], &room, sizeof room) : NULL;
            for (unsigned at = 0; places && at < places->dls_cnt; at++)
                note_place(places->dls_serpath[at].dls_name, name);
        }
        note_path(AT_FDCWD, "/etc/ld.so.cache");
    }
    errno = before;
}

/* A tail call, so that the linker uses the RUNPATH of our caller. */
#define JUMPS __attribute__((visibility("default"), optimize("O2"), noinline))
JUMPS void *dlopen(const char *name, int mode)
{
    static void *(*real)(const char *, int);
    if (!real)
        real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    if (where[0] && name && name[0])
        note_library(name, __builtin_return_address(0));
    return real(name, mode);
}
JUMPS void *dlmopen(Lmid_t space, const char *name, int mode)
{
    static void *(*real)(Lmid_t, const char *, int);
    if (!real)
        real = (void *(*)(Lmid_t, const char *, int))dlsym(RTLD_NEXT, "dlmopen");
    if (where[0] && name && name[0])
        note_words("loads libraries into a name space of their own");
    return real(space, name, mode);
}

/* System calls by number are followed if their C function is; others are reported. */
EXPORT long syscall(long number, ...)
{
    static const short unknown[] = {SYS_faccessat2, SYS_execveat, SYS_open_by_handle_at, SYS_getdents64, SYS_getxattr, SYS_lgetxattr,
        SYS_listxattr, SYS_llistxattr, SYS_fgetxattr, SYS_flistxattr, SYS_connect, SYS_uname, SYS_getpriority,
#ifdef SYS_open /* aarch64 lacks these calls */
        SYS_creat, SYS_getdents, SYS_fork, SYS_vfork,
#endif
    };
    long a[6], result;
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_execve)
        return execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
    for (size_t i = 0; where[0] && i < sizeof unknown / sizeof *unknown; i++)
        if (unknown[i] == number)
            note_words("makes a system call by its number, which cannot be followed");
    result = kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (!where[0])
        return result;
    switch (number) {
#ifdef SYS_open
    case SYS_open:
        note_open(AT_FDCWD, (const char *)a[0], (int)a[1], (int)result);
        break;
    case SYS_stat:
    case SYS_access:
        note_stat(AT_FDCWD, (const char *)a[0], 0);
        break;
    case SYS_lstat:
        note_stat(AT_FDCWD, (const char *)a[0], AT_SYMLINK_NOFOLLOW);
        break;
    case SYS_readlink:
        note_link(AT_FDCWD, (const char *)a[0]);
        break;
#endif
    case SYS_openat:
        note_open((int)a[0], (const char *)a[1], (int)a[2], (int)result);
        break;
    case SYS_openat2: /* its first field is the flags; a path that it refuses to resolve is not missing */
        note_open((int)a[0], (const char *)a[1], (int)*(uint64_t *)a[2], (int)result);
        break;
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_faccessat:
        if (a[1] && *(const char *)a[1])
            note_stat((int)a[0], (const char *)a[1], number == SYS_newfstatat ? (int)a[3] : number == SYS_statx ? (int)a[2] : 0);
        break;
    case SYS_readlinkat:
        note_link((int)a[0], (const char *)a[1]);
        break;
    }
    return result;
}

/* Inputs other than files. */
EXPORT int connect(int fd, const struct sockaddr *to, socklen_t size)
{
    REAL(int, "connect", int, const struct sockaddr *, socklen_t);
    if (where[0])
        note_words("connects to another one, whose answers cannot be followed");
    return real(fd, to, size);
}

/* Hide the machine's name: caches and results are shared between machines. */
#define NODE "localhost"
EXPORT int uname(struct utsname *out)
{
    int result = (int)kernel(SYS_uname, out);
    if (!result && where[0])
        snprintf(out->nodename, sizeof out->nodename, NODE);
    return result;
}
EXPORT int gethostname(char *out, size_t size)
{
    struct utsname found;
    if (uname(&found))
        return -1;
    if (strlen(found.nodename) >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(out, found.nodename);
    return 0;
}
EXPORT int __gethostname_chk(char *out, size_t size, size_t room)
{
    if (size > room)
        abort();
    return gethostname(out, size);
}

#define TOLD(words, result, name, declared, ...)                                  \
    EXPORT result name declared                                                   \
    {                                                                             \
        static result(*real) declared;                                            \
        if (!real)                                                                \
            real = (result(*) declared)dlsym(RTLD_NEXT, #name);                   \
        if (where[0])                                                             \
            note_words(words);                                                    \
        return real(__VA_ARGS__);                                                 \
    }
TOLD("asks for its priority", int, getpriority, (__priority_which_t which, id_t who), which, who)
TOLD("asks for its priority", int, nice, (int step), step)
TOLD("opens a file by its handle, which cannot be followed", int, open_by_handle_at, (int mount, struct file_handle *handle, int flags), mount, handle, flags)

/* Python and compilers count processors to start threads; other programs (nproc) print them. */
EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out)
{
    REAL(int, "sched_getaffinity", pid_t, size_t, cpu_set_t *);
    if (where[0] && looks_at_times)
        note_words("asks for its processors");
    return real(pid, size, out);
}

#define ATTRIBUTES(name, result, declared, ...)                                   \
    EXPORT result name declared                                                   \
    {                                                                             \
        static result(*real) declared;                                            \
        if (!real)                                                                \
            real = (result(*) declared)dlsym(RTLD_NEXT, #name);                   \
        int before = errno;                                                       \
        put('A', NULL, AT_FDCWD, path, 1);                                        \
        errno = before;                                                           \
        return real(__VA_ARGS__);                                                 \
    }
ATTRIBUTES(getxattr, ssize_t, (const char *path, const char *name, void *value, size_t size), path, name, value, size)
ATTRIBUTES(lgetxattr, ssize_t, (const char *path, const char *name, void *value, size_t size), path, name, value, size)
ATTRIBUTES(listxattr, ssize_t, (const char *path, char *list, size_t size), path, list, size)
ATTRIBUTES(llistxattr, ssize_t, (const char *path, char *list, size_t size), path, list, size)
EXPORT ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    REAL(ssize_t, "fgetxattr", int, const char *, void *, size_t);
    int before = errno;
    put('A', NULL, fd, "", 1);
    errno = before;
    return real(fd, name, value, size);
}
EXPORT ssize_t flistxattr(int fd, char *list, size_t size)
{
    REAL(ssize_t, "flistxattr", int, char *, size_t);
    int before = errno;
    put('A', NULL, fd, "", 1);
    errno = before;
    return real(fd, list, size);
}

/* Started programs. */

static int library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (info->dlpi_name && info->dlpi_name[0] == '/')
        note_path(AT_FDCWD, info->dlpi_name);
    return 0;
}

static char **with_ours(char *const env[], char **into, char *reads, char *load)
{
    size_t count = 0;
    snprintf(reads, 2 * PATH_MAX, "CUMATRIX_READS=%s", where);
    for (char *const *one = env; one && *one; one++) {
        if (!strncmp(*one, "CUMATRIX_READS=", 15)) { /* the program set another path on purpose */
            snprintf(reads, 2 * PATH_MAX, "%s", *one);
            continue;
        }
        if (!strncmp(*one, "LD_PRELOAD=", 11)) {
            if (!strstr(*one, preload))
                snprintf(load, 2 * PATH_MAX, "LD_PRELOAD=%s:%s", preload, *one + 11);
            else
                snprintf(load, 2 * PATH_MAX, "%s", *one);
            continue;
        }
        into[count++] = *one;
    }
    into[count++] = reads;
    into[count++] = load;
    into[count] = NULL;
    return into;
}

static size_t length_of(char *const list[])
{
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

/* On the stack: a child of vfork must not allocate. */
#define WITH_OURS(env)                                                            \
    char *into[length_of(env) + 3], reads[2 * PATH_MAX], load[2 * PATH_MAX];      \
    snprintf(load, sizeof load, "LD_PRELOAD=%s", preload);                        \
    char **with = where[0] ? with_ours(env, into, reads, load) : (char **)env

/* Whether this is the static program `ldconfig -p`, which only reads and prints the linker's cache (elf/ldconfig.c of glibc,
 * main), and with LC_ALL=C no locale. Python's ctypes.util.find_library runs it. Ubuntu's script of this name is followed
 * like other programs. */
static int prints_cache(const char *path, char *const argv[], char *const env[])
{
    static const char *const places[] = {"/sbin/ldconfig", "/usr/sbin/ldconfig", "/sbin/ldconfig.real", "/usr/sbin/ldconfig.real"};
    char magic[4] = "";
    int named = 0, plain = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        named |= !strcmp(path, places[i]);
    if (!named || length_of(argv) != 2 || strcmp(argv[1], "-p"))
        return 0;
    for (char *const *one = env; one && *one; one++)
        plain |= !strcmp(*one, "LC_ALL=C");
    int fd = plain ? (int)kernel(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    long got = kernel(SYS_read, fd, magic, sizeof magic);
    kernel(SYS_close, fd);
    return got == sizeof magic && !memcmp(magic, "\177ELF", sizeof magic);
}

/* Record a program before it runs; return whether it will record its own reads. */
static int note_program(const char *path, char *const argv[], char *const env[])
{
    note_path(AT_FDCWD, path);
    if (prints_cache(path, argv, env)) {
        note_path(AT_FDCWD, "/etc/ld.so.cache");
        return 0;
    }
    put('X', NULL, AT_FDCWD, path, 0);
    return 1;
}

/* Whether nothing can be preloaded into this program, because it has no dynamic linker. */
static int is_static(const char *path)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    int fd = (int)kernel(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int found = kernel(SYS_pread64, fd, &head, sizeof head, 0) == sizeof head && !memcmp(head.e_ident, ELFMAG, SELFMAG) &&
                head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof part;
    for (int i = 0; found && i < head.e_phnum; i++)
        found = kernel(SYS_pread64, fd, &part, sizeof part, head.e_phoff + (ElfW(Off))i * sizeof part) == sizeof part && part.p_type != PT_INTERP;
    kernel(SYS_close, fd);
    return found;
}

/* The program that runs a static program in its place; its first arguments are the static program and its arguments. */
#define FOLLOWED(path, argv)                                                      \
    char *led[length_of(argv) + 3];                                               \
    const char *program = path;                                                   \
    char *const *words_ = argv;                                                   \
    if (follower[0] && where[0] && is_static(path)) {                             \
        size_t count_ = length_of(argv);                                          \
        led[0] = follower, led[1] = (char *)path;                                 \
        memcpy(led + 2, argv, count_ * sizeof *led);                              \
        led[count_ + 2] = NULL;                                                   \
        program = follower, words_ = led;                                         \
    }

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
    WITH_OURS(env);
    int follows = note_program(path, argv, env);
    FOLLOWED(path, argv);
    int result = (int)kernel(SYS_execve, program, words_, with);
    int error = errno;
    if (follows)
        put('Y', NULL, AT_FDCWD, path, 0);
    errno = error;
    return result;
}

EXPORT int execveat(int folder, const char *path, char *const argv[], char *const env[], int flags)
{
    REAL(int, "execveat", int, const char *, char *const[], char *const[], int);
    note_words("starts a program by the number of a folder, which cannot be followed");
    return real(folder, path, argv, env, flags);
}

EXPORT int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return execve(path, argv, env);
}

/* The next candidate for a program on PATH; 0 at the end. */
static int candidate(const char **path, const char *name, char *out, size_t size)
{
    if (!*path)
        return 0;
    const char *end = strchrnul(*path, ':');
    snprintf(out, size, "%.*s%s%s", (int)(end - *path), *path, end == *path ? "" : "/", name);
    *path = *end ? end + 1 : NULL;
    return 1;
}

EXPORT int execvpe(const char *name, char *const argv[], char *const env[])
{
    char full[PATH_MAX];
    const char *path = getenv("PATH");
    int error = ENOENT;
    path = path ? path : "/bin:/usr/bin";
    if (strchr(name, '/')) {
        execve(name, argv, env);
        error = errno;
        snprintf(full, sizeof full, "%s", name);
    } else {
        while (error != ENOEXEC && candidate(&path, name, full, sizeof full)) {
            execve(full, argv, env);
            error = errno == ENOENT || errno == ENOTDIR ? error : errno;
        }
    }
    if (error == ENOEXEC) { /* a script without an interpreter line */
        size_t count = length_of(argv);
        char *words[count + 3];
        words[0] = "/bin/sh", words[1] = full;
        memcpy(words + 2, argv + (count ? 1 : 0), (count ? count : 1) * sizeof *words);
        execve(words[0], words, env);
        error = errno;
    }
    errno = error;
    return -1;
}

EXPORT int execvp(const char *name, char *const argv[]) { return execvpe(name, argv, environ); }

#define WORDS(first)                                                              \
    va_list rest;                                                                 \
    size_t count = 1;                                                             \
    va_start(rest, first);                                                        \
    while (first && va_arg(rest, char *))                                         \
        count++;                                                                  \
    va_end(rest);                                                                 \
    char *words[count + 2];                                                       \
    words[0] = (char *)first;                                                     \
    va_start(rest, first);                                                        \
    for (size_t i = 1; i <= count; i++)                                           \
        words[i] = first ? va_arg(rest, char *) : NULL;

EXPORT int execl(const char *path, const char *first, ...)
{
    WORDS(first)
    va_end(rest);
    return execve(path, words, environ);
}

EXPORT int execlp(const char *name, const char *first, ...)
{
    WORDS(first)
    va_end(rest);
    return execvpe(name, words, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    WORDS(first)
    char **env = va_arg(rest, char **);
    va_end(rest);
    return execve(path, words, env);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                       char *const argv[], char *const env[])
{
    REAL(int, "posix_spawn", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
         char *const[], char *const[]);
    WITH_OURS(env);
    int follows = note_program(path, argv, env);
    FOLLOWED(path, argv);
    int result = real(pid, program, actions, how, (char *const *)words_, with);
    if (result && follows)
        put('Y', NULL, AT_FDCWD, path, 0);
    return result;
}

EXPORT int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                        char *const argv[], char *const env[])
{
    char full[PATH_MAX];
    const char *path = getenv("PATH");
    path = path ? path : "/bin:/usr/bin";
    if (strchr(name, '/'))
        return posix_spawn(pid, name, actions, how, argv, env);
    while (candidate(&path, name, full, sizeof full)) {
        note_path(AT_FDCWD, full);
        if (!kernel(SYS_faccessat, AT_FDCWD, full, X_OK))
            return posix_spawn(pid, full, actions, how, argv, env);
    }
    return ENOENT;
}

/* These start a shell inside glibc, with the environment of this process. */
EXPORT int system(const char *command)
{
    REAL(int, "system", const char *);
    if (command)
        put('X', NULL, AT_FDCWD, "/bin/sh", 0);
    return real(command);
}

EXPORT FILE *popen(const char *command, const char *mode)
{
    REAL(FILE *, "popen", const char *, const char *);
    put('X', NULL, AT_FDCWD, "/bin/sh", 0);
    return real(command, mode);
}

static void libraries(void)
{
    /* Not in a forked child without exec: another thread of its parent may have locked the list. */
    if (where[0] && getpid() == born)
        dl_iterate_phdr(library, NULL);
}

EXPORT void _exit(int code)
{
    REAL(void, "_exit", int);
    libraries();
    real(code);
    __builtin_unreachable();
}
EXPORT void _Exit(int code) { _exit(code); }

/* Programs that examine thousands of files, and never their times. */
static int is_compiler(const char *name)
{
    static const char *const names[] = {"python", "pypy", "nvcc", "cicc", "ptxas", "fatbinary", "nvlink", "cudafe++", "bin2c", "cuobjdump", "nvdisasm",
        "gcc", "g++", "cc", "c++", "cpp", "cc1", "cc1plus", "as", "ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "collect2", "lto", "lto-wrapper", "clang",
        "ninja", "zig"};
    const char *cross = strstr(name, "-linux-gnu-");
    name = cross ? cross + strlen("-linux-gnu-") : name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (!strncmp(name, names[i], length) && !name[length + strspn(name + length, "0123456789.-t")])
            return 1;
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("CUMATRIX_READS"), *load = getenv("LD_PRELOAD");
    Dl_info self;
    if (!name || !load || !dladdr((void *)begin, &self))
        return;
    snprintf(where, sizeof where, "%s", name);
    snprintf(preload, sizeof preload, "%s", self.dli_fname);
    born = getpid();
    snprintf(follower, sizeof follower, "%.*s%s", (int)(last_of(preload) - preload), preload, "cumatrix-follow");
    ssize_t length = kernel(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof exe - 1);
    exe[length > 0 ? length : 0] = 0;
    const char *program = last_of(exe);
    if (!strcmp(exe, follower) || kernel(SYS_faccessat, AT_FDCWD, follower, X_OK))
        follower[0] = 0;
    looks_at_times = !is_compiler(program);
    /* The dynamic linker was run by name, and has opened its program unrecorded. */
    if (!strncmp(program, "ld-", 3) || !strncmp(program, "ld.so", 5))
        note_words("was started as a program, and what it runs cannot be followed");
    put('B', NULL, AT_FDCWD, exe, 0);
    note_path(AT_FDCWD, exe);
    cumatrix_note_libraries(0);
}

__attribute__((destructor)) static void end(void) { libraries(); }

/* For the worker: redirect a forked child's records, and forget the records so far. */
EXPORT void cumatrix_reads_to(const char *path)
{
    if (channel >= 0 && ready())
        kernel(SYS_close, channel);
    channel = -1;
    lost = 0;
    memset(seen, 0, sizeof seen);
    snprintf(where, sizeof where, "%s", path);
}

/* For the worker: the number of this process's records that could not be written. */
EXPORT int cumatrix_reads_lost(void) { return lost; }

/* For `follow.c`: a traced process has started a program. A program with this library records its B; with `untold`, its
 * reads are unknown. */
EXPORT void cumatrix_begin(const char *path, int untold)
{
    looks_at_times = !is_compiler(last_of(path));
    note_path(AT_FDCWD, path);
    if (untold || !is_static(path))
        put('X', NULL, AT_FDCWD, path, 0);
}

EXPORT int cumatrix_run(const char *path, char *const argv[], char *const env[]) { return (int)kernel(SYS_execve, path, argv, env); }

/* For `follow.c`: a system call of the program, with its absolute path, or the path of the listed folder. */
EXPORT void cumatrix_tell(long number, const char *path, int flags, long result)
{
    int fd;
    switch (number) {
#ifdef SYS_open
    case SYS_open:
    case SYS_creat:
#endif
    case SYS_openat:
    case SYS_openat2:
        if ((flags & O_ACCMODE) != O_WRONLY && !(result >= 0 && flags & O_TRUNC) && (flags & O_TMPFILE) != O_TMPFILE)
            note_path(AT_FDCWD, path);
        if (result >= 0 && ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC)))
            note_write(AT_FDCWD, path);
        break;
#ifdef SYS_open
    case SYS_readlink:
#endif
    case SYS_readlinkat:
        note_link(AT_FDCWD, path);
        break;
#ifdef SYS_open
    case SYS_symlink:
#endif
    case SYS_symlinkat:
        if (result >= 0)
            note_write(AT_FDCWD, path);
        break;
#ifdef SYS_open
    case SYS_getdents:
#endif
    case SYS_getdents64:
        fd = (int)kernel(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        note_names(AT_FDCWD, path, fd);
        if (fd >= 0)
            kernel(SYS_close, fd);
        break;
    case SYS_getxattr:
    case SYS_lgetxattr:
    case SYS_listxattr:
    case SYS_llistxattr:
    case SYS_fgetxattr:
    case SYS_flistxattr:
        put('A', NULL, AT_FDCWD, path, 1);
        break;
    case SYS_sched_getaffinity:
        if (looks_at_times)
            note_words("asks for its processors");
        break;
    case SYS_execve:
        if (result < 0)
            note_path(AT_FDCWD, path);
        break;
    case SYS_execveat:
    case SYS_open_by_handle_at:
    case SYS_connect:
    case SYS_uname:
    case SYS_getpriority:
        note_words("runs a program that makes a system call that cannot be followed");
        break;
    default:
        note_stat(AT_FDCWD, path, flags);
    }
}
