#if FORM == 0
// How many threads of the warp hold this thread's value.
extern "C" __global__ void peers(const int *in, int *out)
{
    out[threadIdx.x] = __popc(__match_any_sync(0xffffffffu, in[threadIdx.x]));
}
#else
// Waits for a flag without asking all the time.
extern "C" __global__ void peers(volatile int *flag, int *out)
{
    while (!*flag) {
        __nanosleep(100);
    }
    out[threadIdx.x] = *flag;
}
#endif
