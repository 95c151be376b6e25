extern "C" __global__ void clear(int *values)
{
    values[threadIdx.x] = 0;
}

template <class Operation>
__global__ void apply(int *values, Operation operation)
{
    values[threadIdx.x] = operation(values[threadIdx.x]);
}

template <class Operation>
void launch(int *values, Operation operation)
{
    apply<<<1, 32>>>(values, operation);
}

#if PLACE == 0 || PLACE == 1
class Field
{
#if PLACE == 0
public:
#endif
    void increment(int *values)
    {
        launch(values, [] __device__(int value) { return value + 1; });
    }

public:
    void run(int *values) { increment(values); }
};

void use(int *values)
{
    Field().run(values);
}
#elif PLACE == 2 || PLACE == 3
template <class... Terms>
void add(int *values, Terms... terms)
{
#if PLACE == 2
    (launch(values, [=] __device__(int value) { return value + terms; }), ...);
#else
    auto one = [values](int term) {
        launch(values, [=] __device__(int value) { return value + term; });
    };
    (one(terms), ...);
#endif
}

void use(int *values)
{
    add(values, 1, 2);
}
#else
template <class Step>
void add(int *values, Step step)
{
    launch(values, [=] __device__(int value) { return value + step.size; });
}

void use(int *values)
{
    struct Local
    {
        int size = 1;
    };
    add(values, Local());
}
#endif
