/* libcuda for libraries that call the driver from compiled code: one device that never runs anything.

   Built at run time under the soname libcuda.so.1, and loaded before the library is imported. cuGetProcAddress returns the
   entry points, as bindings use it; functions outside of the table are "not found", so that nothing pretends to work. The
   callback from virtual_configure links. Memory is the host's, so that programs get as far as their launches. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_PTX = 218, NOT_FOUND = 500, NOT_SUPPORTED = 801 };

typedef struct {
    int kind;
    size_t size; /* 0: data is a path */
    char *data;
} Input;

typedef struct {
    int count;
    Input inputs[64];
    unsigned options;
    int names[32];
    void *values[32];
    void *cubin;
} Link;

/* Stores a cubin's address and size; a nonzero result is the linker's refusal. */
typedef int (*Linker)(int count, const Input *inputs, int options, const int *names, void *const *values, void **cubin,
                      size_t *size);

static int version = 12000, major = 8, minor = 0;
static Linker linker;
static int launches;
static void *context;
static uintptr_t handles = 0x1000;
static const int CONTEXT = 0x10;

void virtual_configure(int version_, int major_, int minor_, Linker linker_) {
    version = version_, major = major_, minor = minor_, linker = linker_;
}
int virtual_launches(void) { return launches; }

/* Handles are never reused: libraries keep tables by handle. */
static int fresh(void **handle) {
    *handle = (void *)(handles += 16);
    return SUCCESS;
}
static int accept(void) { return SUCCESS; }
static int refuse(void) { return NOT_SUPPORTED; }

static int init(unsigned flags) { return SUCCESS; }
static int driver_version(int *out) { return *out = version, SUCCESS; }
static int error_name(int code, const char **out) {
    *out = code == SUCCESS       ? "CUDA_SUCCESS"
           : code == INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
                                 : "CUDA_ERROR_OF_THE_VIRTUAL_DEVICE";
    return SUCCESS;
}
static int error_string(int code, const char **out) {
    return *out = "the virtual device cannot do this", SUCCESS;
}

static int device_count(int *out) { return *out = 1, SUCCESS; }
static int device_get(int *out, int number) { return *out = number, number ? INVALID_VALUE : SUCCESS; }
static int device_name(char *out, int size, int device) { return snprintf(out, size, "virtual device"), SUCCESS; }
static int device_uuid(char *out, int device) { return memset(out, 0, 16), SUCCESS; }
static int device_memory(size_t *out, int device) { return *out = (size_t)1 << 34, SUCCESS; }
static int device_capability(int *a, int *b, int device) { return *a = major, *b = minor, SUCCESS; }
static int device_attribute(int *out, int attribute, int device) {
    switch (attribute) {
    case 1: case 2: case 3: *out = 1024; break;       /* threads of a block */
    case 4: *out = 64; break;
    case 5: *out = 0x7fffffff; break;                 /* blocks of a grid */
    case 6: case 7: *out = 65535; break;
    case 8: case 81: case 97: *out = 49152; break;    /* shared memory */
    case 9: case 12: case 82: *out = 65536; break;    /* constant memory, registers */
    case 10: *out = 32; break;
    case 16: *out = 16; break;                        /* multiprocessors */
    case 39: *out = 2048; break;
    case 41: case 95: *out = 1; break;                /* unified addressing, cooperative launch */
    case 75: *out = major; break;
    case 76: *out = minor; break;
    default: *out = 0;
    }
    return SUCCESS;
}

static int context_retain(void **out, int device) { return *out = (void *)(uintptr_t)CONTEXT, SUCCESS; }
static int context_state(int device, unsigned *flags, int *active) { return *flags = 0, *active = 1, SUCCESS; }
static int context_current(void **out) { return *out = context, SUCCESS; }
static int context_set(void *value) { return context = value, SUCCESS; }
static int context_pop(void **out) { return *out = context, context = NULL, SUCCESS; }
static int context_device(int *out) { return *out = 0, SUCCESS; }
static int context_id(void *ctx, unsigned long long *out) { return *out = 1, SUCCESS; }
static int context_priorities(int *least, int *greatest) { return *least = 0, *greatest = 0, SUCCESS; }

