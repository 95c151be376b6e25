"""Pairs of nvcc's host pass: the host compiler, the assembler, and their inputs."""

from __future__ import annotations

from .changes import Variable, append, delete, unseen, write
from .pair import KERNEL, ONE, TWO, Pair

DEVICE = "#define N 1\n" + KERNEL
# Only the host compiler reads it, and state B is rejected.
HOST_ONLY = "#ifndef __CUDA_ARCH__\n#include <host.h>\n#endif\n" + DEVICE
FINE, REFUSED = "extern int host;\n", '#error "no"\n'
WRAPPER = '#!/bin/sh\nexec {} {}"$@"\n'
BIN = {"PATH": "@here@/bin:@path@"}
# As ccache, distcc and toolchain modules do: a script with the compiler's name at the front of PATH.
GCC, GCC_TWO = WRAPPER.format("/usr/bin/gcc", "-DM=1 "), WRAPPER.format("/usr/bin/gcc", "-DM=2 ")
GXX, GXX_TWO = WRAPPER.format("/usr/bin/g++", "-DM=1 "), WRAPPER.format("/usr/bin/g++", "-DM=2 ")
WITH_M = "#ifndef M\n#define M 3\n#endif\n#define N M\n" + KERNEL
AS = '#!/bin/sh\nexec /usr/bin/as "$@"\n'
AS_REFUSES = "#!/bin/sh\necho 'Error: not today' >&2\nexit 1\n"
ASSEMBLY = 'asm(".include \\"@here@/host.s\\"");\n' + DEVICE
DATA = 'asm(".pushsection .rodata\\n.incbin \\"@here@/host.bin\\"\\n.popsection");\n' + DEVICE
SYSTEM = "/usr/local/include/@unique@.h"
LATE = "#if __has_include(<@unique@.h>)\n#include <@unique@.h>\n#else\n#define N 1\n#endif\n" + KERNEL
BOTH = ("nvcc", "torch-nvcc")

HOST = (
    Pair(name="host-header", backends=("nvcc",), host=True, files={"kernel.cu": HOST_ONLY, "inc/host.h": FINE}, args=("--option=-I@here@/inc",),
         change=(write("inc/host.h", REFUSED),)),
    Pair(name="host-header-size-and-time-as-before", backends=("nvcc",), host=True, files={"kernel.cu": HOST_ONLY, "inc/host.h": FINE},
         args=("--option=-I@here@/inc",), change=(unseen(write("inc/host.h", "extern bad host;\n")),)),
    Pair(name="host-compilers-own-option", backends=("nvcc",), host=True, files={"kernel.cu": DEVICE, "host.h": FINE},
         args=("--option=-Xcompiler=-include,@here@/host.h",), change=(write("host.h", REFUSED),)),
    Pair(name="host-compilers-response-file", backends=("nvcc",), host=True, files={"kernel.cu": "#define N M\n" + KERNEL, "words": "-DM=1"},
         args=("--option=-Xcompiler=@@here@/words",), change=(write("words", "-DM=2"),)),
    Pair(name="host-compilers-folder", backends=("nvcc",), host=True, files={"kernel.cu": HOST_ONLY, "inc/host.h": FINE}, args=("--option=-Xcompiler=-I@here@/inc",),
         change=(write("inc/host.h", REFUSED),)),
    Pair(name="system-header-appears", backends=("nvcc",), host=True, files={"kernel.cu": LATE}, change=(write(SYSTEM, TWO),)),
    Pair(name="system-header-edited", backends=BOTH, files={"kernel.cu": LATE, SYSTEM: ONE}, change=(write(SYSTEM, TWO),)),
    Pair(name="assembly-included", backends=("nvcc",), host=True, files={"kernel.cu": ASSEMBLY, "host.s": "# fine\n"}, change=(write("host.s", '.error "no"\n'),)),
    Pair(name="incbin-goes", backends=("nvcc",), host=True, files={"kernel.cu": DATA, "host.bin": "x"}, change=(delete("host.bin"),)),
    Pair(name="assembler-edited", backends=("nvcc",), host=True, files={"kernel.cu": DEVICE, "bin/as": AS}, variables=BIN, change=(write("bin/as", AS_REFUSES),)),
    Pair(name="assembler-appears", backends=("nvcc",), host=True, files={"kernel.cu": DEVICE, "bin/other": ""}, variables=BIN, change=(write("bin/as", AS_REFUSES),)),
    Pair(name="compiler-on-the-path-edited", backends=BOTH, host=True, files={"kernel.cu": WITH_M, "bin/gcc": GCC}, variables=BIN, change=(write("bin/gcc", GCC_TWO),)),
    Pair(name="compiler-on-the-path-appears", backends=("nvcc",), host=True, files={"kernel.cu": WITH_M, "bin/other": ""}, variables=BIN, change=(write("bin/gcc", GCC_TWO),)),
    Pair(name="ccbin-edited", backends=("nvcc",), host=True, files={"kernel.cu": WITH_M, "my/g++": GXX}, variables={"NVCC_CCBIN": "@here@/my/g++"},
         change=(unseen(write("my/g++", GXX_TWO)),)),
    Pair(name="ccbin-is-another", backends=("nvcc",), host=True, files={"kernel.cu": WITH_M, "my/g++": GXX, "other/g++": GXX_TWO},
         variables={"NVCC_CCBIN": "@here@/my/g++"}, change=(Variable("NVCC_CCBIN", "@here@/other/g++"),)),
    Pair(name="ccbin-taken-away", backends=("nvcc",), host=True, files={"kernel.cu": WITH_M, "my/g++": GXX}, variables={"NVCC_CCBIN": "@here@/my/g++"},
         change=(Variable("NVCC_CCBIN", None),)),
    Pair(name="ccbin-as-an-option", backends=("nvcc",), host=True, files={"kernel.cu": WITH_M, "my/g++": GXX}, args=("--option=--compiler-bindir=@here@/my/g++",),
         change=(write("my/g++", GXX_TWO),)),
    Pair(name="ccbin-calls-a-script", backends=("nvcc",), host=True, files={"kernel.cu": WITH_M, "my/g++": '#!/bin/sh\nexec @here@/real "$@"\n', "real": GXX},
         variables={"NVCC_CCBIN": "@here@/my/g++"}, change=(write("real", GXX_TWO),)),
    Pair(name="cxx-edited", backends=("torch-nvcc",), files={"kernel.cu": WITH_M, "bin/gcc": GCC, "my/c++": GXX}, variables={**BIN, "CC": "@here@/bin/gcc"},
         change=(append("bin/gcc", "# the same\n"), write("bin/gcc", GCC_TWO))),
    Pair(name="variables-that-reach-no-tool", backends=("nvcc", "nvrtc"), files={"kernel.cu": "#ifndef N\n#define N 1\n#endif\n" + KERNEL, "inc/n.h": ""},
         change=(Variable("CPATH", "@here@/inc"), Variable("NVCC_APPEND_FLAGS", "-DN=2"), Variable("NVRTC_APPEND_FLAGS", "-DN=2")), matters=False),
)  # fmt: skip
