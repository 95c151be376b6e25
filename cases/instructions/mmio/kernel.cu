// Reads a register of another device and writes the next value to it.
extern "C" __global__ void ring(unsigned *doorbell, unsigned *out)
{
    unsigned value;
#if MMIO
    asm volatile("ld.mmio.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(doorbell) : "memory");
    asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" ::"l"(doorbell), "r"(value + 1) : "memory");
#else
    value = *(volatile unsigned *)doorbell;
    *(volatile unsigned *)doorbell = value + 1;
#endif
    out[threadIdx.x] = value;
}
