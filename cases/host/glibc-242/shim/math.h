// The machine's own math.h, and after it what glibc 2.41 (sinpi, cospi) and 2.42 (rsqrt) declare for C++.
#include_next <math.h>
#ifndef SHIM_MATH_H
#define SHIM_MATH_H
extern "C" {
double sinpi(double) noexcept(true);
float sinpif(float) noexcept(true);
double cospi(double) noexcept(true);
float cospif(float) noexcept(true);
double rsqrt(double) noexcept(true);
float rsqrtf(float) noexcept(true);
}
#endif