static int memory_info(size_t *free, size_t *total) { return *free = *total = (size_t)1 << 34, SUCCESS; }
static int memory_alloc(void **out, size_t size) { return *out = calloc(1, size ? size : 1), SUCCESS; }
static int memory_free(void *memory) { return free(memory), SUCCESS; }
static int memory_free_async(void *memory, void *stream) { return free(memory), SUCCESS; }
static int memory_copy(void *to, const void *from, size_t size) { return memmove(to, from, size), SUCCESS; }
static int memory_set(void *to, unsigned char value, size_t size) { return memset(to, value, size), SUCCESS; }
static int same_pointer(void **out, void *host, unsigned flags) { return *out = host, SUCCESS; }
static int pointer_attribute(void *out, int attribute, void *pointer) {
    switch (attribute) {
    case 1: *(void **)out = (void *)(uintptr_t)CONTEXT; break;
    case 2: *(unsigned *)out = 2; break; /* device memory */
    case 3: case 4: case 11: *(void **)out = pointer; break;
    case 7: *(unsigned long long *)out = 1; break;
    case 8: *(unsigned *)out = 0; break;
    case 9: *(int *)out = 0; break;
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}
static int pointer_attributes(unsigned count, int *attributes, void **out, void *pointer) {
    for (unsigned i = 0; i < count; i++) pointer_attribute(out[i], attributes[i], pointer);
    return SUCCESS;
}

static int load(void **out, const void *image) { return fresh(out); }
static int part(void **out, void *of, const char *name) { return fresh(out); }
static int part_of(void **out, void *of) { return fresh(out); }
static int global(void **out, size_t *size, void *of, const char *name) {
    static char zeros[4096];
    *out = zeros;
    if (size) *size = 4;
    return SUCCESS;
}
static int kernel_count(unsigned *out, void *library) { return *out = 1, SUCCESS; }
static int kernel_list(void **out, unsigned count, void *library) { return count ? fresh(out) : SUCCESS; }
static int kernel_attribute(int *out, int attribute, void *kernel, int device) { return *out = 1, SUCCESS; }
static int kernel_parameter(void *kernel, size_t index, size_t *offset, size_t *size) { return INVALID_VALUE; }
static int function_attribute(int *out, int attribute, void *function) { return *out = 1, SUCCESS; }
static int launch(void) { return launches++, SUCCESS; }

static int occupancy(int *out, void *function, int block, size_t shared) { return *out = 1, SUCCESS; }
static int block_size(int *grid, int *block) { return *grid = 16, *block = 256, SUCCESS; }

static int stream_context(void *stream, void **out) { return context_retain(out, 0); }
static int stream_number(void *stream, unsigned long long *out) { return *out = 1, SUCCESS; }
static int stream_zero(void *stream, int *out) { return *out = 0, SUCCESS; }
static int elapsed(float *out, void *a, void *b) { return *out = 0, SUCCESS; }

static int link_create(unsigned count, int *names, void **values, Link **out) {
    Link *link = *out = calloc(1, sizeof(Link));
    for (unsigned i = 0; i < count && i < 32; i++, link->options++) link->names[i] = names[i], link->values[i] = values[i];
    return SUCCESS;
}
static int link_add(Link *link, int kind, const void *data, size_t size, size_t copied) {
    if (link->count == 64) return INVALID_VALUE;
    Input *input = &link->inputs[link->count++];
    input->kind = kind, input->size = size, input->data = malloc(copied);
    memcpy(input->data, data, copied);
    return SUCCESS;
}
static int link_data(Link *link, int kind, void *data, size_t size, const char *name, unsigned n, void *o, void *v) {
    return link_add(link, kind, data, size, size);
}
static int link_file(Link *link, int kind, const char *path, unsigned n, void *o, void *v) {
    return link_add(link, kind, path, 0, strlen(path) + 1);
}
static int link_complete(Link *link, void **cubin, size_t *size) {
    return linker(link->count, link->inputs, link->options, link->names, link->values, cubin, size);
}
static int link_destroy(Link *link) {
    for (int i = 0; i < link->count; i++) free(link->inputs[i].data);
    return free(link), SUCCESS;
}

int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);

