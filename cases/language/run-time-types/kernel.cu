struct Shape {
    __device__ virtual int kind() const { return 0; }
};

struct Square : Shape {
    __device__ int kind() const { return 1; }
};

// Whether a shape is a square.
extern "C" __global__ void squares(int *out)
{
    Square square;
    Shape *shape = &square;
#if FORM == 0
    out[threadIdx.x] = dynamic_cast<Square *>(shape) != nullptr;
#elif FORM == 1
    out[threadIdx.x] = typeid(*shape) == typeid(Square);
#else
    out[threadIdx.x] = shape->kind() == 1;
#endif
}
