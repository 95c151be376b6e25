/* Preloaded with reads.c, this lets NVRTC's memory for precompiled headers be memory, where NVRTC makes it a window on files.
 *
 * With precompiled headers (CUDA 12.8 and later) NVRTC 12.9 and 13.5 keep all that their front end reads and makes in one range of addresses of 256 MB. They
 * map a private copy of a file over each piece of it that they need: the precompiled header's own file, and an empty one with a name like edg0_123 in
 * TMPDIR. The kernel then reads each page that is written to, and copies it: 3,000 page faults for mma.h, 13,000 for
 * cooperative_groups.h, a quarter of the time that a cell takes with such a header (found with `perf record -e page-faults`).
 *
 * Here the piece of the file is read into the range instead, which a private copy cannot be told from: what is written to either never
 * comes into the file. Whatever cannot be read whole is mapped as NVRTC asked. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define RANGE (256UL << 20) /* what nvrtcGetPCHHeapSize says, where nobody asked for another size */
#define PAGE 4096UL

static _Atomic uintptr_t range; /* where it begins, while it is there */

static void *map(void *at, size_t size, int access, int kind, int file, off_t from)
{
    return (void *)syscall(SYS_mmap, at, size, access, kind, file, from);
}

static int within(uintptr_t at, size_t size)
{
    return range && at >= range && size <= RANGE && at - range <= RANGE - size;
}

static int apart(uintptr_t at, size_t size) { return !range || at + size <= range || at >= range + RANGE; }

/* Whether the piece of the file is in memory now; behind the file's end, which is in a last page, are zeros. */
static int read_into(char *at, size_t size, int file, off_t from)
{
    size_t done = 0;
    for (ssize_t more; done < size; done += (size_t)more)
        if ((more = pread(file, at + done, size - done, from + (off_t)done)) <= 0)
            break;
    if (size - done >= PAGE)
        return 0;
    while (done < size)
        at[done++] = 0;
    return 1;
}

static void *mapped(void *at, size_t size, int access, int kind, int file, off_t from)
{
    int writable = access == (PROT_READ | PROT_WRITE);
    if (writable && kind == (MAP_PRIVATE | MAP_FIXED) && within((uintptr_t)at, size) && read_into(at, size, file, from))
        return at;
    void *found = map(at, size, access, kind, file, from);
    if (found == MAP_FAILED)
        return found;
    if (writable && size == RANGE && (kind & ~MAP_FIXED) == (MAP_PRIVATE | MAP_ANONYMOUS)) {
        range = (uintptr_t)found;
        madvise(found, size, MADV_HUGEPAGE);
    } else if (!apart((uintptr_t)found, size) && !(writable && kind == (MAP_PRIVATE | MAP_FIXED)))
        range = 0;
    return found;
}

EXPORT void *mmap(void *at, size_t size, int access, int kind, int file, off_t from) { return mapped(at, size, access, kind, file, from); }
EXPORT void *mmap64(void *at, size_t size, int access, int kind, int file, off_t from) { return mapped(at, size, access, kind, file, from); }

EXPORT int munmap(void *at, size_t size)
{
    if (!apart((uintptr_t)at, size))
        range = 0;
    return (int)syscall(SYS_munmap, at, size);
}
