/* A fake libcuda, for the tests of error handling only: it loads anything and runs nothing. What a launch comes to is in the
   kernel's name; memory is the host's. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *launched = "";

int cuInit(unsigned flags) { return 0; }
int cuGetExportTable(const void **table, const void *id) { return 500; } /* NVRTC asks for one */
int cuDriverGetVersion(int *version) { *version = 12090; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "Fake device", size); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 1 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 8 : which == 76 ? 0 : 1; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)1; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuGetErrorName(int code, const char **text)
{
    *text = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 500 ? "CUDA_ERROR_NOT_FOUND" : code == 1 ? "CUDA_ERROR_INVALID_VALUE" : NULL;
    return *text ? 0 : 1;
}
int cuGetErrorString(int code, const char **text) { *text = "the fake says no"; return 0; }
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *keys, void **values)
{
    if (memmem(image, 4096, "refused_image", 13)) {
        strcpy(values[0], "error   : the fake dislikes this image");
        return 209;
    }
    *module = (void *)1;
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = strdup(name);
    return strstr(name, "absent") ? 500 : 0;
}
int cuFuncSetAttribute(void *function, int which, int value) { return value > 101376 ? 1 : 0; }
int cuMemAlloc_v2(unsigned long long *pointer, size_t size) { *pointer = (unsigned long long)malloc(size); return 0; }
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t size) { memcpy((void *)to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t size) { memcpy(to, (void *)from, size); return 0; }
int cuLaunchKernel(void *function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned shared,
                   void *stream, void **parameters, void **extra)
{
    launched = function;
    if (strstr(launched, "aborts")) abort();
    return 0;
}
int cuLaunchCooperativeKernel(void *function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f,
                              unsigned shared, void *stream, void **parameters)
{
    return 720;
}
int cuCtxSynchronize(void)
{
    if (strstr(launched, "never_ends")) for (;;) sleep(1000);
    return strstr(launched, "illegal") ? 700 : 0;
}
