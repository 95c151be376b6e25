/* Runs a statically linked program, into which nothing can be preloaded, and traces its system calls.
 *
 * `reads.c` starts this program in place of the static one, and records its reports: the paths in system calls of the
 * program and its children, and their results. A child with `reads.c` loaded records its own files. If the kernel forbids
 * tracing, the program runs untraced, and its reads are unknown. This process ends as the program does: with its exit code,
 * or by its signal. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 256         /* threads and processes at a time */
#define GET_CALL 0x420e  /* PTRACE_GET_SYSCALL_INFO, since Linux 5.3 */
#define ENTRY 1
#define EXIT 2

struct call {
    uint8_t op, pad[3];
    uint32_t arch;
    uint64_t instruction, stack;
    union {
        struct {
            uint64_t number, args[6];
        } entry;
        struct {
            int64_t value;
            uint8_t is_error;
        } exit;
    };
};

/* A thread, its current call, and the path in that call. */
struct thread {
    pid_t id;
    long number;
    int folder, flags, descriptor;
    char path[PATH_MAX];
};
static struct thread threads[MOST];

static void (*tell)(long number, const char *path, int flags, long result);
static void (*begin)(const char *path, int follows);
static int (*run)(const char *path, char *const argv[], char *const env[]);

static struct thread *thread_of(pid_t id)
{
    struct thread *free = NULL;
    for (size_t i = 0; i < MOST; i++) {
        if (threads[i].id == id)
            return &threads[i];
        if (!threads[i].id && !free)
            free = &threads[i];
    }
    if (!free)
        _exit(125);
    memset(free, 0, offsetof(struct thread, path));
    free->id = id;
    return free;
}

/* Page by page, because the text may end with the mapping. */
static int read_text(pid_t id, uint64_t address, char *into)
{
    size_t done = 0;
    while (address && done < PATH_MAX) {
        size_t size = 4096 - (address + done) % 4096;
        size = size < PATH_MAX - done ? size : PATH_MAX - done;
        struct iovec ours = {into + done, size}, theirs = {(void *)(uintptr_t)(address + done), size};
        ssize_t got = process_vm_readv(id, &ours, 1, &theirs, 1, 0);
        if (got <= 0)
            return 0;
        if (memchr(into + done, 0, (size_t)got))
            return 1;
        done += (size_t)got;
    }
    return 0;
}

/* The absolute path of a call; a relative path starts from the call's folder. */
static const char *whole(const struct thread *of, char *into)
{
    char link[64];
    if (of->path[0] == '/')
        return of->path;
    if (of->folder == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", of->id);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", of->id, of->folder);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, into, PATH_MAX - 1);
    if (length <= 0)
        return NULL;
    into[length] = 0;
    if (of->path[0] && (size_t)length + strlen(of->path) + 2 < PATH_MAX) {
        into[length] = '/';
        strcpy(into + length + 1, of->path);
    }
    return into;
}

static void entered(struct thread *of, const struct call *call)
{
    const uint64_t *a = call->entry.args;
    uint64_t path = 0, how = 0;
    of->number = (long)call->entry.number;
    of->folder = AT_FDCWD, of->flags = 0, of->path[0] = 0;
    switch (of->number) {
#ifdef SYS_open /* aarch64 lacks these calls */
    case SYS_open:
        path = a[0], of->flags = (int)a[1];
        break;
    case SYS_creat:
        path = a[0], of->flags = O_CREAT | O_WRONLY | O_TRUNC;
        break;
    case SYS_stat:
    case SYS_access:
    case SYS_readlink:
        path = a[0];
        break;
    case SYS_lstat:
        path = a[0], of->flags = AT_SYMLINK_NOFOLLOW;
        break;
    case SYS_symlink:
        path = a[1];
        break;
    case SYS_getdents:
#endif
    case SYS_getdents64:
        of->folder = (int)a[0];
        return;
    case SYS_openat:
        of->folder = (int)a[0], path = a[1], of->flags = (int)a[2];
        break;
    case SYS_openat2: /* its first field is the flags */
        of->folder = (int)a[0], path = a[1];
        {
            struct iovec ours = {&how, sizeof how}, theirs = {(void *)(uintptr_t)a[2], sizeof how};
            process_vm_readv(of->id, &ours, 1, &theirs, 1, 0);
            of->flags = (int)how;
        }
        break;
    case SYS_newfstatat:
        of->folder = (int)a[0], path = a[1], of->flags = (int)a[3];
        break;
    case SYS_statx:
        of->folder = (int)a[0], path = a[1], of->flags = (int)a[2];
        break;
    case SYS_faccessat:
    case SYS_faccessat2:
    case SYS_readlinkat:
        of->folder = (int)a[0], path = a[1];
        break;
    case SYS_symlinkat:
        of->folder = (int)a[1], path = a[2];
        break;
    case SYS_getxattr:
    case SYS_lgetxattr:
    case SYS_listxattr:
    case SYS_llistxattr:
    case SYS_execve:
        path = a[0];
        break;
    case SYS_execveat:
    case SYS_open_by_handle_at:
    case SYS_fgetxattr:
    case SYS_flistxattr:
    case SYS_connect:
    case SYS_uname:
    case SYS_getpriority:
    case SYS_sched_getaffinity:
        return;
    default:
        of->number = -1;
        return;
    }
    if (!read_text(of->id, path, of->path))
        of->number = -1; /* the kernel cannot read it either */
}

