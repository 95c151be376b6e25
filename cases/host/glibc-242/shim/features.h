// The machine's own features.h, with the version of glibc that the declarations of math.h are of.
#pragma once
#include_next <features.h>
#undef __GLIBC_MINOR__
#define __GLIBC_MINOR__ 42
// Since 2.40 this is the name of what _GNU_SOURCE asks for, which g++ always does.
#undef __GLIBC_USE_ISOC23
#define __GLIBC_USE_ISOC23 1
