#if FORM == 1
#define OPEN "{\n"
#define CLOSE "}\n"
#else
#define OPEN
#define CLOSE
#endif
#if FORM == 2
#define NUMBER "_%="
#else
#define NUMBER
#endif

// Counts up to a limit by a jump of its own.
extern "C" __global__ void count(int *values)
{
    int value = values[threadIdx.x];
#if FORM == 3
#pragma unroll 1
#endif
    for (int i = 0; i < 4; ++i) {
        asm volatile(OPEN
                     "bra.uni AGAIN" NUMBER ";\n"
                     "add.s32 %0, %0, -50;\n"
                     "AGAIN" NUMBER ": add.s32 %0, %0, 7;\n"
                     CLOSE
                     : "+r"(value));
    }
    values[threadIdx.x] = value;
}
