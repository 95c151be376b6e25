extern "C" __global__ void count(int *counter)
{
    ADD(counter, 1);
}
