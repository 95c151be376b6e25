"""nvcc through torch.utils.cpp_extension."""