static const struct { const char *name; void *function; } table[] = {
    {"cuGetProcAddress", cuGetProcAddress_v2},
    {"cuInit", init}, {"cuDriverGetVersion", driver_version},
    {"cuGetErrorName", error_name}, {"cuGetErrorString", error_string},
    {"cuDeviceGetCount", device_count}, {"cuDeviceGet", device_get}, {"cuDeviceGetName", device_name},
    {"cuDeviceGetUuid", device_uuid}, {"cuDeviceTotalMem", device_memory},
    {"cuDeviceComputeCapability", device_capability}, {"cuDeviceGetAttribute", device_attribute},
    {"cuDevicePrimaryCtxRetain", context_retain}, {"cuDevicePrimaryCtxRelease", accept},
    {"cuDevicePrimaryCtxReset", accept}, {"cuDevicePrimaryCtxGetState", context_state},
    {"cuDevicePrimaryCtxSetFlags", accept},
    {"cuCtxGetCurrent", context_current}, {"cuCtxSetCurrent", context_set}, {"cuCtxPushCurrent", context_set},
    {"cuCtxPopCurrent", context_pop}, {"cuCtxGetDevice", context_device}, {"cuCtxSynchronize", accept},
    {"cuCtxGetId", context_id}, {"cuCtxGetStreamPriorityRange", context_priorities},
    {"cuMemGetInfo", memory_info}, {"cuMemAlloc", memory_alloc}, {"cuMemAllocHost", memory_alloc},
    {"cuMemHostAlloc", memory_alloc}, {"cuMemAllocManaged", memory_alloc}, {"cuMemHostGetDevicePointer", same_pointer},
    {"cuMemHostRegister", accept}, {"cuMemHostUnregister", accept},
    {"cuMemHostAlloc", memory_alloc}, {"cuMemAllocAsync", memory_alloc}, {"cuMemFree", memory_free},
    {"cuMemFreeHost", memory_free}, {"cuMemFreeAsync", memory_free_async},
    {"cuMemcpyHtoD", memory_copy}, {"cuMemcpyDtoH", memory_copy}, {"cuMemcpyDtoD", memory_copy},
    {"cuMemcpyHtoDAsync", memory_copy}, {"cuMemcpyDtoHAsync", memory_copy}, {"cuMemcpyDtoDAsync", memory_copy},
    {"cuMemcpyAsync", memory_copy}, {"cuMemsetD8", memory_set}, {"cuMemsetD8Async", memory_set},
    {"cuPointerGetAttribute", pointer_attribute}, {"cuPointerGetAttributes", pointer_attributes},
    {"cuModuleLoad", load}, {"cuModuleLoadData", load}, {"cuModuleLoadDataEx", load}, {"cuModuleUnload", accept},
    {"cuModuleGetFunction", part}, {"cuModuleGetGlobal", global},
    {"cuLibraryLoadData", load}, {"cuLibraryUnload", accept}, {"cuLibraryGetKernel", part},
    {"cuLibraryGetModule", part_of}, {"cuLibraryGetGlobal", global}, {"cuLibraryGetKernelCount", kernel_count},
    {"cuLibraryEnumerateKernels", kernel_list}, {"cuKernelGetFunction", part_of}, {"cuKernelGetLibrary", part_of},
    {"cuKernelGetAttribute", kernel_attribute}, {"cuKernelSetAttribute", accept},
    {"cuKernelGetParamInfo", kernel_parameter}, {"cuFuncGetAttribute", function_attribute},
    {"cuFuncSetAttribute", accept}, {"cuFuncSetCacheConfig", accept}, {"cuFuncGetModule", part_of},
    {"cuIpcOpenMemHandle", refuse}, /* Numba stores its address when it starts */
    {"cuLinkCreate", link_create}, {"cuLinkAddData", link_data}, {"cuLinkAddFile", link_file},
    {"cuLinkComplete", link_complete}, {"cuLinkDestroy", link_destroy},
    {"cuLaunchKernel", launch}, {"cuLaunchKernelEx", launch}, {"cuLaunchCooperativeKernel", launch},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", occupancy},
    {"cuOccupancyMaxPotentialBlockSize", block_size},
    {"cuStreamCreate", load}, {"cuStreamCreateWithPriority", load}, {"cuStreamSynchronize", accept},
    {"cuStreamDestroy", accept}, {"cuStreamWaitEvent", accept}, {"cuStreamGetCtx", stream_context},
    {"cuStreamGetId", stream_number}, {"cuStreamGetFlags", stream_zero}, {"cuStreamGetPriority", stream_zero},
    {"cuStreamGetDevice", stream_zero}, {"cuStreamIsCapturing", stream_zero}, {"cuStreamQuery", accept},
    {"cuEventCreate", load}, {"cuEventRecord", accept}, {"cuEventQuery", accept}, {"cuEventSynchronize", accept},
    {"cuEventDestroy", accept}, {"cuEventElapsedTime", elapsed},
};

int cuGetProcAddress_v2(const char *name, void **function, int version_, uint64_t flags, int *status) {
    *function = NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) *function = table[i].function;
    if (status) *status = *function ? 0 : 1;
    return *function ? SUCCESS : NOT_FOUND;
}
int cuGetProcAddress(const char *name, void **function, int version_, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version_, flags, NULL);
}