static void left(struct thread *of, const struct call *call)
{
    char text[PATH_MAX];
    long number = of->number;
    of->number = -1;
    if (number < 0)
        return;
    const char *path = whole(of, text);
    tell(number, path ? path : "", of->flags, call->exit.value);
}

/* A traced process has replaced its program. */
static void replaced(pid_t id)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", id);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    begin(path, 0);
}

int main(int count, char **argv)
{
    tell = (void (*)(long, const char *, int, long))dlsym(RTLD_DEFAULT, "cumatrix_tell");
    begin = (void (*)(const char *, int))dlsym(RTLD_DEFAULT, "cumatrix_begin");
    run = (int (*)(const char *, char *const[], char *const[]))dlsym(RTLD_DEFAULT, "cumatrix_run");
    if (count < 3)
        return 127;
    if (!tell || !begin || !run) {
        execv(argv[1], argv + 2);
        return 127;
    }
    int pipe_[2], error = 0;
    if (pipe2(pipe_, O_CLOEXEC))
        return 127;
    pid_t main_ = fork();
    if (main_ < 0)
        return 127;
    if (!main_) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) {
            error = -1;
        } else {
            raise(SIGSTOP);
            run(argv[1], argv + 2, environ);
            error = errno;
        }
        (void)!write(pipe_[1], &error, sizeof error);
        _exit(127);
    }
    close(pipe_[1]);
    int status = 0, code = 0;
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    struct call probe;
    if (waitpid(main_, &status, 0) != main_ || !WIFSTOPPED(status) || ptrace(PTRACE_SETOPTIONS, main_, NULL, options) ||
        ptrace(GET_CALL, main_, sizeof probe, &probe) <= 0) {
        /* Tracing is not permitted: the program runs anyway, and its reads are unknown. */
        kill(main_, SIGKILL);
        waitpid(main_, &status, 0);
        begin(argv[1], 1);
        run(argv[1], argv + 2, environ);
        return 127;
    }
    thread_of(main_)->number = -1;
    ptrace(PTRACE_SYSCALL, main_, NULL, NULL);
    for (;;) {
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0)
            break;
        struct thread *of = thread_of(id);
        long pass = 0;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            of->id = 0;
            if (id == main_)
                code = status;
            continue;
        }
        int event = status >> 16, stop = WSTOPSIG(status);
        if (stop == (SIGTRAP | 0x80)) {
            struct call call;
            if (ptrace(GET_CALL, id, sizeof call, &call) > 0) {
                if (call.op == ENTRY)
                    entered(of, &call);
                else if (call.op == EXIT)
                    left(of, &call);
            }
        } else if (event == PTRACE_EVENT_EXEC) {
            of->number = -1;
            replaced(id);
        } else if (!event && stop != SIGSTOP && stop != SIGTRAP) {
            pass = stop;
        }
        ptrace(PTRACE_SYSCALL, id, NULL, pass);
    }
    if (read(pipe_[0], &error, sizeof error) == sizeof error && error > 0) {
        errno = error;
        perror(argv[1]);
        return error == ENOENT ? 127 : 126;
    }
    if (WIFSIGNALED(code)) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(WTERMSIG(code), SIG_DFL);
        raise(WTERMSIG(code));
    }
    return WEXITSTATUS(code);
}
